package runner

import (
	"encoding/json"
	"image"
	"strings"
	"testing"
	"testing/synctest"

	"phonerack/agent/perception"
	"phonerack/agent/planner"
	"phonerack/agent/tools"
	"phonerack/sync/wire"
)

func TestTokensAreABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, tapAdd)
		small := task
		small.Tokens = 6000
		result := run(t, r, small)
		wantEnd(t, result, Failed, wire.TokensSpent)
		if result.Tokens > small.Tokens || result.Tokens < small.Tokens/2 || len(p.requests) != result.Steps || s.count != result.Steps {
			t.Errorf("%+v, asked %d times", result, len(p.requests))
		}
	})
	bubble(t, "too small for one question", func(t *testing.T) {
		r, p := newRunner(&stage{app: "a.shop"}, tapAdd)
		small := task
		small.Tokens = 10
		wantEnd(t, run(t, r, small), Failed, wire.TokensSpent)
		if len(p.requests) > 0 {
			t.Error("the planner was asked")
		}
	})
	bubble(t, "the planner's own count goes before the estimate", func(t *testing.T) {
		s := &stage{app: "a.shop"}
		r, p := newRunner(s, tapAdd, tapAdd, finishWell)
		p.tokens = 7
		var told int
		r.OnStep = func(step Step) { told += step.Tokens }
		if result := run(t, r, task); result.Tokens != 21 || told != 21 {
			t.Errorf("%d tokens, %d told", result.Tokens, told)
		}
	})
}

func TestEstimates(t *testing.T) {
	for size, want := range map[image.Point]int{
		{}: 0, {X: 28, Y: 28}: 1, {X: 29, Y: 28}: 2, {X: 720, Y: 1600}: 26 * 56, {X: 4000, Y: 4000}: 1568, {X: 360, Y: 800}: 13 * 29,
	} {
		if got := pictureTokens(size); got != want {
			t.Errorf("%v: %d, want %d", size, got, want)
		}
	}
	offer := []planner.Tool{{Name: "tap", Description: "Touch an element", InputSchema: json.RawMessage(`{"a":1}`)}}
	if got, want := toolTokens(offer), perception.Tokens("tap")+perception.Tokens("Touch an element")+perception.Tokens(`{"a":1}`); got != want || got < 5 {
		t.Errorf("tools: %d, want %d", got, want)
	}
}

func TestResultsAreBoundedAndTheOldestGo(t *testing.T) {
	var l learned
	for i := range 10 {
		l.add(strings.Repeat(string(rune('a'+i)), 1500))
	}
	if l.bytes > maxLearned || len(l.lines) != 5 || l.lines[4][0] != 'j' || l.lines[0][0] != 'f' {
		t.Errorf("%d lines of %d bytes", len(l.lines), l.bytes)
	}
	l.add(strings.Repeat("z", 2*maxLearned)) // more than there is room for: it alone stays
	if len(l.lines) != 1 || l.lines[0][0] != 'z' {
		t.Errorf("%d lines", len(l.lines))
	}
	if tools.MaxResult > maxLearned {
		t.Error("one result does not fit")
	}
}
