package firmware

import (
	"maps"

	"phonerack/firmware/action"
)

// owe keeps a result that could not be written down, most likely because the storage is full. Without it the database
// would go on telling of a task that runs.
func (r *Rack) owe(status action.TaskStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owed[status.ID] = status
}

func (r *Rack) owes(id string) (action.TaskStatus, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	status, ok := r.owed[id]
	return status, ok
}

// payOwed tries to write down what is owed, and to finish the trajectories that belong to it.
func (r *Rack) payOwed() {
	r.mu.Lock()
	owed := maps.Clone(r.owed)
	r.mu.Unlock()
	for id, status := range owed {
		if err := r.taskLog.put(status); err != nil {
			r.log.Warn("a task's result still cannot be written down", "task", id, "err", err)
			return
		}
		r.mu.Lock()
		delete(r.owed, id)
		r.mu.Unlock()
		r.taskLog.conclude(status) // its trajectory found no room either
	}
}
