package runner

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

const askColour = `ask_human {"question":"Which colour?","options":["red","green"]}`

func TestAskingParksTheAttemptUntilAPersonAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, tapAdd, askColour, `input_text {"text":"the red one","element":0,"generation":$gen}`, finishWell)
		told := states(r)
		r.Trajectory = filepath.Join(t.TempDir(), "t")
		var asked tools.Question
		looks := 0
		r.Ask = func(ctx context.Context, q tools.Question) (string, error) {
			asked, looks = q, s.looks
			time.Sleep(time.Hour)
			return "the red one", nil
		}
		var steps []Step
		r.OnStep = func(step Step) { steps = append(steps, step) }
		begun := time.Now()
		wantEnd(t, run(t, r, task), Succeeded, "")
		if asked.Text != "Which colour?" || !slices.Equal(asked.Options, []string{"red", "green"}) || time.Since(begun) < time.Hour {
			t.Errorf("asked %+v", asked)
		}
		if !slices.Equal(*told, []State{Waiting, Running}) || s.looks == looks {
			t.Errorf("told %q, looked %d times after it", *told, s.looks-looks)
		}
		ask := steps[1]
		if ask.Times.Waited != time.Hour.Milliseconds() || ask.Times.All > 1000 || ask.Effect != "not seen" || ask.Outcome != "done" {
			t.Errorf("%+v", ask)
		}
		if got := p.requests[2].UserPrompt; !strings.Contains(got, "\nanswer 2: \"the red one\"\n") || !strings.Contains(got, `past 2: ask_human {"question":"Which colour?",`) {
			t.Errorf("prompt:\n%s", got)
		}
		// What a person answers may be a secret.
		kept, err := os.ReadFile(filepath.Join(r.Trajectory, "steps.jsonl"))
		if err != nil || strings.Contains(string(kept), "the red one") || !strings.Contains(string(kept), `"text":"(answer 2)"`) {
			t.Errorf("%v:\n%s", err, kept)
		}
	})
}

func TestSecretsOfAPersonStayOutOfRecordAndLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, _ := newRunner(s, askColour,
			`input_text {"text":"hunter2","element":0,"generation":"new"}`, // of no form
			`input_text {"text":"hunter2","element":77,"generation":$gen}`, // of no field
			`finish {"message":"the red one"}`)
		r.Trajectory = filepath.Join(t.TempDir(), "t")
		r.Ask = func(context.Context, tools.Question) (string, error) { return "the red one", nil }
		var log bytes.Buffer
		r.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if result := run(t, r, task); result.Message != "the red one" {
			t.Errorf("who asked for it is told %q", result.Message)
		}
		for _, name := range []string{"steps.jsonl", "task.json", "index.html"} {
			b, err := os.ReadFile(filepath.Join(r.Trajectory, name))
			if err != nil || bytes.Contains(b, []byte("hunter2")) || bytes.Contains(b, []byte("the red one")) {
				t.Errorf("%s: %v\n%s", name, err, b)
			}
		}
		if bytes.Contains(log.Bytes(), []byte("hunter2")) || bytes.Contains(log.Bytes(), []byte("the red one")) {
			t.Errorf("log\n%s", &log)
		}
	})
}

func TestQuestionsWithoutAnAnswer(t *testing.T) {
	block := func(ctx context.Context, _ tools.Question) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	for _, c := range []struct {
		name  string
		ask   func(ctx context.Context, q tools.Question) (string, error)
		code  wire.Code // of the end
		step  wire.Code
		took  time.Duration
		after time.Duration // when somebody cancels; 0 never
	}{
		{"by the deadline", block, wire.QuestionUnanswered, wire.QuestionUnanswered, time.Hour, 0},
		{"by the deadline, as the cause of the end tells it", func(ctx context.Context, _ tools.Question) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}, wire.QuestionUnanswered, wire.QuestionUnanswered, time.Hour, 0},
		{"the rack says that nobody answers", func(context.Context, tools.Question) (string, error) {
			return "", wire.Refuse(wire.QuestionUnanswered, map[string]any{"question": "x"})
		}, wire.QuestionUnanswered, wire.QuestionUnanswered, 0, 0},
		{"cancelled", block, wire.TaskCancelled, wire.TaskCancelled, time.Minute, time.Minute},
		{"the question cannot be put", func(context.Context, tools.Question) (string, error) {
			return "", wire.Refuse(wire.LimitExceeded, nil)
		}, "", wire.LimitExceeded, 0, 0},
		{"a fault", func(context.Context, tools.Question) (string, error) { return "", errors.New("boom") }, wire.Internal, wire.Internal, 0, 0},
	} {
		bubble(t, c.name, func(t *testing.T) {
			s := &stage{app: "a.shop"}
			r, _ := newRunner(s, askColour, finishWell)
			r.Ask = c.ask
			told := states(r)
			var first Step
			r.OnStep = func(step Step) {
				if step.N == 1 {
					first = step
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.after > 0 {
				time.AfterFunc(c.after, cancel)
			}
			timed := task
			timed.Deadline = time.Now().Add(time.Hour)
			begun := time.Now()
			result, err := r.Run(ctx, timed)
			if err != nil || time.Since(begun) != c.took {
				t.Errorf("%v after %s", err, time.Since(begun))
			}
			outcome := Failed
			switch c.code {
			case "":
				outcome = Succeeded
			case wire.TaskCancelled:
				outcome = Cancelled
			}
			wantEnd(t, result, outcome, c.code)
			if first.Code() != c.step || !slices.Equal(*told, []State{Waiting, Running}) || len(s.did) > 0 {
				t.Errorf("%+v, told %q", first, *told)
			}
		})
	}
}

func TestNobodyIsAskedWhereNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newRunner(&stage{app: "a.shop"}, askColour, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
		if slices.ContainsFunc(p.requests[0].Tools, func(t planner.Tool) bool { return t.Name == "ask_human" }) {
			t.Error("the tool is offered")
		}
		if !strings.Contains(p.requests[1].UserPrompt, "-> failed unknown_tool ") {
			t.Error(p.requests[1].UserPrompt)
		}
	})
}

func TestResultsAndPicturesOfReadingToolsReachThePlanner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop", pictures: true}
		r, p := newRunner(s, `list_apps {}`, `take_screenshot {}`, tapAdd, finishWell)
		r.Reads = store{}
		wantEnd(t, run(t, r, task), Succeeded, "")
		if got := p.requests[3].UserPrompt; !strings.Contains(got, "\nresult 1: \"") || !strings.Contains(got, `a.shop`) || !strings.Contains(got, "past 2: take_screenshot {} -> done; no change\n") {
			t.Errorf("prompt:\n%s", got)
		}
		for i, req := range p.requests {
			if (req.Screen != nil) != (i == 2) {
				t.Errorf("request %d: a picture of %d bytes", i+1, len(req.Screen))
			}
		}
	})
}

func TestPermissionsDecideWhatIsOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := `stop_app {"package":"a.shop"}`
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, stop, finishWell)
		permitted := task
		permitted.Permissions = []string{tools.PermitStop}
		wantEnd(t, run(t, r, permitted), Succeeded, "")
		with := len(p.requests[0].Tools)
		r, p = newRunner(s, stop, finishWell)
		wantEnd(t, run(t, r, task), Succeeded, "")
		if without := len(p.requests[0].Tools); with != without+1 {
			t.Errorf("%d tools with the permission, %d without", with, without)
		}
		if !strings.Contains(p.requests[1].UserPrompt, "-> failed unknown_tool ") {
			t.Error(p.requests[1].UserPrompt)
		}
		permitted.Permissions = []string{"everything"}
		if _, err := r.Run(t.Context(), permitted); !wire.Is(err, wire.BadRequest) {
			t.Error(err)
		}
	})
}
