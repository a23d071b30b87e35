package action

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// TaskRunArgs are the arguments of task_run.
type TaskRunArgs struct {
	SlotArgs
	Goal    string            `json:"goal" doc:"what to reach, in words"`
	Params  map[string]string `json:"params,omitempty" doc:"values that the goal needs"`
	Steps   int               `json:"steps,omitempty" doc:"at most so many steps; 40 if not given"`
	Seconds int               `json:"seconds,omitempty" doc:"at most so long; 10 minutes if not given"`
}

const (
	defaultSteps  = 40
	maxSteps      = 500
	defaultWithin = 10 * time.Minute
	maxWithin     = 6 * time.Hour
	maxGoal       = 4000 // bytes
)

func (a *TaskRunArgs) validate() error {
	switch {
	case strings.TrimSpace(a.Goal) == "":
		return errors.New("a goal must be given")
	case len(a.Goal) > maxGoal:
		return errors.New("the goal is longer than 4000 bytes")
	case a.Steps < 0 || a.Steps > maxSteps:
		return errors.New("steps must be from 1 to 500")
	case a.Seconds < 0 || a.Seconds > int(maxWithin/time.Second):
		return errors.New("seconds must be from 1 to 21600")
	}
	return nil
}

// TaskArgs name a task.
type TaskArgs struct {
	ID string `json:"id" doc:"id of the task"`
}

// TaskListArgs are the arguments of task_list.
type TaskListArgs struct {
	Limit int `json:"limit,omitempty" doc:"at most so many, the newest first; 50 if not given"`
}

// TaskList is the result of task_list.
type TaskList struct {
	Tasks []TaskStatus `json:"tasks"`
}

const (
	watchTimeout = maxWithin + time.Minute
	defaultLimit = 50
)

func taskActions() []entry {
	return []entry{
		define(Definition{Name: "task_run", Summary: "start a task on a phone", Role: Operator, Timeout: touchTimeout}, taskRun),
		define(Definition{Name: "task_list", Summary: "list tasks, the newest first", Role: Viewer, Idempotent: true, Timeout: quick}, taskList),
		define(Definition{Name: "task_status", Summary: "show a task", Role: Viewer, Idempotent: true, Timeout: quick}, taskStatus),
		define(Definition{Name: "task_cancel", Summary: "stop a task", Role: Operator, Idempotent: true, Timeout: quick}, taskCancel),
		define(Definition{Name: "task_watch", Summary: "follow a task's steps to its end", Role: Viewer, Idempotent: true, Streams: Download, Timeout: watchTimeout}, taskWatch),
		define(Definition{Name: "task_files", Summary: "fetch a task's trajectory as a tar archive", Role: Operator, Idempotent: true, Streams: Download, Timeout: fileTimeout}, taskFiles),
	}
}

func taskRun(ctx context.Context, c *call, args *TaskRunArgs) (any, error) {
	spec := TaskSpec{
		Slot: args.Slot, Goal: args.Goal, Params: args.Params,
		Steps: args.Steps, Within: time.Duration(args.Seconds) * time.Second,
	}
	if spec.Steps == 0 {
		spec.Steps = defaultSteps
	}
	if spec.Within == 0 {
		spec.Within = defaultWithin
	}
	return c.rack.StartTask(ctx, spec, c.actor.Name)
}

func taskList(_ context.Context, c *call, args *TaskListArgs) (any, error) {
	limit := args.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	tasks, err := c.rack.Tasks(limit)
	return TaskList{Tasks: tasks}, err
}

func taskStatus(_ context.Context, c *call, args *TaskArgs) (any, error) {
	return c.rack.Task(args.ID)
}

func taskCancel(_ context.Context, c *call, args *TaskArgs) (any, error) {
	return c.rack.CancelTask(args.ID, c.actor.Name)
}

// taskWatch writes one TaskEvent a line; the result is the status at the end.
func taskWatch(ctx context.Context, c *call, args *TaskArgs) (any, error) {
	lines := json.NewEncoder(c.pipes.Out)
	err := c.rack.WatchTask(ctx, args.ID, func(e TaskEvent) error { return lines.Encode(e) })
	if err != nil {
		return nil, err
	}
	return c.rack.Task(args.ID)
}

func taskFiles(ctx context.Context, c *call, args *TaskArgs) (any, error) {
	return Done{}, c.rack.TaskFiles(ctx, args.ID, c.pipes.Out)
}
