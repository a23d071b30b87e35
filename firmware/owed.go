package firmware

import (
	"maps"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/action"
)

// debt is a result that could not be written down yet.
type debt struct {
	status action.TaskStatus
	also   func(*bolt.Tx) error // belongs into the same transaction; nil for a task of this rack alone
	paid   func()               // called once it is written; nil likewise
}

// owe keeps a result that could not be written down, most likely because the storage is full. Without it the database
// would go on telling of a task that runs.
func (r *Rack) owe(d debt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owed[d.status.ID] = d
}

func (r *Rack) owes(id string) (action.TaskStatus, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.owed[id]
	return d.status, ok
}

// payOwed tries to write down what is owed, and to finish the trajectories that belong to it.
func (r *Rack) payOwed() {
	r.mu.Lock()
	owed := maps.Clone(r.owed)
	r.mu.Unlock()
	for id, d := range owed {
		if err := r.taskLog.putWith(d.status, d.also); err != nil {
			r.log.Warn("a task's result still cannot be written down", "task", id, "err", err)
			return
		}
		r.mu.Lock()
		delete(r.owed, id)
		r.mu.Unlock()
		if d.paid != nil {
			d.paid()
		}
		r.taskLog.conclude(d.status) // its trajectory found no room either
	}
}
