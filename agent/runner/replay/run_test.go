package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"phonerack/agent/runner"
	"phonerack/agent/runner/record"
	"phonerack/sync/wire"
)

func TestAGenerationThatWasOfAnotherScreenStaysOfAnother(t *testing.T) {
	for args, want := range map[string]string{
		`{"element":1,"generation":4}`: `{"element":1,"generation":9}`,
		`{"element":1}`:                `{"element":1}`,
		`{"generation":"x"}`:           `{"generation":"x"}`,
	} {
		if got := string(onScreen(json.RawMessage(args), 4, 9)); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	var other struct{ Generation uint64 }
	if err := json.Unmarshal(onScreen(json.RawMessage(`{"generation":3}`), 4, 9), &other); err != nil || other.Generation <= 9 {
		t.Errorf("an old screen became %d, %v", other.Generation, err)
	}
}

func TestTheClockOfARecordGoesForwardOnly(t *testing.T) {
	var told []int64
	p := &player{options: Options{At: func(now time.Time) { told = append(told, now.Unix()) }}}
	for _, s := range []int64{10, 20, 15, 20, 30} {
		p.at(time.Unix(s, 0))
	}
	if !slices.Equal(told, []int64{10, 20, 30}) {
		t.Errorf("told %v", told)
	}
}

func TestTheScreenAfterAnActIsTheNextStepsUnlessThatLookedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		next record.Step
		want bool
	}{
		{"decided on it", record.Step{N: 2}, true},
		{"after another look", record.Step{N: 2, Times: record.Times{Observe: 1}}, false},
		{"after a turn without a decision", record.Step{N: 3}, false},
	} {
		p := &player{acts: []*record.Step{{N: 1}, &c.next}}
		if got := p.after(); (got != nil) != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
		p.taken = 1
		if got := p.after(); got != nil {
			t.Errorf("%s: after the last act comes %+v", c.name, got)
		}
	}
}

func TestAnEndThatPeopleMadeIsNotCompared(t *testing.T) {
	for code, differs := range map[wire.Code]bool{wire.TaskCancelled: false, wire.DeadlinePassed: false, wire.TaskFailed: true} {
		_, stop := context.WithCancelCause(t.Context())
		end := &record.End{Outcome: "failed", Message: "as it was", Refusal: wire.Refuse(code, nil)}
		p := &player{record: &Record{Task: record.Task{End: end}}, stop: stop}
		p.end(runner.Result{Outcome: runner.Succeeded})
		if (p.differs != nil) != differs {
			t.Errorf("%s: %+v", code, p.differs)
		}
		stop(nil)
	}
}

func TestAReplayHasRoomToGoOnWhereTheRecordEnds(t *testing.T) {
	p := &player{record: &Record{}, acts: []*record.Step{{N: 1}, {N: 2}}}
	if got := p.task().MaxSteps; got != 3 { // or it would end as a record whose budget was spent
		t.Errorf("%d steps", got)
	}
}

func TestAnEmptyValueIsGiven(t *testing.T) {
	rec := &Record{
		Task:  record.Task{Params: []string{"note"}},
		Steps: []record.Step{{N: 1, Tool: "input_text", Arguments: json.RawMessage(`{"text":"(param note)"}`)}},
	}
	if name := rec.missing(map[string]string{"note": ""}); name != "" {
		t.Errorf("%q is missing", name)
	}
	if name := rec.missing(nil); name != "note" {
		t.Errorf("%q is missing", name)
	}
}

func TestTheLinesOfADifferenceAreBounded(t *testing.T) {
	var was []string
	for n := range maxLines + 1 {
		was = append(was, fmt.Sprint("line ", n))
	}
	if lines := lineDiff(was[1:], nil); len(lines) != maxLines || lines[maxLines-1] != "- line 12" {
		t.Errorf("all there are: %q", lines)
	}
	if lines := lineDiff(was, nil); len(lines) != maxLines+1 || lines[maxLines] != "and more" {
		t.Errorf("more than there is room for: %q", lines)
	}
}
