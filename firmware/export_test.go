package firmware

import (
	"context"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/agent/skill/registry"
	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/firmware/metrics"
	"phonerack/firmware/remembered"
	"phonerack/firmware/signpost"
	"phonerack/firmware/status"
	"phonerack/firmware/store"
	"phonerack/hal/board"
	"phonerack/hal/led"
	"phonerack/hal/power"
	"phonerack/sync/fleet"
	"phonerack/sync/wire"
)

// LeasesOf lets a test be somebody else: whoever connects to the control socket is the test's own user.
func LeasesOf(r *Rack) *lease.Table { return r.leases }

// PresentOn gives those of the slots whose phone is there, as what switches their power is told.
func PresentOn(r *Rack, slots ...int) []int { return onTheBus{r}.Present(slots) }

// WrittenOf is what the database holds of a task.
func WrittenOf(r *Rack, id string) (action.TaskStatus, error) { return r.taskLog.get(id) }

// BlockStore keeps the writer of the database until the test lets go.
func BlockStore(r *Rack, letGo <-chan struct{}) error {
	bucket, err := r.store.Bucket(powerBucket)
	if err != nil {
		return err
	}
	taken := make(chan struct{})
	go bucket.Update(func(*bolt.Bucket) error {
		close(taken)
		<-letGo
		return errLookOnly
	})
	<-taken
	return nil
}

// refusing takes so many more notes.
type refusing struct {
	notes
	left int
}

func (r *refusing) Update(fn func(*bolt.Bucket) error) error {
	if r.left--; r.left < 0 {
		return store.ErrFull
	}
	return r.notes.Update(fn)
}

// RefuseNotes has the disk take so many more notes of slots that people want left alone.
func RefuseNotes(r *Rack, left int) { r.care.hands.bucket = &refusing{r.care.hands.bucket, left} }

// Ordered names what the cloud may ask for, and Order does it.
func Ordered() []string { return ordered }

// Order does a command of the cloud.
func Order(ctx context.Context, r *Rack, c wire.Command) (fleet.Report, error) {
	return phones{r}.Execute(ctx, c)
}

// WantHelpers notes that a person had the helper apps installed on the phone in the slot.
func WantHelpers(r *Rack, slot int) error {
	_, l := r.slots[slot].snapshot()
	return l.entry.Update(func(p *remembered.Phone) { p.Helpers = true })
}

// CallElsewhere has a task of the cloud call a tool of an MCP server. It cannot be called: the test ends if it comes so far.
func CallElsewhere(ctx context.Context, l *lease.Lease, wrote func() error) error {
	t := &task{lease: l, granted: &fleet.Assignment{Wrote: wrote}}
	_, err := t.calls(registry.Tool{Name: "mcp:files/read"})(ctx, nil)
	return err
}

// HubsOver watches hubs for over-current on a sysfs, with none of their lines.
func HubsOver(sysfs string, hubs []board.Hub, slots ...board.Slot) func(now, named time.Duration) []string {
	c := &overcurrent{hubs: hubs, slots: slots, usb: &power.USB{Sysfs: sysfs}, counts: map[port]int{}, until: map[string]time.Duration{}}
	return c.hubsNow
}

// ShownBy is what the rack's first light shows.
func ShownBy(r *Rack) led.Condition { return r.care.lights[0][0].Shows() }

// ShownWith is what it shows when the controller's check has found this.
func ShownWith(r *Rack, all []health.Finding) led.Condition {
	r.care.mu.Lock()
	r.care.findings = all
	r.care.mu.Unlock()
	r.care.shine()
	return ShownBy(r)
}

// CodeOf is what the QR code on a slot's phone says; "" if it shows none.
func CodeOf(r *Rack, slot int) string {
	x := r.care.signs.of(slot)
	if x == nil {
		return ""
	}
	return signpost.Sign{Addresses: x.urls, Path: x.pass}.Code()
}

// PageOf is the technician's page of a rack.
func PageOf(r *Rack) *status.Page { return r.page }

// SourceOf is what the page shows of a rack.
func SourceOf(r *Rack) status.Source { return r.source }

// MetricsOf is what Prometheus sees of a rack.
func MetricsOf(r *Rack) metrics.Source { return metricSource{r, "test"} }

// LookForChange is one look whether a rack is another one, as they are made while somebody waits.
func LookForChange(r *Rack) {
	r.source.changes.next()
	r.source.changes.compare()
}
