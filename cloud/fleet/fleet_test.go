package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

func TestATaskThatCannotBeIsNotQueued(t *testing.T) {
	b := newBench(t)
	many := make([]string, 101)
	for name, c := range map[string]struct {
		task wire.Task
		code wire.Code
	}{
		"with an id":                 {wire.Task{TaskID: "x", Goal: "g"}, wire.BadRequest},
		"without a goal":             {wire.Task{}, wire.BadRequest},
		"a goal too long":            {wire.Task{Goal: strings.Repeat("x", 33<<10)}, wire.BadRequest},
		"steps below zero":           {wire.Task{Goal: "g", Budget: wire.Budget{Steps: -1}}, wire.BadRequest},
		"a deadline too soon":        {wire.Task{Goal: "g", NotBefore: 5, Deadline: 5}, wire.BadRequest},
		"a deadline that is no date": {wire.Task{Goal: "g", Deadline: 1<<63 - 1}, wire.BadRequest},
		"a start that is no date":    {wire.Task{Goal: "g", NotBefore: 1 << 60}, wire.BadRequest},
		"many skills":                {wire.Task{Goal: "g", Skills: many}, wire.BadRequest},
		"a rack that is none":        {wire.Task{Goal: "g", Target: wire.Target{Rack: "No Id"}}, wire.BadRequest},
		"a rack that is not known":   {wire.Task{Goal: "g", Target: wire.Target{Rack: "r9"}}, wire.NotFound},
		"a slot that is none":        {wire.Task{Goal: "g", Target: wire.Target{Slot: -1}}, wire.BadRequest},
		"a file without a hash":      {wire.Task{Goal: "g", Inputs: []wire.Input{{Name: "a.pdf"}}}, wire.BadRequest},
		"a file that is not here":    {wire.Task{Goal: "g", Inputs: []wire.Input{{Name: "a.pdf", SHA256: strings.Repeat("0", 64)}}}, wire.BadRequest},
		"five files":                 {wire.Task{Goal: "g", Inputs: make([]wire.Input, 5)}, wire.BadRequest},
		"a file that is a path":      {wire.Task{Goal: "g", Inputs: []wire.Input{{Name: "../a", SHA256: strings.Repeat("0", 64)}}}, wire.BadRequest},
		"a remote schema":            {wire.Task{Goal: "g", ResultSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`)}, wire.BadRequest},
		"a schema of no object":      {wire.Task{Goal: "g", ResultSchema: json.RawMessage(`{"type":"string"}`)}, wire.BadRequest},
		"a large schema":             {wire.Task{Goal: "g", ResultSchema: json.RawMessage(`{"type":"object","title":"` + strings.Repeat("<", 4<<10) + `"}`)}, wire.BadRequest},
		"too large":                  {wire.Task{Goal: "g", Params: map[string]string{"p": strings.Repeat("x", 100<<10)}}, wire.PayloadTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := b.Submit(t.Context(), acme, fleet.NewTask{Task: c.task})
			b.wants(err, c.code)
		})
	}
	all, _, err := b.Tasks(t.Context(), acme, "", nil, store.Page{})
	b.ok(err)
	if len(all) > 0 {
		t.Errorf("%d tasks are there", len(all))
	}
}

// TestASuccessWithoutTheResultThatItsTaskWantsIsAFailure: racks look at that themselves; an older one does not.
func TestASuccessWithoutTheResultThatItsTaskWantsIsAFailure(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	schema := json.RawMessage(`{"type": "object", "required": ["price"], "properties": {"price": {"type": "number"}}}`)
	for i, one := range []struct {
		outcome wire.Outcome
		result  string
		want    wire.TaskState
	}{
		{wire.Succeeded, `{"price":4.5}`, wire.TaskSucceeded},
		{wire.Succeeded, `{"price":"4.5"}`, wire.TaskFailure},
		{wire.Succeeded, ``, wire.TaskFailure},
		{wire.Failed, ``, wire.TaskFailure},
		{wire.Cancelled, ``, wire.TaskStopped},
	} {
		id := b.submit(wire.Task{ResultSchema: schema})
		l := b.lease(c, fmt.Sprintf("c%d", i))
		if l.Task.TaskID != id || string(l.Task.ResultSchema) != `{"type":"object","required":["price"],"properties":{"price":{"type":"number"}}}` {
			t.Fatalf("%+v", l.Task)
		}
		_, err := b.Result(t.Context(), c, wire.Result{TaskID: id, Attempt: 1, Outcome: one.outcome, Result: json.RawMessage(one.result)})
		b.ok(err)
		a := b.state(id, one.want).Attempts[0]
		if mismatch := one.outcome == wire.Succeeded && one.want == wire.TaskFailure; (a.Error != nil) != mismatch {
			t.Errorf("%+v: %v", one, a.Error)
		} else if mismatch {
			b.wants(a.Error, wire.ResultMismatch)
		}
		if string(a.Result) != one.result {
			t.Errorf("the result is %s", a.Result)
		}
	}
	_, err := b.Result(t.Context(), c, wire.Result{TaskID: "gone", Attempt: 1, Outcome: wire.Succeeded})
	b.wants(err, wire.NotYourTask)
}

func TestTheSameKeyIsTheSameTaskUnlessItSaysSomethingElse(t *testing.T) {
	b := newBench(t)
	n := fleet.NewTask{Key: "k", Task: wire.Task{Goal: "g"}}
	first, created, err := b.Submit(t.Context(), acme, n)
	b.ok(err)
	again, twice, err := b.Submit(t.Context(), acme, n)
	b.ok(err)
	if !created || twice || first.TaskID != again.TaskID {
		t.Errorf("%v %s, %v %s", created, first.TaskID, twice, again.TaskID)
	}
	n.Task.Goal = "another"
	_, _, err = b.Submit(t.Context(), acme, n)
	b.wants(err, wire.RequestConflict)
	_, created, err = b.Submit(t.Context(), other, n)
	b.ok(err)
	if !created {
		t.Error("another tenant's key is taken")
	}
}

func TestAnAttemptFromTheClaimToItsResult(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	ctx := t.Context()
	if l, none, err := b.Claim(ctx, c, wire.Claim{Slot: 1, ClaimID: "c0"}); l != nil || err != nil || none.RetryAfterMS < 1000 {
		t.Fatalf("without a task: %+v, %+v, %v", l, none, err)
	}
	id := b.submit(wire.Task{Params: map[string]string{"name": "Ana"}})
	l := b.lease(c, "c1")
	if l.Task.TaskID != id || l.Task.Params["name"] != "Ana" || l.Attempt != 1 || l.LeaseMS != wire.LeaseTime.Milliseconds() || l.ClaimID != "c1" {
		t.Errorf("%+v", l)
	}
	b.wait(30 * time.Second)
	s, err := b.Heartbeat(ctx, c, wire.Heartbeat{Running: []wire.Running{{TaskID: id, Attempt: 1, Slot: 1}, {TaskID: "gone", Attempt: 3, Slot: 2}}})
	b.ok(err)
	if len(s.Leases) != 1 || s.Leases[0].LeaseMS != 90_000 || len(s.Unknown) != 1 || s.Unknown[0].TaskID != "gone" || s.Cancel == nil {
		t.Errorf("%+v", s)
	}
	b.state(id, wire.TaskRunning)
	r, err := b.Renew(ctx, c, wire.Renew{TaskID: id, Attempt: 1})
	b.ok(err)
	if r.LeaseMS != wire.LeaseTime.Milliseconds() {
		t.Errorf("%+v", r)
	}
	result := wire.Result{TaskID: id, Attempt: 1, Outcome: wire.Succeeded, Message: "done", Steps: 4, Tokens: 7, Result: json.RawMessage(`{"n":1}`)}
	ack, err := b.Result(ctx, c, result)
	b.ok(err)
	again, err := b.Result(ctx, c, result)
	b.ok(err)
	if ack.Ignored || !again.Ignored {
		t.Errorf("%+v, %+v", ack, again)
	}
	v := b.state(id, wire.TaskSucceeded)
	if a := v.Attempts[0]; a.Message != "done" || a.Steps != 4 || a.Tokens != 7 || string(a.Result) != `{"n":1}` || a.Rack != "r1" {
		t.Errorf("%+v", a)
	}
	_, err = b.Renew(ctx, c, wire.Renew{TaskID: id, Attempt: 1})
	b.wants(err, wire.AttemptOver)
	_, err = b.Renew(ctx, b.rack("r2"), wire.Renew{TaskID: id, Attempt: 1})
	b.wants(err, wire.NotYourTask)
	_, err = b.Result(ctx, c, wire.Result{TaskID: id, Attempt: 1, Outcome: "splendid"})
	b.wants(err, wire.BadRequest)
	_, err = b.Renew(ctx, enroll.Caller{Tenant: "other", Rack: "r1"}, wire.Renew{TaskID: id, Attempt: 1})
	b.wants(err, wire.NotYourTask)
}

func TestAResultMayBeAsLongAsTheWireAllowsWhateverIsInIt(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	id := b.submit(wire.Task{})
	b.lease(c, "c1")
	said := strings.Repeat("<&>", 20<<10) // six bytes each where JSON is made for HTML
	_, err := b.Ask(t.Context(), c, wire.Question{TaskID: id, Attempt: 1, QuestionID: "q1", Text: said[:8<<10]})
	b.ok(err)
	_, err = b.Result(t.Context(), c, wire.Result{TaskID: id, Attempt: 1, Outcome: wire.Succeeded, Message: said, Result: json.RawMessage(`["` + said + `"]`)})
	b.ok(err)
	if a := b.state(id, wire.TaskSucceeded).Attempts[0]; a.Message != said || len(a.Result) != len(said)+4 {
		t.Errorf("%d bytes of message, %d of result", len(a.Message), len(a.Result))
	}
}

func TestATaskThatIsGivenBackIsOfferedAgainByTheReason(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	ctx := t.Context()
	id := b.submit(wire.Task{})
	give := func(claim string, why *wire.Refusal) {
		t.Helper()
		_, err := b.Release(ctx, c, wire.Release{TaskID: id, Attempt: b.lease(c, claim).Attempt, SkillsVersion: "1", Error: why})
		b.ok(err)
		b.state(id, wire.TaskQueued)
	}
	give("c1", wire.Refuse(wire.SlotBusy, nil)) // it passes
	give("c2", wire.Refuse(wire.Unsupported, map[string]any{"what": "skills"}))
	offered := func(skills, claim string) bool {
		l, _, err := b.Claim(ctx, c, wire.Claim{Slot: 1, ClaimID: claim, SkillsVersion: skills})
		b.ok(err)
		return l != nil
	}
	if offered("1", "c3") {
		t.Error("it was offered to the rack that cannot do it")
	}
	if !offered("2", "c4") {
		t.Error("it was not offered to the rack that has other skills now")
	}
}

func TestAQuestionTakesOneAnswerAndTheRackHearsIt(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	ctx := t.Context()
	id := b.submit(wire.Task{})
	_, err := b.Answer(ctx, acme, id, "", "red")
	b.wants(err, wire.TaskNotWaiting)
	l := b.lease(c, "c1")
	ask := func(question string) {
		t.Helper()
		_, err := b.Ask(ctx, c, wire.Question{TaskID: id, Attempt: l.Attempt, QuestionID: question, Text: "Which colour?", Choices: []string{"red"}})
		b.ok(err)
	}
	ask("q1")
	if q := b.state(id, wire.TaskWaiting).Question; q == nil || q.QuestionID != "q1" || q.Text != "Which colour?" || !slices.Equal(q.Choices, []string{"red"}) {
		t.Errorf("%+v", q)
	}
	for name, bad := range map[string]wire.Question{
		"without text": {}, "too long": {Text: strings.Repeat("x", 9<<10)}, "many choices": {Text: "?", Choices: make([]string, 21)},
	} {
		bad.TaskID, bad.Attempt, bad.QuestionID = id, 1, "q9"
		_, err := b.Ask(ctx, c, bad)
		t.Run(name, func(*testing.T) { b.wants(err, wire.BadRequest) })
	}
	_, err = b.Answer(ctx, acme, id, "q1", "")
	b.wants(err, wire.BadRequest)
	_, err = b.Answer(ctx, other, id, "q1", "red")
	b.wants(err, wire.TaskUnknown)
	b.heard()
	v, err := b.Answer(ctx, acme, id, "q1", "red")
	b.ok(err)
	types, bodies := b.heard()
	if v.State != wire.TaskRunning || types != "task.answer r1" || bodies[0] != (wire.Answer{TaskID: id, Attempt: 1, QuestionID: "q1", Text: "red"}) {
		t.Errorf("%s, %s %+v", v.State, types, bodies)
	}
	ask("q2")
	_, err = b.Answer(ctx, acme, id, "q1", "blue") // the late one of somebody else
	b.wants(err, wire.TaskNotWaiting)
	b.state(id, wire.TaskWaiting)
	running := wire.Running{TaskID: id, Attempt: 1, Slot: 1, Answered: "q1"}
	for _, told := range []string{"q1", "q2", "q2"} { // somebody at the rack has answered the second one
		running.Answered = told
		_, err = b.Heartbeat(ctx, c, wire.Heartbeat{Running: []wire.Running{running}})
		b.ok(err)
		if told == "q1" {
			b.state(id, wire.TaskWaiting)
		}
	}
	b.state(id, wire.TaskRunning)
	_, err = b.Answer(ctx, acme, id, "q2", "blue")
	b.wants(err, wire.TaskNotWaiting)
	ask("q3")
	_, err = b.Answer(ctx, acme, id, "q3", "blue")
	b.ok(err)
	s, err := b.Heartbeat(ctx, c, wire.Heartbeat{})
	b.ok(err)
	if len(s.Answers) != 1 || s.Answers[0].QuestionID != "q3" || s.Answers[0].Text != "blue" {
		t.Errorf("the heartbeat brings %+v", s.Answers)
	}
}

func TestACancelledTaskEndsAtOnceOrByItsRack(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	ctx := t.Context()
	waits := b.submit(wire.Task{})
	v, err := b.Cancel(ctx, acme, waits)
	b.ok(err)
	if v.State != wire.TaskStopped || v.Cancel {
		t.Errorf("%+v", v)
	}
	runs := b.submit(wire.Task{})
	b.lease(c, "c1")
	b.heard()
	v, err = b.Cancel(ctx, acme, runs)
	b.ok(err)
	if types, _ := b.heard(); !v.Cancel || v.State.Over() || types != "task.cancel r1" {
		t.Errorf("%+v, pushed %q", v, types)
	}
	s, err := b.Heartbeat(ctx, c, wire.Heartbeat{})
	b.ok(err)
	if len(s.Cancel) != 1 || s.Cancel[0].TaskID != runs {
		t.Errorf("%+v", s.Cancel)
	}
	if _, err = b.State(ctx, c, wire.State{State: wire.Offline, Generation: 1, Session: 1}); err != nil {
		t.Fatal(err)
	}
	_, err = b.Cancel(ctx, acme, runs)
	b.ok(err)
	if types, _ := b.heard(); types != "" {
		t.Errorf("to a rack that is not there was pushed %s", types)
	}
	_, err = b.Cancel(ctx, other, runs)
	b.wants(err, wire.TaskUnknown)
}

func TestALostAttemptWaitsForAPerson(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	ctx := t.Context()
	id := b.submit(wire.Task{})
	b.lease(c, "c1")
	b.hello(c, 2, 1) // another database: nobody knows what the former life has done
	v := b.state(id, wire.TaskLost)
	if v.Attempts[0].State != "lost" || v.Attempts[0].Wrote != nil {
		t.Errorf("%+v", v.Attempts[0])
	}
	_, err := b.Hello(ctx, c, wire.Hello{Nonce: strings.Repeat("n", 16), Generation: 1, Session: 9})
	b.wants(err, wire.Conflict)
	v, err = b.Requeue(ctx, acme, id)
	b.ok(err)
	if v.State != wire.TaskQueued {
		t.Errorf("%+v", v)
	}
	if l := b.lease(c, "c2"); l.Attempt != 2 {
		t.Errorf("attempt %d", l.Attempt)
	}
	_, err = b.Requeue(ctx, acme, id)
	b.wants(err, wire.Conflict)
}

func TestAHelloThatCannotBe(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	nonce := strings.Repeat("n", 16)
	for name, h := range map[string]wire.Hello{
		"a short nonce":         {Nonce: "short", Generation: 1},
		"a long nonce":          {Nonce: strings.Repeat("n", 81), Generation: 1},
		"a nonce with a blank":  {Nonce: nonce + " ", Generation: 1},
		"no generation":         {Nonce: nonce},
		"a generation too high": {Nonce: nonce, Generation: 1 << 63},
		"a session too high":    {Nonce: nonce, Generation: 1, Session: 1 << 63},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.Hello(t.Context(), c, h)
			b.wants(err, wire.BadRequest)
		})
	}
	if w := b.hello(c, 1, 2); w.Nonce != nonce || w.Now != b.clock().UnixMilli() || w.Session != 2 || w.Keys == nil {
		t.Errorf("%+v", w)
	}
	if got, err := b.Session(t.Context(), c); got != nonce || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := b.Session(t.Context(), enroll.Caller{Tenant: "other", Rack: "r1"}); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_, err := b.Hello(t.Context(), enroll.Caller{Tenant: "acme", Rack: "nobody"}, wire.Hello{Nonce: nonce, Generation: 1})
	b.wants(err, wire.Unauthenticated)
}

func TestEventsAreKeptOnceAndShownToTheirTenant(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	for range 2 {
		_, err := b.Event(t.Context(), c, "m1", wire.Event{Kind: "phone.lost", Slot: 3, At: 5, Detail: json.RawMessage(`{"n":1}`), Dropped: 2})
		b.ok(err)
	}
	all, _, err := b.Events(t.Context(), acme, "r1", store.Page{})
	b.ok(err)
	if len(all) != 1 || all[0].Kind != "phone.lost" || all[0].Slot != 3 || all[0].Dropped != 2 || all[0].Got != b.clock().UnixMilli() {
		t.Errorf("%+v", all)
	}
	if all, _, err = b.Events(t.Context(), other, "", store.Page{}); err != nil || len(all) != 0 || all == nil {
		t.Errorf("%+v, %v", all, err)
	}
	_, err = b.Event(t.Context(), c, "m2", wire.Event{})
	b.wants(err, wire.BadRequest)
}

func TestErrorsOfTheStoreBecomeRefusals(t *testing.T) {
	if fleet.Refusal(nil) != nil || fleet.Named(nil, "rack", "r1") != nil {
		t.Error("nothing was refused")
	}
	limit := &store.LimitError{Limit: "tokens", RetryAt: time.Now().Add(time.Hour)}
	own := wire.Refuse(wire.SlotBusy, nil)
	for _, c := range []struct {
		err  error
		want wire.Code
	}{
		{store.ErrNotFound, wire.NotFound},
		{store.ErrInvalid, wire.BadRequest},
		{store.ErrConflict, wire.Conflict},
		{store.ErrRequestConflict, wire.RequestConflict},
		{limit, wire.LimitExceeded},
		{own, wire.SlotBusy},
		{fmt.Errorf("the disk is gone"), wire.Internal},
	} {
		got := wire.From(fleet.Refusal(fmt.Errorf("asked: %w", c.err)))
		if got.Code != c.want {
			t.Errorf("%v becomes %s", c.err, got.Code)
		}
		if strings.Contains(got.Sentence("en"), "disk") {
			t.Errorf("a stranger is told of the inside: %s", got.Sentence("en"))
		}
	}
	for err, after := range map[error]time.Duration{errors.New("the connection is gone"): 0, store.ErrFull: 30 * time.Second} {
		if got := wire.From(fleet.Refusal(err)); !got.Retryable || got.RetryAfter() != after {
			t.Errorf("%v: retryable %t, after %v", err, got.Retryable, got.RetryAfter())
		}
	}
	if got := wire.From(fleet.Refusal(limit)); got.RetryAfterMS < 3_000_000 {
		t.Errorf("comes again after %d ms", got.RetryAfterMS)
	}
	if got := wire.From(fleet.Named(store.ErrNotFound, "rack", "r9")); !strings.Contains(got.Sentence("en"), "r9") {
		t.Error(got.Sentence("en"))
	}
	if !wire.Is(fleet.Named(store.ErrNotFound, "task", "t9"), wire.TaskUnknown) {
		t.Error("a task that is not there has its own code")
	}
}

// TestARackThatFellSilentIsNotShownAsThere: its will is lost with a broker that dies too, and a host over HTTP has none.
func TestARackThatFellSilentIsNotShownAsThere(t *testing.T) {
	b := newBench(t)
	c := b.rack("r1")
	ctx := t.Context()
	shown := func() string {
		t.Helper()
		h, err := b.Host(ctx, acme, "r1")
		b.ok(err)
		all, _, err := b.Hosts(ctx, acme, store.Page{})
		b.ok(err)
		if len(all) != 1 || all[0].Presence != h.Presence {
			t.Errorf("listed %+v, shown %+v", all, h)
		}
		return h.Presence
	}
	b.hello(c, 1, 1)
	b.wait(4 * time.Minute)
	if got := shown(); got != string(wire.Online) {
		t.Errorf("after four minutes it is %s", got)
	}
	b.wait(2 * time.Minute)
	if got := shown(); got != string(wire.Offline) {
		t.Errorf("after six minutes it is %s", got)
	}
	_, err := b.Heartbeat(ctx, c, wire.Heartbeat{})
	b.ok(err)
	if got := shown(); got != string(wire.Online) {
		t.Errorf("after a heartbeat it is %s", got)
	}
}
