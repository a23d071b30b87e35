package powerrig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"phonerack/agent/runner/record"
	"phonerack/firmware/action"
)

// trajectories wants the record of each ended task whole: its result was written down after it.
func trajectories(folder string, ended []action.TaskStatus) (err error) {
	for _, t := range ended {
		if e := whole(filepath.Join(folder, t.ID), t.Steps); e != nil {
			err = errors.Join(err, fmt.Errorf("trajectory of %s (%s, %d steps): %w", t.ID, t.State, t.Steps, e))
		}
	}
	return err
}

func whole(dir string, steps int) error {
	task, err := record.ReadTask(dir)
	if err != nil {
		return err
	}
	if task.End == nil {
		return errors.New("it has no end")
	}
	if !record.HasPage(dir) {
		return errors.New("it has no page")
	}
	n := 0
	for s, err := range record.Steps(dir, true) {
		if err != nil {
			return err
		}
		n++
		if s.Image == "" {
			continue
		}
		picture, err := os.ReadFile(filepath.Join(dir, s.Image))
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(picture, []byte{0xff, 0xd8}) || !bytes.HasSuffix(picture, []byte{0xff, 0xd9}) {
			return fmt.Errorf("%s is no whole JPEG: %d bytes", s.Image, len(picture))
		}
	}
	if n != steps {
		return fmt.Errorf("%d lines for %d steps", n, steps)
	}
	return nil
}
