package runner

import (
	"strings"
	"testing"
	"testing/synctest"

	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

const priced = `{"type":"object","required":["price"],"properties":{"price":{"type":"number"}}}`

func wants(t *testing.T) Task {
	t.Helper()
	schema, err := resultschema.Parse([]byte(priced))
	if err != nil {
		t.Fatal(err)
	}
	task := task
	task.Result = schema
	return task
}

func TestThePlannerIsToldTheSchemaAndCorrectsItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newRunner(&stage{app: "a.shop"}, `finish {"message":"done"}`, `finish {"message":"done","result":{"price":"4"}}`, `finish {"message":"done","result":{"price":4}}`)
		result := run(t, r, wants(t))
		wantEnd(t, result, Succeeded, "")
		if result.Steps != 3 || string(result.Object) != `{"price":4}` {
			t.Errorf("%+v", result)
		}
		if len(p.requests) != 3 {
			t.Fatalf("%d questions", len(p.requests))
		}
		for _, req := range p.requests {
			if !strings.Contains(req.UserPrompt, "\nwanted: "+quote(priced)+"\nstep ") || !strings.Contains(req.SystemPrompt, `The line "wanted"`) {
				t.Errorf("the planner is not told:\n%s\n%s", req.SystemPrompt, req.UserPrompt)
			}
		}
		last := p.requests[2].UserPrompt
		for _, want := range []string{"past 1: finish", "$.result must be there", "$.result.price does not match the schema of the result"} {
			if !strings.Contains(last, want) {
				t.Errorf("%s is missing:\n%s", want, last)
			}
		}
	})
}

func TestAResultThatNeverMatchesIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []any{}
		for range 10 {
			answers = append(answers, `finish {"message":"done"}`)
		}
		r, _ := newRunner(&stage{app: "a.shop"}, answers...)
		wantEnd(t, run(t, r, wants(t)), Failed, wire.LoopDetected)

		task := wants(t)
		task.MaxSteps = 2
		r, _ = newRunner(&stage{app: "a.shop"}, answers...)
		wantEnd(t, run(t, r, task), Failed, wire.BudgetSpent)

		r, _ = newRunner(&stage{app: "a.shop"}, `finish {"success":false,"message":"sold out"}`)
		wantEnd(t, run(t, r, wants(t)), Failed, wire.TaskFailed)
	})
}
