package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/planner"
	"phonerack/agent/planner/remote"
	"phonerack/sync/wire"
)

// cloud is a scripted end: each question gets the next list of lines.
type cloud struct {
	t       *testing.T
	lines   [][]line
	asked   []wire.PlanRequest
	offline time.Duration // until Online returns
}

// line is an answer after a time.
type line struct {
	after time.Duration
	typ   wire.Type
	body  any
	err   error
}

type script struct {
	c     *cloud
	lines []line
}

func (c *cloud) Ask(_ context.Context, q wire.PlanRequest, screen []byte) (remote.Answers, error) {
	c.asked = append(c.asked, q)
	if len(c.lines) == 0 {
		c.t.Fatal("asked once more")
	}
	s := &script{c, c.lines[0]}
	c.lines = c.lines[1:]
	return s, nil
}

func (c *cloud) Online(ctx context.Context) error { return wait(ctx, c.offline) }

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *script) Close() {}

func (s *script) Next(ctx context.Context) (*wire.Message, error) {
	if len(s.lines) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	l := s.lines[0]
	s.lines = s.lines[1:]
	if err := wait(ctx, l.after); err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, l.err
	}
	m, err := wire.NewMessage(l.typ, time.Now(), time.Minute, l.body)
	return m, err
}

func accepted(ms int64) line {
	return line{typ: wire.TypePlanAccepted, body: wire.PlanAccepted{RequestID: "r1", DeadlineMS: ms}}
}

func decision(after time.Duration) line {
	return line{after: after, typ: wire.TypePlanDecision, body: wire.PlanDecision{RequestID: "r1", StepIndex: 4, ToolName: "wait", Arguments: json.RawMessage(`{"seconds":1}`), Tokens: 7}}
}

var gone = line{err: wire.Refuse(wire.PlannerUnreachable, map[string]any{"detail": "gone"})}

func TestATurnEndsWithADecisionOrFails(t *testing.T) {
	for name, c := range map[string]struct {
		lines [][]line
		off   time.Duration
		code  wire.Code // "" for the decision
		took  time.Duration
		asked int
	}{
		"decision":                       {lines: [][]line{{accepted(30000), decision(20 * time.Second)}}, took: 20 * time.Second, asked: 1},
		"answer from the log":            {lines: [][]line{{decision(0)}}, asked: 1},
		"failure":                        {lines: [][]line{{accepted(30000), {typ: wire.TypePlanFailure, body: wire.PlanFailure{RequestID: "r1", Error: wire.Refuse(wire.NoToolCall, nil)}}}}, code: wire.NoToolCall, asked: 1},
		"failure without a reason":       {lines: [][]line{{{typ: wire.TypePlanFailure, body: wire.PlanFailure{RequestID: "r1"}}}}, code: wire.Internal, asked: 1},
		"refused":                        {lines: [][]line{{{err: wire.Refuse(wire.AttemptOver, nil)}}}, code: wire.AttemptOver, asked: 1},
		"nobody takes it":                {lines: [][]line{{}}, code: wire.PlannerUnreachable, took: 10 * time.Second, asked: 1},
		"its deadline passes":            {lines: [][]line{{accepted(30000)}}, code: wire.PlannerTimeout, took: 35 * time.Second, asked: 1},
		"an absurd deadline":             {lines: [][]line{{accepted(1 << 50)}}, code: wire.PlannerTimeout, took: 15*time.Minute + 5*time.Second, asked: 1},
		"a negative deadline":            {lines: [][]line{{accepted(-1)}}, code: wire.PlannerTimeout, took: 5 * time.Second, asked: 1},
		"answer to another question":     {lines: [][]line{{{typ: wire.TypePlanDecision, body: wire.PlanDecision{RequestID: "r0", ToolName: "wait"}}}}, code: wire.Internal, asked: 1},
		"answer of another kind":         {lines: [][]line{{{typ: wire.TypeLease, body: wire.Lease{}}}}, code: wire.Internal, asked: 1},
		"offline before it was taken":    {lines: [][]line{{gone}}, code: wire.PlannerUnreachable, asked: 1},
		"offline after it was taken":     {lines: [][]line{{accepted(30000), gone}, {decision(0)}}, off: 9 * time.Second, took: 9 * time.Second, asked: 2},
		"offline, and asked twice":       {lines: [][]line{{accepted(30000), gone}, {accepted(30000), gone}, {decision(0)}}, off: 9 * time.Second, took: 18 * time.Second, asked: 3},
		"offline for too long":           {lines: [][]line{{accepted(30000), gone}}, off: time.Hour, code: wire.PlannerTimeout, took: 35 * time.Second, asked: 1},
		"asking again buys no more time": {lines: [][]line{{accepted(30000), gone}, {accepted(30000)}}, off: 30 * time.Second, code: wire.PlannerTimeout, took: 35 * time.Second, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := &cloud{t: t, lines: c.lines, offline: c.off}
				begun := time.Now()
				d, err := remote.New("rack-1", end).Decide(t.Context(), planner.Request{RequestID: "r1", TaskID: "t", Attempt: 2, UserPrompt: "p"})
				if took := time.Since(begun); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				if c.code == "" {
					if err != nil || d.Tool != "wait" || d.StepIndex != 4 || d.Tokens != 7 {
						t.Errorf("%+v, %v", d, err)
					}
				} else if !wire.Is(err, c.code) || d.Tool != "" {
					t.Errorf("%+v, %v; want %s", d, err, c.code)
				}
				if len(end.asked) != c.asked {
					t.Errorf("asked %d times", len(end.asked))
				}
				for _, q := range end.asked {
					if q.RequestID != "r1" || q.HostID != "rack-1" || q.TaskID != "t" || q.Attempt != 2 || q.UserPrompt != "p" {
						t.Errorf("asked %+v", q)
					}
				}
			})
		})
	}
}

func TestACancelledTurnSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := &cloud{t: t, lines: [][]line{{accepted(30000)}}}
		why := errors.New("the task was cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := remote.New("rack-1", end).Decide(ctx, planner.Request{RequestID: "r1"}); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}
