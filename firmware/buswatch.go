package firmware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"phonerack/firmware/action"
	"phonerack/hal/board"
	"phonerack/hal/watchdog"
	"phonerack/usb/bus"
)

// busWatch plugs what the bus shows into the slots of the board file, and remembers phones at other ports.
type busWatch struct {
	watch   func(ctx context.Context) <-chan bus.Event
	board   *board.Board          // nil without USB: then nothing is watched
	sources map[string]*usbSource // of its slots, by port path
	file    string                // name of the board file, for people
	log     *slog.Logger

	progress *watchdog.Part // told of each reading of the bus; nil without a watchdog

	mu     sync.Mutex
	strays map[string]action.PhoneState // guarded by mu, by port path
}

// String implements fmt.Stringer for the supervisor's log.
func (w *busWatch) String() string { return busPart }

var errWatchEnded = errors.New("the watcher of the bus ended")

// Serve implements suture.Service.
func (w *busWatch) Serve(ctx context.Context) error {
	w.mu.Lock()
	clear(w.strays)
	w.mu.Unlock()
	for e := range w.watch(ctx) {
		if source := w.source(e.Device.Path); source == nil {
			w.stray(e)
		} else if e.Kind == bus.Added {
			w.log.Info("phone plugged in", "port", e.Device.Path, "serial", e.Device.Serial, "speed", e.Device.Speed)
			source.plug(e.Device)
		} else {
			w.log.Info("phone unplugged", "port", e.Device.Path, "serial", e.Device.Serial)
			source.unplug(e.Device)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errWatchEnded
}

// source is that of the slot at a port path, which may be one on the SuperSpeed half of the slot's hub; nil if there is none.
func (w *busWatch) source(path string) *usbSource {
	s, ok := w.board.SlotAt(path)
	if !ok {
		return nil
	}
	return w.sources[s.Path]
}

func (w *busWatch) stray(e bus.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Kind == bus.Removed {
		delete(w.strays, e.Device.Path)
		return
	}
	reason := fmt.Sprintf("port %s is not on the board file %s: add a slot for it, or move the phone to a port that is", e.Device.Path, w.file)
	w.strays[e.Device.Path] = action.PhoneState{
		Port: e.Device.Path, State: action.Failed, Reason: reason, Serial: e.Device.Serial, Model: e.Device.Product, Since: time.Now(),
	}
	w.log.Warn("phone at a port that is not on the board file", "port", e.Device.Path, "serial", e.Device.Serial)
}

func (w *busWatch) list() []action.PhoneState {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []action.PhoneState
	for _, s := range w.strays {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b action.PhoneState) int { return bus.ComparePaths(a.Port, b.Port) })
	return all
}

// Phones implements action.Rack: the slots by number, then phones at ports that the board file does not know.
func (r *Rack) Phones() []action.PhoneState {
	var all []action.PhoneState
	serials := map[string]int{}
	for _, s := range r.slots {
		state, _ := s.snapshot()
		if held, ok := r.leases.Lookup(s.number); ok {
			state.Lease = &held
		}
		all = append(all, state)
	}
	slices.SortFunc(all, func(a, b action.PhoneState) int { return cmp.Compare(a.Slot, b.Slot) })
	all = append(all, r.bus.list()...)
	for _, state := range all {
		serials[state.Serial]++
	}
	for i := range all {
		all[i].Duplicate = all[i].Serial != "" && serials[all[i].Serial] > 1
	}
	return all
}

// usbfsLow is the kernel's limit out of the box, in MiB for all phones together; a board image raises it.
const usbfsLow = 16

// reportUSBMemory logs how much the kernel lets all USB transfers take at once (usbfs_memory_mb; 0 is no limit).
func reportUSBMemory(sysfs string, slots int, log *slog.Logger) {
	path := filepath.Join(sysfs, "module/usbcore/parameters/usbfs_memory_mb")
	text, err := os.ReadFile(path)
	if err != nil {
		log.Warn("usbfs memory limit is not known", "err", err)
		return
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		log.Warn("usbfs memory limit is not known", "err", err)
		return
	}
	if limit != 0 && limit <= usbfsLow && slots > 1 {
		log.Warn("usbfs memory limit is low for so many slots: boot with usbcore.usbfs_memory_mb=0", "mib", limit, "slots", slots)
		return
	}
	log.Info("usbfs memory limit", "mib", limit)
}

// round notes that the bus was read once more, and that what it showed was taken.
func (w *busWatch) round() {
	stall("bus")
	if w.progress != nil {
		w.progress.Progress()
	}
}
