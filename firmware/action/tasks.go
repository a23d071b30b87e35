package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"phonerack/agent/skill/toolset"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

// TaskRunArgs are the arguments of task_run.
type TaskRunArgs struct {
	SlotArgs
	Goal    string            `json:"goal" doc:"what to reach, in words"`
	Params  map[string]string `json:"params,omitempty" doc:"values that the goal needs"`
	Steps   int               `json:"steps,omitempty" doc:"at most so many steps; 40 if not given"`
	Seconds int               `json:"seconds,omitempty" doc:"at most so long; 10 minutes if not given"`
	Tokens  int               `json:"tokens,omitempty" doc:"at most so many tokens for the planner, as estimated; no bound if not given"`

	Permissions []string          `json:"permissions,omitempty" doc:"what the task may do besides touching and typing, such as install"`
	Inputs      map[string]string `json:"inputs,omitempty" doc:"files for the task: a name, and the sha256 that input_put gave"`
	Skills      []string          `json:"skills,omitempty" doc:"skills of the registry and of the catalog that bound and teach the task, such as local/shop or catalog/search"`
	LeavePopups bool              `json:"leave_popups,omitempty" doc:"leave every popup to the planner"`

	ResultSchema json.RawMessage `json:"result_schema,omitempty" doc:"a JSON Schema that the result of a success must match"`
}

const (
	defaultSteps  = 40
	maxSteps      = 500
	defaultWithin = 10 * time.Minute
	maxWithin     = 6 * time.Hour
	maxGoal       = 4000 // bytes
	maxTokens     = 100_000_000
	maxInputs     = 16

	// MaxAnswer bounds the answer to a task's question, in bytes.
	MaxAnswer = 2000
)

var (
	inputName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	inputSum  = regexp.MustCompile(`^[0-9a-f]{64}$`)
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
	case a.Tokens < 0 || a.Tokens > maxTokens:
		return fmt.Errorf("tokens must be from 1 to %d", maxTokens)
	case len(a.Skills) > toolset.MaxSkills:
		return fmt.Errorf("a task takes at most %d skills", toolset.MaxSkills)
	case len(a.Inputs) > maxInputs:
		return fmt.Errorf("a task takes at most %d files", maxInputs)
	}
	known := tools.Permissions()
	for _, p := range a.Permissions {
		if !slices.Contains(known, p) {
			return fmt.Errorf("there is no permission %.40q; the permissions are %s", p, strings.Join(known, ", "))
		}
	}
	for name, sum := range a.Inputs {
		if !inputName.MatchString(name) {
			return fmt.Errorf("%.80q is no name for a file: use letters, digits, dot, _ and -", name)
		}
		if !inputSum.MatchString(sum) {
			return fmt.Errorf("the file %s is not named by the sha256 that input_put gave", name)
		}
	}
	return nil
}

// TaskArgs name a task.
type TaskArgs struct {
	ID string `json:"id" doc:"id of the task"`
}

// AnswerArgs are the arguments of task_answer.
type AnswerArgs struct {
	TaskArgs
	Answer string `json:"answer" doc:"what the task is told"`
}

func (a *AnswerArgs) validate() error {
	if strings.TrimSpace(a.Answer) == "" || len(a.Answer) > MaxAnswer {
		return fmt.Errorf("an answer has 1 to %d bytes", MaxAnswer)
	}
	return nil
}

// Input is the result of input_put.
type Input struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
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
		define(Definition{Name: "task_answer", Summary: "answer the question of a task that waits", Role: Operator, Timeout: quick}, taskAnswer),
		define(Definition{
			Name: "input_put", Summary: "leave a file for tasks", Role: Operator, Idempotent: true, Streams: Upload, Timeout: fileTimeout,
		}, inputPut),
		define(Definition{Name: "task_watch", Summary: "follow a task's steps to its end", Role: Viewer, Idempotent: true, Streams: Download, Timeout: watchTimeout}, taskWatch),
		define(Definition{Name: "task_files", Summary: "fetch a task's trajectory as a tar archive", Role: Operator, Idempotent: true, Streams: Download, Timeout: fileTimeout}, taskFiles),
	}
}

// Spec checks the arguments and fills in what is not given.
func (a *TaskRunArgs) Spec() (TaskSpec, error) {
	if err := a.validate(); err != nil {
		return TaskSpec{}, err
	}
	result, err := resultschema.Parse(a.ResultSchema)
	if err != nil {
		return TaskSpec{}, err
	}
	spec := TaskSpec{
		Slot: a.Slot, Goal: a.Goal, Params: a.Params,
		Steps: a.Steps, Within: time.Duration(a.Seconds) * time.Second, Tokens: a.Tokens,
		Permissions: a.Permissions, Inputs: a.Inputs, Skills: a.Skills, LeavePopups: a.LeavePopups, Result: result,
	}
	if spec.Steps == 0 {
		spec.Steps = defaultSteps
	}
	if spec.Within == 0 {
		spec.Within = defaultWithin
	}
	return spec, nil
}

func taskRun(ctx context.Context, c *call, args *TaskRunArgs) (any, error) {
	spec, err := args.Spec()
	if err != nil {
		return nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": err.Error()})
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

func taskAnswer(_ context.Context, c *call, args *AnswerArgs) (any, error) {
	return c.rack.AnswerTask(args.ID, args.Answer, c.actor.Name)
}

func inputPut(ctx context.Context, c *call, _ *struct{}) (any, error) {
	return c.rack.PutInput(ctx, c.pipes.In)
}

// taskWatch writes one TaskEvent a line; the result is the status at the end.
func taskWatch(ctx context.Context, c *call, args *TaskArgs) (any, error) {
	lines := json.NewEncoder(c.pipes.Out)
	var end TaskStatus
	err := c.rack.WatchTask(ctx, args.ID, func(e TaskEvent) error {
		if e.Status != nil {
			end = *e.Status
		}
		return lines.Encode(e)
	})
	return end, err
}

func taskFiles(ctx context.Context, c *call, args *TaskArgs) (any, error) {
	return Done{}, c.rack.TaskFiles(ctx, args.ID, c.pipes.Out)
}
