package replay

import (
	"fmt"
	"strings"

	"phonerack/agent/runner/record"
	"phonerack/sync/wire"
)

// Record is a trajectory without its pictures.
type Record struct {
	Task  record.Task
	Steps []record.Step
}

// maxScenes bounds the scenes of a record in memory, in bytes. What a runner
// writes is smaller.
const maxScenes = 32 << 20

// Load reads a record from the folder of a trajectory. Its errors are one
// sentence each; those about what the files hold wrap record.ErrDamaged.
func Load(dir string) (*Record, error) {
	task, err := record.ReadTask(dir)
	if err != nil {
		return nil, err
	}
	r := &Record{Task: task}
	scenes := 0
	for s, err := range record.Steps(dir, task.End != nil) {
		if err != nil {
			return nil, err
		}
		if scenes += len(s.Scene); scenes > maxScenes {
			return nil, fmt.Errorf("%w: its screens have more than %d bytes", record.ErrDamaged, maxScenes)
		}
		r.Steps = append(r.Steps, s)
	}
	return r, nil
}

// acts returns the steps that are taken again.
func (r *Record) acts() []*record.Step {
	var acts []*record.Step
	for i := range r.Steps {
		if r.Steps[i].Kind != record.Failed {
			acts = append(acts, &r.Steps[i])
		}
	}
	return acts
}

// decides tells whether the end of the record follows from its steps, and not
// from a person, a clock, a planner or a cable.
func (r *Record) decides() bool {
	if r.Task.End == nil {
		return false
	}
	switch r.Task.End.Code() {
	case "", wire.TaskFailed, wire.LoopDetected, wire.NoProgress, wire.PhoneSetup:
		return true
	}
	return false
}

// missing returns the parameters whose values the record needs and that are not
// given: those that stand in the arguments of an act.
func (r *Record) missing(params map[string]string) string {
	for _, s := range r.acts() {
		for _, name := range r.Task.Params {
			if _, given := params[name]; !given && strings.Contains(string(s.Arguments), "(param "+name+")") {
				return name
			}
		}
	}
	return ""
}
