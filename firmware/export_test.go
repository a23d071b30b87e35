package firmware

import (
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/firmware/remembered"
)

// LeasesOf lets a test be somebody else: whoever connects to the control socket is the test's own user.
func LeasesOf(r *Rack) *lease.Table { return r.leases }

// WrittenOf is what the database holds of a task.
func WrittenOf(r *Rack, id string) (action.TaskStatus, error) { return r.taskLog.get(id) }

// WantHelpers notes that a person had the helper apps installed on the phone in the slot.
func WantHelpers(r *Rack, slot int) error {
	_, l := r.slots[slot].snapshot()
	return l.entry.Update(func(p *remembered.Phone) { p.Helpers = true })
}
