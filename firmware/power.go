package firmware

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/phone"
	"phonerack/firmware/store"
	"phonerack/hal/board"
	"phonerack/hal/gpio"
	"phonerack/hal/power"
)

const (
	powerBucket = "power"

	// linePrefix begins the names of the lines that hubs are fed by: gpioinfo shows them, and a store of descriptors has
	// their handles under them.
	linePrefix = "rackd-hub-"

	presentTimeout = time.Second // of a phone that is asked whether it is there
)

// Descriptors is a store that keeps open files over a restart of rackd.
type Descriptors interface {
	// Store keeps a file under a name, in place of one that has it already. It takes the file over.
	Store(name string, p gpio.Parked) error
	// Drop lets go of what is kept under a name, if anything is.
	Drop(name string) error
}

// powerRecords keeps what is wanted of outlets. It implements power.Store.
type powerRecords struct{ bucket *store.Bucket }

// Load implements power.Store. A record that cannot be read counts as none.
func (p powerRecords) Load() (map[string]power.Record, error) {
	all := map[string]power.Record{}
	err := p.bucket.View(func(b *bolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			var r power.Record
			if json.Unmarshal(v, &r) == nil {
				all[string(k)] = r
			}
			return nil
		})
	})
	return all, err
}

// Save implements power.Store.
func (p powerRecords) Save(outlet string, r power.Record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return p.bucket.Update(func(b *bolt.Bucket) error { return b.Put([]byte(outlet), raw) })
}

// openPower makes what switches the power of the phones; r.power stays nil when there is nothing to switch.
func (r *Rack) openPower(o Options) error {
	b := r.config.Board
	if b == nil {
		return nil
	}
	if o.GPIO == nil {
		o.GPIO = &gpio.Cdev{}
	}
	r.lines = gpio.New(o.GPIO, o.Parked)
	bucket, err := r.store.Bucket(powerBucket)
	if err != nil {
		return err
	}
	var records power.Store = powerRecords{bucket}
	if o.Wanted != nil {
		records = o.Wanted(records)
	}
	r.gauges.marked = map[int]phone.Gauge{}
	usb := &power.USB{Sysfs: r.config.USB.Sysfs}
	r.hubs = usb
	var hubs power.Hubs = usb
	outlets := o.Outlets
	if outlets == nil {
		wanted, err := records.Load()
		if err != nil {
			return err
		}
		pins := r.takeLines(o, wanted)
		if outlets, err = power.Outlets(b, pins, usb); err != nil {
			r.log.Error("a part of the phones' power cannot be switched", "err", err) // phones work without
		}
	}
	if o.Hubs != nil {
		hubs = o.Hubs
	}
	if len(outlets) == 0 {
		return nil
	}
	off := time.Duration(r.config.Health.Ladder.OffTime)
	for i := range outlets {
		outlets[i].OffTime = max(outlets[i].OffTime, off)
	}
	r.power, err = power.New(power.Config{
		Outlets: outlets, Uplink: b.Uplink, Stagger: max(b.Power.Stagger, 1), // none is none, and not the usual one
		Concurrent: b.Power.Concurrent,
		Store:      records, Phones: onTheBus{r}, Hubs: hubs, Logger: r.logOf(powerPart),
	})
	if err != nil {
		return fmt.Errorf("prepare the phones' power: %w", err)
	}
	return nil
}

// takeLines requests the lines that hubs are fed by, at the level that they have, and gives them by the names of the hubs. A
// hub whose line cannot be had is left out.
func (r *Rack) takeLines(o Options, wanted map[string]power.Record) map[string]power.Pin {
	pins := map[string]power.Pin{}
	for _, h := range r.config.Board.Hubs {
		if h.Feed != board.Lines {
			continue
		}
		on := h.On
		if known, ok := wanted["hub "+h.Name]; ok {
			on = known.On
		}
		pin, err := r.takeLine(h, on, o.Descriptors)
		if err != nil {
			r.log.Error("a hub cannot be switched", "hub", h.Name, "err", err)
			continue
		}
		pins[h.Name] = pin
	}
	for _, name := range r.lines.Leftover() {
		r.drop(o.Descriptors, name)
	}
	return pins
}

func (r *Rack) takeLine(h board.Hub, on bool, store Descriptors) (*gpio.Pin, error) {
	spec := lineSpec(h.Line, linePrefix+h.Path)
	initial := gpio.Initial{Active: on, Keep: true}
	pin, err := r.lines.Output(spec, initial)
	if errors.Is(err, gpio.ErrForeign) { // the board file has changed: what was parked is another line
		r.drop(store, spec.Consumer)
		pin, err = r.lines.Output(spec, initial)
	}
	if err != nil {
		return nil, err
	}
	r.pins = append(r.pins, pin)
	if store == nil || pin.Adopted() {
		return pin, nil
	}
	name, copied, err := pin.Park()
	if err == nil {
		err = store.Store(name, copied)
	}
	if err != nil {
		r.log.Warn("a hub's line is not kept over a restart", "hub", h.Name, "err", err)
	}
	return pin, nil
}

// drop has the store of descriptors let go of a line.
func (r *Rack) drop(store Descriptors, name string) {
	if store == nil {
		return
	}
	if err := store.Drop(name); err != nil {
		r.log.Warn("a line that nobody needs is still held", "line", name, "err", err)
	}
}

// lineSpec names a line of the board file.
func lineSpec(l board.Line, consumer string) gpio.Spec {
	return gpio.Spec{Name: l.Name, Chip: l.Chip, Offset: l.Offset, ActiveLow: l.ActiveLow, Consumer: consumer}
}

// closePins gives the lines back; their levels stay.
func (r *Rack) closePins() {
	for _, p := range r.pins {
		if err := p.Close(); err != nil {
			r.log.Warn("a line was not given back", "line", p.Name(), "err", err)
		}
	}
}

// onTheBus tells which phones are there. It implements power.Phones.
type onTheBus struct{ r *Rack }

// Present implements power.Phones: a phone with a connection is asked, since a port that a request has switched may leave a
// dead one on the kernel's list.
func (p onTheBus) Present(slots []int) (there []int) {
	ctx, cancel := context.WithTimeout(context.Background(), presentTimeout)
	defer cancel()
	var (
		mu     sync.Mutex // guards there
		asking sync.WaitGroup
	)
	for _, n := range slots {
		s := p.r.slots[n]
		if s == nil {
			continue
		}
		asking.Go(func() {
			defer s.survive("asking whether a phone is there")
			if !s.present(ctx) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			there = append(there, n)
		})
	}
	asking.Wait()
	slices.Sort(there)
	return there
}

// present tells whether the slot's phone is on the bus. One whose link has broken because it left is gone, although the kernel may
// list it for some time; one that is only slow to answer is there.
func (s *slot) present(ctx context.Context) bool {
	_, l := s.snapshot()
	if usb, ok := s.source.(*usbSource); ok {
		_, until, here := usb.present()
		if !here || l == nil && s.hasLeft(until) {
			return false
		}
	} else if l == nil {
		return false
	}
	if l == nil {
		return true // listed, and not to be asked
	}
	_, err := l.conn.Shell(ctx, "echo")
	return err == nil || l.conn.Err() == nil && ctx.Err() != nil
}

// outletOf gives the outlet that feeds a slot: its port's own, or with whole the hub's.
func (r *Rack) outletOf(slot int, whole bool) (power.State, bool) {
	if r.power == nil {
		return power.State{}, false
	}
	for _, o := range r.power.States() {
		if slices.Contains(o.Slots, slot) && (len(o.Slots) > 1) == whole {
			return o, true
		}
	}
	return power.State{}, false
}
