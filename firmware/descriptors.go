package firmware

import (
	"errors"
	"fmt"
	"os"

	"phonerack/firmware/systemd"
	"phonerack/hal/gpio"
)

// SystemdStore is systemd's descriptor store (FileDescriptorStoreMax= of the unit). It implements Descriptors and does nothing
// when systemd is not there.
type SystemdStore struct{ Manager *systemd.Manager }

// Store implements Descriptors. What has the same name already is dropped first: the store would keep both.
func (s SystemdStore) Store(name string, p gpio.Parked) error {
	defer p.Close() // systemd has its own
	f, ok := p.(*os.File)
	if !ok {
		return fmt.Errorf("a line's handle is a %T, and systemd keeps files", p)
	}
	return errors.Join(s.Drop(name), s.Manager.Store(name, f))
}

// Drop implements Descriptors. A name that nothing is stored under is no error.
func (s SystemdStore) Drop(name string) error { return s.Manager.Remove(name) }

// AdoptLines takes over what systemd has kept for this process, by name. It has to be called once, before anything else opens
// files. What it cannot understand is an error, and nothing is taken over: a line taken for another switches the wrong hub.
func AdoptLines() (map[string]gpio.Parked, error) {
	files, err := systemd.Adopt()
	if err != nil {
		return nil, err
	}
	all := map[string]gpio.Parked{}
	for _, f := range files {
		if all[f.Name()] != nil { // which of two is meant nobody knows; both show the same line if the name is ours
			f.Close()
			continue
		}
		all[f.Name()] = f
	}
	return all, nil
}
