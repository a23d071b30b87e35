package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"

	"phonerack/cloud/api"
	"phonerack/cloud/fleet"
	"phonerack/cmd/internal/table"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

const (
	pollEvery    = 300 * time.Millisecond
	maxTaskBytes = 256 << 10
)

type taskCommands struct {
	Submit  taskSubmit  `cmd:"" help:"Submit a task."`
	List    taskList    `cmd:"" help:"List tasks, newest first."`
	Show    taskShow    `cmd:"" help:"Show a task with its attempts."`
	Cancel  taskCancel  `cmd:"" help:"End a task."`
	Answer  taskAnswer  `cmd:"" help:"Answer the question of a task that waits."`
	Requeue taskRequeue `cmd:"" help:"Queue a lost or failed task again; it may do twice what it has done."`
}

type taskSubmit struct {
	Goal         string            `help:"What to reach, in words."`
	File         string            `help:"The task as a JSON file, as on the wire, instead of the other flags." placeholder:"FILE"`
	Rack         string            `help:"Only this rack."`
	Slot         int               `help:"Only this slot."`
	Phone        string            `help:"Only the phone with this serial number."`
	Tag          string            `help:"Only racks with this tag."`
	App          string            `help:"Only phones with this package."`
	Skill        []string          `help:"A skill of the rack that bounds and teaches the task, such as catalog/search or local/shop; may be repeated." placeholder:"NAME"`
	Param        map[string]string `mapsep:"none" help:"A value that the goal needs; may be repeated." placeholder:"NAME=VALUE"`
	Input        map[string]string `mapsep:"none" help:"A file that the task needs, of at most 8 MiB; four at most." placeholder:"NAME=FILE"`
	Permission   []string          `help:"What the task may do besides touching and typing; may be repeated." placeholder:"NAME"`
	Steps        int               `help:"At most this many steps." placeholder:"N"`
	Within       time.Duration     `help:"At most this long once it runs." placeholder:"DURATION"`
	Tokens       int               `help:"At most this many tokens." placeholder:"N"`
	Start        time.Time         `help:"Not before, RFC 3339." placeholder:"TIME"`
	Deadline     time.Time         `help:"Fails if it is still queued then, RFC 3339." placeholder:"TIME"`
	Priority     int               `help:"The higher, the sooner."`
	ResultSchema string            `help:"A file with the JSON Schema that the result must match; without a match the task does not succeed." placeholder:"FILE"`
	Repeatable   bool              `help:"It may be done again after an attempt that was lost."`
	Key          string            `help:"The same key again is the same task, not a second one."`
	Wait         waitFlag          `help:"Wait for its end, with --wait=DURATION so long at most; the exit code is 1 unless it succeeded."`
}

func (c taskSubmit) Run(s *session) error {
	t, err := c.task()
	if err != nil {
		return err
	}
	if t.Inputs, err = s.upload(t.Inputs, c.Input); err != nil {
		return err
	}
	var v fleet.Task
	if err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/tasks", nil, fleet.NewTask{Key: c.Key, Task: t}, &v); err != nil {
		return err
	}
	if !c.Wait.on {
		return show(s, v, nil, func(v fleet.Task) error {
			_, err := fmt.Fprintln(s.stdout, v.TaskID)
			return err
		})
	}
	return s.await(v.TaskID, c.Wait)
}

func (c taskSubmit) task() (wire.Task, error) {
	var t wire.Task
	if c.File != "" {
		rest := c
		rest.File, rest.Key, rest.Wait = "", "", waitFlag{}
		if !reflect.ValueOf(rest).IsZero() {
			return t, fmt.Errorf("%w: --file holds the whole task: no other flag besides --key and --wait goes with it", errUsage)
		}
		raw, err := readFile(c.File, maxTaskBytes)
		if err != nil {
			return t, err
		}
		if err := wire.Unmarshal(raw, &t); err != nil {
			return t, fmt.Errorf("%s is no task: %w", c.File, err)
		}
		return t, nil
	}
	if c.Goal == "" {
		return t, fmt.Errorf("%w: name the --goal, or a --file with the task", errUsage)
	}
	t = wire.Task{
		Goal: c.Goal, Target: wire.Target{Rack: c.Rack, Slot: c.Slot, Phone: c.Phone, Tag: c.Tag, App: c.App}, Skills: c.Skill, Params: c.Param,
		Permissions: c.Permission, Budget: wire.Budget{Steps: c.Steps, MS: c.Within.Milliseconds(), Tokens: c.Tokens}, Priority: c.Priority, Repeatable: c.Repeatable,
	}
	if !c.Start.IsZero() {
		t.NotBefore = c.Start.UnixMilli()
	}
	if !c.Deadline.IsZero() {
		t.Deadline = c.Deadline.UnixMilli()
	}
	if c.ResultSchema != "" {
		raw, err := readFile(c.ResultSchema, maxTaskBytes)
		if err != nil {
			return t, err
		}
		if _, err := resultschema.Parse(raw); err != nil {
			return t, fmt.Errorf("%s: %w", c.ResultSchema, err)
		}
		t.ResultSchema = raw
	}
	return t, nil
}

// upload has the cloud keep files, and names them.
func (s *session) upload(inputs []wire.Input, files map[string]string) ([]wire.Input, error) {
	if len(files) > wire.MaxInputs {
		return nil, fmt.Errorf("%w: a task has at most %d files", errUsage, wire.MaxInputs)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		body, err := readInput(files[name])
		if err != nil {
			return nil, err
		}
		raw, err := s.client.send(s.ctx, http.MethodPost, "/v1/admin/files", nil, "application/octet-stream", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		var f fleet.File
		if err := json.Unmarshal(raw, &f); err != nil {
			return nil, fmt.Errorf("the answer of rackcloud cannot be read: %w", err)
		}
		inputs = append(inputs, wire.Input{Name: name, SHA256: f.SHA256, Size: f.Size})
	}
	return inputs, nil
}

func readInput(path string) ([]byte, error) {
	body, err := readFile(path, wire.MaxInput)
	if err == nil && len(body) == 0 {
		err = fmt.Errorf("%s is empty: a file of a task has 1 to %d bytes", path, wire.MaxInput)
	}
	return body, err
}

// await follows a task to its end, or as long as it is to wait.
func (s *session) await(id string, w waitFlag) error {
	last, end := wire.TaskState(""), w.end()
	for {
		var v fleet.Task
		if err := s.client.call(s.ctx, http.MethodGet, "/v1/admin/tasks/"+url.PathEscape(id), nil, nil, &v); err != nil {
			return err
		}
		if v.State != last && !s.json {
			fmt.Fprintf(s.stdout, "%s %s\n", id, v.State)
			if v.Question != nil {
				fmt.Fprintf(s.stdout, "asks: %s\n", table.Plain(v.Question.Text))
			}
		}
		last = v.State
		if v.State.Over() || passed(end) {
			if err := s.showTask(v, nil); err != nil {
				return err
			}
			if v.State != wire.TaskSucceeded {
				return exitCode(exitRefused)
			}
			return nil
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

type taskList struct {
	State []string `help:"Only tasks in this state; may be repeated." enum:"queued,leased,running,waiting,succeeded,failed,cancelled,lost" placeholder:"STATE"`
	Rack  string   `help:"Only tasks whose attempt in force is this rack's."`
	Limit uint     `help:"At most so many; 0 for all." default:"50"`
}

func (c taskList) Run(s *session) error {
	q := url.Values{"state": c.State}
	if c.Rack != "" {
		q.Set("rack", c.Rack)
	}
	all, err := list[fleet.Task](s, "/v1/admin/tasks", q, int(c.Limit))
	return show(s, all, err, func(all []fleet.Task) error {
		t := table.New(s.stdout, "TASK", "STATE", "ATTEMPT", "CREATED", "ENDED", "GOAL")
		for _, v := range all {
			t.Row(v.TaskID, string(v.State), strconv.Itoa(v.Attempt), when(v.Created), when(v.Ended), shorten(v.Goal))
		}
		return t.Flush()
	})
}

// shorten keeps a line a line.
func shorten(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return text
}

type taskArg struct {
	Task string `arg:"" help:"Id of the task."`
}

type taskShow struct{ taskArg }

func (c taskShow) Run(s *session) error { return s.actOnTask(http.MethodGet, c.Task, "", nil) }

type taskCancel struct{ taskArg }

func (c taskCancel) Run(s *session) error {
	return s.actOnTask(http.MethodPost, c.Task, "/cancel", struct{}{})
}

type taskRequeue struct{ taskArg }

func (c taskRequeue) Run(s *session) error {
	return s.actOnTask(http.MethodPost, c.Task, "/requeue", struct{}{})
}

type taskAnswer struct {
	taskArg
	Text     string `arg:"" help:"The answer."`
	Question string `help:"Id of the question that is answered, as task show tells it; the one that is open now without it." placeholder:"ID"`
}

func (c taskAnswer) Run(s *session) error {
	if c.Text == "" {
		return fmt.Errorf("%w: the answer is empty", errUsage)
	}
	if c.Question == "" { // the one that is open now, and none that comes while the answer is on its way
		var v fleet.Task
		if err := s.client.call(s.ctx, http.MethodGet, "/v1/admin/tasks/"+url.PathEscape(c.Task), nil, nil, &v); err != nil {
			return err
		}
		if v.Question != nil {
			c.Question = v.Question.QuestionID
		}
	}
	return s.actOnTask(http.MethodPost, c.Task, "/answer", map[string]string{"text": c.Text, "question_id": c.Question})
}

func (s *session) actOnTask(method, id, act string, body any) error {
	var v fleet.Task
	err := s.client.call(s.ctx, method, "/v1/admin/tasks/"+url.PathEscape(id)+act, nil, body, &v)
	return s.showTask(v, err)
}

func (s *session) showTask(v fleet.Task, err error) error {
	return show(s, v, err, func(v fleet.Task) error {
		fmt.Fprintf(s.stdout, "%s: %s\n%s\n", v.TaskID, v.State, table.Plain(v.Goal))
		if v.Cancel {
			fmt.Fprintln(s.stdout, "it is to be ended; the rack has not said so yet")
		}
		if v.Question != nil {
			fmt.Fprintf(s.stdout, "asks (question %s): %s\n", table.Plain(v.Question.QuestionID), table.Plain(v.Question.Text))
			for _, choice := range v.Question.Choices {
				fmt.Fprintf(s.stdout, "  - %s\n", table.Plain(choice))
			}
		}
		switch {
		case v.Error != nil:
			fmt.Fprintln(s.stdout, v.Error.Sentence(s.lang))
		case v.State == wire.TaskStopped && len(v.Attempts) == 0:
			fmt.Fprintln(s.stdout, "it was cancelled before a rack had it; rackcloud audit says by whom")
		}
		if len(v.Attempts) == 0 {
			return nil
		}
		t := table.New(s.stdout, "ATTEMPT", "RACK", "SLOT", "STATE", "STEPS", "STARTED", "ENDED", "MESSAGE")
		for _, a := range v.Attempts {
			message := a.Message
			if a.Error != nil {
				message = a.Error.Sentence(s.lang)
			}
			t.Row(strconv.Itoa(a.Attempt), a.Rack, slotText(a.Slot), a.State, strconv.Itoa(a.Steps), when(a.Started), when(a.Ended), message)
		}
		return t.Flush()
	})
}

type decisionsCommand struct {
	taskArg
	Attempt uint `help:"Only this attempt."`
}

func (c decisionsCommand) Run(s *session) error {
	q := url.Values{}
	if c.Attempt > 0 {
		q.Set("attempt", strconv.FormatUint(uint64(c.Attempt), 10))
	}
	all, err := list[api.Decision](s, "/v1/admin/tasks/"+url.PathEscape(c.Task)+"/decisions", q, 0)
	return show(s, all, err, func(all []api.Decision) error {
		t := table.New(s.stdout, "ATTEMPT", "STEP", "TIME", "TOOL", "ARGUMENTS", "TOKENS")
		for _, d := range all {
			args, _ := json.Marshal(d.Arguments) // it came as JSON
			t.Row(strconv.Itoa(d.Attempt), strconv.Itoa(d.StepIndex), when(d.At), d.ToolName, shorten(string(args)), strconv.FormatInt(d.TokensIn+d.TokensOut, 10))
		}
		return t.Flush()
	})
}
