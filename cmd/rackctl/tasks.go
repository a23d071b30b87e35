package main

import (
	"archive/tar"
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"phonerack/cmd/internal/table"
	"phonerack/firmware/action"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

type taskCommands struct {
	Run    taskRun    `cmd:"" help:"Start a task and follow it to its end."`
	Watch  taskWatch  `cmd:"" help:"Follow a task to its end, from its first step on; also one of the cloud."`
	List   taskList   `cmd:"" help:"List tasks, the newest first."`
	Show   taskShow   `cmd:"" help:"Show a task."`
	Cancel taskCancel `cmd:"" help:"Stop a task."`
	Answer taskAnswer `cmd:"" help:"Answer the question of a task that waits."`
	Replay taskReplay `cmd:"" help:"Run a recorded task again on a simulated phone, and compare."`
}

type taskRun struct {
	Slot         int               `required:"" help:"Number of the slot."`
	Goal         string            `required:"" help:"What to reach, in words."`
	Param        map[string]string `mapsep:"none" help:"A value that the goal needs; may be repeated." placeholder:"NAME=VALUE"`
	Steps        int               `help:"At most this many steps." placeholder:"N"`
	Within       time.Duration     `help:"At most this long, such as 10m." placeholder:"DURATION"`
	Tokens       int               `help:"At most this many tokens for the planner, as estimated." placeholder:"N"`
	Permission   []string          `help:"What the task may do besides touching and typing; may be repeated." placeholder:"NAME"`
	Input        map[string]string `mapsep:"none" help:"A file for the task, by the name that the goal calls it; may be repeated." placeholder:"NAME=FILE"`
	Skill        []string          `help:"A skill that bounds and teaches the task, such as local/shop or catalog/search; may be repeated." placeholder:"NAME"`
	ResultSchema string            `help:"A file with the JSON Schema that the result must match; without a match the task does not succeed." placeholder:"FILE"`
	Popups       bool              `help:"Close the usual popups without asking the planner." default:"true" negatable:""`
	Trajectory   string            `help:"Copy pictures and steps into this folder." placeholder:"DIR"`
	Detach       bool              `help:"Only start it."`
}

func (c taskRun) Run(s *session) error {
	args := action.TaskRunArgs{
		SlotArgs: action.SlotArgs{Slot: c.Slot}, Goal: c.Goal, Params: c.Param,
		Steps: c.Steps, Seconds: seconds(c.Within), Tokens: c.Tokens, Permissions: c.Permission, Skills: c.Skill, LeavePopups: !c.Popups,
	}
	var err error
	if args.Inputs, err = s.leave(c.Input); err != nil {
		return err
	}
	if c.ResultSchema != "" {
		if args.ResultSchema, err = os.ReadFile(c.ResultSchema); err != nil {
			return err
		}
		if _, err := resultschema.Parse(args.ResultSchema); err != nil {
			return fmt.Errorf("%s: %w", c.ResultSchema, err)
		}
	}
	var status action.TaskStatus
	if err := s.client.Call(s.ctx, "task_run", args, &status); err != nil {
		return err
	}
	if c.Detach {
		return s.showTask(status)
	}
	if !s.json {
		fmt.Fprintf(s.stdout, "task %s on slot %d (%s)\n", status.ID, status.Slot, table.Plain(status.Serial))
	}
	return s.watch(status.ID, c.Trajectory)
}

type taskWatch struct {
	ID         string `arg:"" help:"Id of the task."`
	Trajectory string `help:"Copy pictures and steps into this folder." placeholder:"DIR"`
}

func (c taskWatch) Run(s *session) error { return s.watch(c.ID, c.Trajectory) }

// watch follows a task to its end and copies its trajectory, unless folder is empty.
func (s *session) watch(id, folder string) error {
	status, err := s.follow(id)
	if s.ctx.Err() != nil {
		fmt.Fprintf(s.stderr, "The task goes on; stop it with: rackctl task cancel %s\n", id)
	}
	if err != nil {
		return err
	}
	end := s.showEnd(status) // first, so that a copy that fails does not take it away
	if folder == "" {
		return end
	}
	return errors.Join(end, s.copyTrajectory(id, folder))
}

// copyTrajectory says on standard error what went wrong: standard output has the task's end already.
func (s *session) copyTrajectory(id, folder string) error {
	err := s.fetch(id, folder)
	if err == nil {
		return nil
	}
	if refusal, ok := errors.AsType[*wire.Refusal](err); ok {
		err = errors.New(refusal.Sentence(s.lang))
	}
	fmt.Fprintf(s.stderr, "rackctl: copy the trajectory: %v\n", err)
	return exitCode(exitRefused)
}

// leave puts files on the rack and returns what they are called there.
func (s *session) leave(files map[string]string) (map[string]string, error) {
	sums := map[string]string{}
	for name, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		var kept action.Input
		err = s.client.Stream(s.ctx, "input_put", struct{}{}, action.Pipes{In: f}, &kept)
		f.Close()
		if err != nil {
			return nil, err
		}
		sums[name] = kept.SHA256
	}
	return sums, nil
}

// follow prints a line for each step and returns how the task ended.
func (s *session) follow(id string) (action.TaskStatus, error) {
	read, write := io.Pipe()
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		s.printSteps(read)
	}()
	status := action.TaskStatus{ID: id}
	err := s.client.Stream(s.ctx, "task_watch", action.TaskArgs{ID: id}, action.Pipes{Out: write}, &status)
	write.Close()
	<-printed
	return status, err
}

// printSteps prints one line for each step.
func (s *session) printSteps(r io.Reader) {
	lines := json.NewDecoder(bufio.NewReader(r))
	for {
		var e action.TaskEvent
		if lines.Decode(&e) != nil {
			io.Copy(io.Discard, r) // the end, or a line that nobody can read: the answer tells the outcome
			return
		}
		if s.json {
			continue
		}
		if e.Status != nil {
			s.printState(*e.Status)
		}
		var one step
		if e.Step == nil || json.Unmarshal(e.Step, &one) != nil {
			continue
		}
		fmt.Fprintf(s.stdout, "step %d: %s -> %s\n", one.N, table.Plain(one.act()), table.Plain(one.came()))
	}
}

// printState tells what holds a task up.
func (s *session) printState(status action.TaskStatus) {
	switch {
	case status.State == action.Paused:
		fmt.Fprintln(s.stdout, "paused: the planner cannot be reached")
	case status.State == action.Waiting && status.Question != nil:
		fmt.Fprintf(s.stdout, "the task asks: %s\nanswer with: rackctl task answer %s ANSWER\n", table.Plain(status.Question.Text), status.ID)
	}
}

// showEnd prints how the task ended; one that did not succeed is exit code 1.
func (s *session) showEnd(status action.TaskStatus) error {
	var err error
	if status.State != action.Succeeded {
		err = exitCode(exitRefused)
	}
	if s.json {
		return errors.Join(s.print(status), err)
	}
	fmt.Fprintf(s.stdout, "%s after %d steps: %s\n", status.State, status.Steps, s.reason(status))
	return err
}

func (s *session) reason(status action.TaskStatus) string {
	if status.Refusal != nil {
		return status.Refusal.Sentence(s.lang)
	}
	return table.Plain(status.Message)
}

type taskList struct {
	Limit int `help:"At most this many." default:"20"`
}

func (c taskList) Run(s *session) error {
	return call(s, "task_list", action.TaskListArgs{Limit: c.Limit}, func(list action.TaskList) error {
		t := table.New(s.stdout, "TASK", "SLOT", "PHONE", "STATE", "STEPS", "STARTED", "BY", "GOAL")
		for _, task := range list.Tasks {
			t.Row(task.ID, strconv.Itoa(task.Slot), task.Serial, string(task.State), strconv.Itoa(task.Steps),
				task.Started.Local().Format(time.DateTime), task.StartedBy, task.Goal)
		}
		return t.Flush()
	})
}

type taskShow struct {
	ID string `arg:"" help:"Id of the task."`
}

func (c taskShow) Run(s *session) error {
	return call(s, "task_status", action.TaskArgs{ID: c.ID}, s.showTask)
}

type taskCancel struct {
	ID string `arg:"" help:"Id of the task."`
}

func (c taskCancel) Run(s *session) error {
	return call(s, "task_cancel", action.TaskArgs{ID: c.ID}, s.showTask)
}

type taskAnswer struct {
	ID     string `arg:"" help:"Id of the task."`
	Answer string `arg:"" help:"What the task is told."`
}

func (c taskAnswer) Run(s *session) error {
	args := action.AnswerArgs{TaskArgs: action.TaskArgs{ID: c.ID}, Answer: c.Answer}
	return call(s, "task_answer", args, s.showTask)
}

func (s *session) showTask(status action.TaskStatus) error {
	if s.json {
		return s.print(status)
	}
	_, err := fmt.Fprintf(s.stdout, "task     %s\nslot     %d (%s)\ngoal     %s\nstate    %s\nsteps    %d\nstarted  %s by %s\n",
		status.ID, status.Slot, table.Plain(status.Serial), table.Plain(status.Goal), status.State, status.Steps,
		status.Started.Local().Format(time.DateTime), table.Plain(status.StartedBy))
	if q := status.Question; err == nil && q != nil {
		_, err = fmt.Fprintf(s.stdout, "asks     %s\n", table.Plain(q.Text))
		for _, o := range q.Options {
			fmt.Fprintf(s.stdout, "         - %s\n", table.Plain(o))
		}
	}
	if err == nil && !status.Ended.IsZero() {
		_, err = fmt.Fprintf(s.stdout, "ended    %s\nmessage  %s\n", status.Ended.Local().Format(time.DateTime), s.reason(status))
	}
	return err
}

// fetch unpacks a task's trajectory into a folder.
func (s *session) fetch(id, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	read, write := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := unpack(read, folder)
		read.CloseWithError(err)
		unpacked <- err
	}()
	err := s.client.Stream(s.ctx, "task_files", action.TaskArgs{ID: id}, action.Pipes{Out: write}, nil)
	write.CloseWithError(err)
	return cmp.Or(<-unpacked, err) // the pipe hands each side's error to the other: one tells it
}

const maxTrajectory = 256 << 20 // bytes

func unpack(r io.Reader, folder string) error {
	limited := io.LimitReader(r, maxTrajectory)
	archive := tar.NewReader(limited)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, limited)
			return err
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || header.Name != filepath.Base(header.Name) || !filepath.IsLocal(header.Name) {
			return fmt.Errorf("the archive holds %q, which is no plain file name", header.Name)
		}
		err = writeWhole(filepath.Join(folder, header.Name), func(w io.Writer) error {
			_, err := io.Copy(w, archive)
			return err
		})
		if err != nil {
			return err
		}
	}
}
