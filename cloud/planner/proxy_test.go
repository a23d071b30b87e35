package planner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/cloud/planner"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// asJSON is an answer as a transport would send it.
func asJSON(t testing.TB, d wire.PlanDecision, err error) string {
	t.Helper()
	var out []byte
	if err != nil {
		out, err = json.Marshal(wire.PlanFailure{RequestID: d.RequestID, Error: wire.From(err)})
	} else {
		out, err = json.Marshal(d)
	}
	ok(t, err)
	return string(out)
}

func TestARepeatedRequestIsAnsweredFromItsRow(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	for _, c := range []struct {
		name  string
		ref   store.Ref
		reply pt.Reply
	}{
		{"decision", ref, good},
		{"failure", ref, pt.Text("no")},
		{"failure that says when to come back", ref, pt.Status(429, "slow down", "Retry-After", "3600")},
		{"decision outside of a task", store.Ref{}, good},
		{"failure outside of a task", store.Ref{}, pt.Text("no")},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := b.fake.Calls()
			b.fake.Script(c.reply)
			req := ask(store.NewID(), c.ref)
			d, err := b.decide(req)
			first := asJSON(t, d, err)
			// As another writer of JSON would put it.
			req.Tools = append([]wire.PlanTool(nil), req.Tools...)
			req.Tools[1].InputSchema = json.RawMessage(`{ "type" : "object" }`)
			d, err = b.Decide(t.Context(), rack1, req, nil, func(time.Duration) { t.Error("it was accepted once more") })
			if again := asJSON(t, d, err); again != first {
				t.Errorf("first %s\nthen  %s", first, again)
			}
			equal(t, "provider calls", b.fake.Calls()-before, 1)
		})
	}
	equal(t, "answers from rows", b.counter("answered_total"), 5)
}

func TestAKnownIDWithAnotherBodyIsAConflict(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	screen := screenshot(t)
	_, err := b.Decide(t.Context(), rack1, ask("q0", ref), screen, nil)
	ok(t, err)
	calls := b.fake.Calls()
	for name, change := range map[string]func(*wire.PlanRequest) []byte{
		"system prompt": func(r *wire.PlanRequest) []byte { r.SystemPrompt += " "; return screen },
		"user prompt":   func(r *wire.PlanRequest) []byte { r.UserPrompt += " "; return screen },
		"tools":         func(r *wire.PlanRequest) []byte { r.Tools = r.Tools[:1]; return screen },
		"task":          func(r *wire.PlanRequest) []byte { r.TaskID, r.Attempt = "", 0; return screen },
		"screen":        func(*wire.PlanRequest) []byte { return screenshot(t) },
		"no screen":     func(*wire.PlanRequest) []byte { return nil },
	} {
		req := ask("q0", ref)
		other := change(&req)
		_, err := b.Decide(t.Context(), rack1, req, other, nil)
		if !wire.Is(err, wire.RequestConflict) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	equal(t, "provider calls", b.fake.Calls(), calls)
	equal(t, "rows", len(b.decisions(ref)), 1)
}

func TestARequestThatComesManyTimesAtOnceIsAskedOnce(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	b.fake.Script(pt.Slow(good, 20*time.Millisecond))
	answers := make([]string, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			d, err := b.decide(ask("q0", ref))
			answers[i] = asJSON(t, d, err)
		})
	}
	wg.Wait()
	for _, a := range answers {
		equal(t, "answer", a, answers[0])
	}
	equal(t, "provider calls", b.fake.Calls(), 1)
	equal(t, "rows", len(b.decisions(ref)), 1)
}

func TestManyRequestsOfManyTasksAtOnceLeaveNoGap(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.OpenAI), pt.Key)
	const each = 6
	var wg sync.WaitGroup
	refs := []store.Ref{b.lease(), b.lease2(), lease(t, b.store, "r1", 3)}
	for _, ref := range refs {
		for i := range each {
			wg.Go(func() {
				if _, err := b.decide(ask(fmt.Sprint("q-", ref.Task[20:], "-", i), ref)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for _, ref := range refs {
		list := b.decisions(ref)
		equal(t, "rows", len(list), each)
		for i, d := range list {
			equal(t, "step", d.Step, i)
		}
	}
	equal(t, "in flight", b.counter("in_flight"), 0)
	equal(t, "decisions", b.counter("requests_total", "code", "decision"), each*3)
	equal(t, "calls timed", b.counter("provider_seconds", "provider", store.OpenAI, "outcome", "decision"), each*3)
	equal(t, "tokens", b.counter("tokens_total", "direction", "in"), each*3*pt.TokensIn)
}

// dead claims a request as a replica that is gone now.
func (b *bench) dead(req wire.PlanRequest, lease time.Duration) {
	b.t.Helper()
	hash := planner.HashOf(&req, nil)
	got, err := b.store.Begin(b.t.Context(), rack1.Scope(), store.PlanRequest{
		Host: "r1", ID: req.RequestID, Ref: store.Ref{Task: req.TaskID, Attempt: req.Attempt}, BodyHash: hash, Owner: "dead", Lease: lease,
	})
	ok(b.t, err)
	equal(b.t, "standing", got.Standing, store.Fresh)
}

func TestARequestOfADeadReplicaIsTakenOver(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	req := ask("q0", ref)
	b.dead(req, time.Minute)
	var told []time.Duration
	d, err := b.Decide(t.Context(), rack1, req, nil, func(d time.Duration) {
		told = append(told, d)
		b.wait(time.Minute) // the dead one's time is over while this one waits
	})
	ok(t, err)
	equal(t, "step", d.StepIndex, 0)
	equal(t, "times accepted", len(told), 2)
	equal(t, "provider calls", b.fake.Calls(), 1)
}

func TestAWaitForAnotherReplicaIsBounded(t *testing.T) {
	b := newBench(t)
	p := b.profile(store.Anthropic)
	p.Timeout = 500 * time.Millisecond
	b.activate(p, pt.Key)
	req := ask("q0", b.lease())
	b.dead(req, time.Minute)
	began, told := time.Now(), 0
	_, err := b.Decide(t.Context(), rack1, req, nil, func(time.Duration) { told++ })
	r := refused(t, err, wire.ProviderTimeout)
	if took := time.Since(began); took < p.Timeout || took > 6*p.Timeout || !r.Retryable {
		t.Errorf("it took %s, retryable %v", took, r.Retryable)
	}
	equal(t, "times accepted", told, 1)
	// Whoever waits may go.
	ctx, cancel := context.WithCancel(t.Context())
	_, err = b.Decide(ctx, rack1, req, nil, func(time.Duration) { cancel() })
	if err == nil {
		t.Error("an answer came from nowhere")
	}
	equal(t, "provider calls", b.fake.Calls(), 0)
}

func TestARequestIsOwnedForLongerThanItsCall(t *testing.T) {
	b := newBench(t)
	p := b.activate(b.profile(store.Anthropic), pt.Key)
	req := ask("q0", b.lease())
	b.hooks[planner.AfterReply] = func() {
		b.wait(p.Timeout)
		hash := planner.HashOf(&req, nil)
		got, err := b.store.Begin(t.Context(), rack1.Scope(), store.PlanRequest{
			Host: "r1", ID: req.RequestID, Ref: store.Ref{Task: req.TaskID, Attempt: req.Attempt}, BodyHash: hash, Owner: "other", Lease: time.Minute,
		})
		ok(t, err)
		equal(t, "standing", got.Standing, store.InFlight)
	}
	_, err := b.decide(req)
	ok(t, err)
}

func TestALateReplicaGivesTheAnswerOfTheOneThatTookOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply pt.Reply // the late one's
	}{{"decision", good}, {"failure", pt.Text("no")}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.activate(b.profile(store.Anthropic), pt.Key)
			o := b.o
			o.Owner, o.Failpoint, o.Metrics = "second", nil, nil
			second, err := planner.New(o)
			ok(t, err)
			ref := b.lease()
			b.fake.Script(c.reply, pt.Call("tap", `{"element":44}`))
			var theirs wire.PlanDecision
			b.hooks[planner.AfterReply] = func() {
				b.wait(30 * time.Second) // above the 10 s of the profile and the margin of 15
				theirs, err = second.Decide(t.Context(), rack1, ask("q0", ref), nil, nil)
				ok(t, err)
			}
			mine, err := b.decide(ask("q0", ref))
			equal(t, "answer", asJSON(t, mine, err), asJSON(t, theirs, nil))
			equal(t, "arguments", string(mine.Arguments), `{"element":44}`)
			equal(t, "rows", len(b.decisions(ref)), 1)
			equal(t, "provider calls", b.fake.Calls(), 2)
		})
	}
}

func TestACallThatHasBegunIsBroughtToItsEnd(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	b.fake.Script(pt.Slow(good, 20*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Decide(ctx, rack1, ask("q0", ref), nil, func(time.Duration) { cancel() })
	ok(t, err)
	equal(t, "rows", len(b.decisions(ref)), 1)
	_, err = b.decide(ask("q0", ref))
	ok(t, err)
	equal(t, "provider calls", b.fake.Calls(), 1)
}

func TestAnAttemptThatEndsDuringTheCallGetsNoRow(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	b.hooks[planner.AfterReply] = func() {
		_, err := b.store.SetResult(t.Context(), acme, store.Result{Ref: ref, Host: "r1", Outcome: store.Failed, Wrote: true})
		ok(t, err)
	}
	for range 2 {
		_, err := b.decide(ask("q0", ref))
		r := refused(t, err, wire.AttemptOver)
		equal(t, "task", r.Args["task"], any(ref.Task))
	}
	_, err := b.decide(ask("q1", ref))
	refused(t, err, wire.AttemptOver)
	equal(t, "rows", len(b.decisions(ref)), 0)
	equal(t, "provider calls", b.fake.Calls(), 1)
}

func TestAnswersOutliveAShortFaultOfTheDatabase(t *testing.T) {
	var f faulty
	b := newBench(t, func(o *planner.Options) { f.Store = o.Store.(*store.Store); o.Store = &f })
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	left := 2
	f.finish = func(ctx context.Context, sc store.Scope, x store.Finish) (store.Decision, error) {
		if left--; left >= 0 {
			return store.Decision{}, errors.New("connection reset")
		}
		return f.Store.Finish(ctx, sc, x)
	}
	_, err := b.decide(ask("q0", ref))
	ok(t, err)
	// The commit came through, but not the word of it.
	left = 1
	f.finish = func(ctx context.Context, sc store.Scope, x store.Finish) (store.Decision, error) {
		d, err := f.Store.Finish(ctx, sc, x)
		if left--; left >= 0 && err == nil {
			return store.Decision{}, errors.New("connection reset")
		}
		return d, err
	}
	d, err := b.decide(ask("q1", ref))
	ok(t, err)
	equal(t, "step", d.StepIndex, 1)
	equal(t, "rows", len(b.decisions(ref)), 2)
	equal(t, "provider calls", b.fake.Calls(), 2)
}

func TestACallWhoseAnswerCannotBeStoredIsAccountedByItself(t *testing.T) {
	var f faulty
	b := newBench(t, func(o *planner.Options) { f.Store, o.Store = o.Store.(*store.Store), &f })
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	f.finish = func(context.Context, store.Scope, store.Finish) (store.Decision, error) {
		return store.Decision{}, store.ErrNotOwner // taken over, and answered meanwhile
	}
	b.hooks[planner.AfterReply] = func() {
		list, _, err := b.store.Usage(t.Context(), acme, store.UsageQuery{}, store.Page{})
		ok(t, err)
		equal(t, "accounts before the answer", len(list), 0)
		ok(t, b.store.Fail(t.Context(), acme, store.Failure{Host: "r1", RequestID: "q0", Owner: b.o.Owner + "/1", Refusal: json.RawMessage(`{"code":"refused"}`)}))
	}
	_, err := b.decide(ask("q0", ref))
	refused(t, err, wire.Refused)
	list, _, err := b.store.Usage(t.Context(), acme, store.UsageQuery{}, store.Page{})
	ok(t, err)
	equal(t, "accounts", len(list), 1)
	equal(t, "tokens", list[0].TokensIn+list[0].TokensOut, int64(pt.TokensIn+pt.TokensOut))

	// If that cannot be written either, it is said.
	f.settle = func(context.Context, store.Scope, store.Reservation, store.Spent) error {
		return errors.New("disk full")
	}
	b.hooks[planner.AfterReply] = func() {
		ok(t, b.store.Fail(t.Context(), acme, store.Failure{Host: "r1", RequestID: "q1", Owner: b.o.Owner + "/2", Refusal: json.RawMessage(`{"code":"refused"}`)}))
	}
	_, err = b.decide(ask("q1", ref))
	refused(t, err, wire.Refused)
	if !strings.Contains(b.logs.String(), "not accounted") {
		t.Error("nothing is said about the cost")
	}
}

func TestALongFaultOfTheDatabaseIsAFailureAndNothingIsMadeUp(t *testing.T) {
	var f faulty
	b := newBench(t, func(o *planner.Options) {
		f.Store, o.Margin = o.Store.(*store.Store), 200*time.Millisecond
		o.Store = &f
	})
	p := b.profile(store.Anthropic)
	p.Timeout = 5 * time.Second
	b.activate(p, pt.Key)
	ref := b.lease()
	f.finish = func(context.Context, store.Scope, store.Finish) (store.Decision, error) {
		return store.Decision{}, errors.New("connection reset")
	}
	_, err := b.decide(ask("q0", ref))
	if r := refused(t, err, wire.Internal); !r.Retryable {
		t.Error("it may pass, but is not retryable")
	}
	// The same request can be asked again when it is nobody's any more.
	f.finish = nil
	b.wait(p.Timeout + time.Second)
	d, err := b.decide(ask("q0", ref))
	ok(t, err)
	equal(t, "step", d.StepIndex, 0)
	f.begin = func(context.Context, store.Scope, store.PlanRequest) (store.Begun, error) {
		return store.Begun{}, errors.New("connection reset")
	}
	_, err = b.decide(ask("q1", ref))
	refused(t, err, wire.Internal)
	equal(t, "rows", len(b.decisions(ref)), 1)
}

// TestATransactionThatRunsTwiceCallsTheProfileOfTheSecond: another profile may have become active in between.
func TestATransactionThatRunsTwiceCallsTheProfileOfTheSecond(t *testing.T) {
	var f faulty
	b := newBench(t, func(o *planner.Options) {
		f.Store = o.Store.(*store.Store)
		o.Store = &f
	})
	b.activate(b.profile(store.Anthropic), pt.Key)
	f.begin = func(ctx context.Context, sc store.Scope, r store.PlanRequest) (store.Begun, error) {
		for _, p := range []*store.Profile{nil, {Name: "before", Provider: store.Anthropic, Model: "model-b", BaseURL: b.fake.URL, Timeout: time.Minute}} {
			if lease := r.Active(p); lease <= 0 {
				t.Errorf("lease is %v", lease)
			}
		}
		return f.Store.Begin(ctx, sc, r)
	}
	_, err := b.decide(ask("q0", b.lease()))
	ok(t, err)
	equal(t, "model", b.fake.Seen()[0].Model, "model-a")
}

func TestLimitsOfAProfile(t *testing.T) {
	t.Run("requests per minute", func(t *testing.T) {
		b := newBench(t)
		p := b.profile(store.Anthropic)
		p.Limits.RequestsPerMinute = 2
		b.activate(p, pt.Key)
		ref := b.lease()
		b.wait(10 * time.Second) // into a minute of the clock
		for range 2 {
			_, err := b.decide(ask(store.NewID(), ref))
			ok(t, err)
		}
		for range 2 { // the stored failure says the same
			_, err := b.Decide(t.Context(), rack1, ask("q2", ref), nil, func(time.Duration) { t.Error("it was accepted") })
			r := refused(t, err, wire.LimitExceeded)
			equal(t, "retry after", r.RetryAfter(), 50*time.Second)
			equal(t, "limit", fmt.Sprint(r.Args["limit"]), "2")
		}
		equal(t, "provider calls", b.fake.Calls(), 2)
		b.wait(50 * time.Second)
		_, err := b.decide(ask("q3", ref))
		ok(t, err)
	})
	t.Run("tokens per day", func(t *testing.T) {
		b := newBench(t)
		p := b.profile(store.Anthropic)
		p.Limits.TokensPerDay = 7000 // a call reserves about 4,200 and uses 1,234
		b.activate(p, pt.Key)
		ref := b.lease()
		n := 0
		var err error
		for ; n < 10; n++ {
			if _, err = b.decide(ask(store.NewID(), ref)); err != nil {
				break
			}
		}
		r := refused(t, err, wire.LimitExceeded)
		equal(t, "calls", n, 3)
		equal(t, "what", r.Args["what"], any("planner tokens in a day"))
		equal(t, "limit", fmt.Sprint(r.Args["limit"]), "7000")
		equal(t, "retry after", r.RetryAfter(), 15*time.Hour)
	})
}

func TestCostsAreAccountedPerTaskRackAndTenant(t *testing.T) {
	b := newBench(t)
	p := b.profile(store.Anthropic)
	p.Prices = store.Prices{In: 3_000_000, Out: 15_000_000}
	p = b.activate(p, pt.Key)
	ref, other := b.lease(), b.lease2()
	b.fake.Script(good, good, pt.Text("no"), pt.Status(401, "no"), good)
	for i, at := range []store.Ref{ref, ref, ref, other, {}} {
		_, _ = b.decide(ask(fmt.Sprint("q", i), at))
	}
	_, _ = b.decide(ask("q0", ref)) // costs nothing
	list, _, err := b.store.Usage(t.Context(), acme, store.UsageQuery{}, store.Page{})
	ok(t, err)
	got := map[string]store.Usage{}
	for _, u := range list {
		if u.Host != "r1" || u.Profile != p.ID || u.Day != "2026-11-30" {
			t.Errorf("usage is %+v", u)
		}
		got[u.Task] = u
	}
	equal(t, "rows", len(list), 3)
	// A failure that used tokens costs as a decision does.
	equal(t, "requests of the task", got[ref.Task].Requests, 3)
	equal(t, "tokens in", got[ref.Task].TokensIn, 3*pt.TokensIn)
	equal(t, "tokens out", got[ref.Task].TokensOut, 3*pt.TokensOut)
	equal(t, "cost", got[ref.Task].Cost, 3*(3*pt.TokensIn+15*pt.TokensOut))
	equal(t, "requests of the refused call", got[other.Task].Requests, 1)
	equal(t, "tokens of the refused call", got[other.Task].TokensIn, 0)
	equal(t, "requests outside of a task", got[""].Requests, 1)
}

// TestARackThatIsRevokedMeanwhileGetsNoDecision: its request was let in while it was valid.
func TestARackThatIsRevokedMeanwhileGetsNoDecision(t *testing.T) {
	for _, point := range []planner.Point{planner.AfterRequest, planner.AfterReply} {
		for _, inTask := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, in a task %t", point, inTask), func(t *testing.T) {
				b := newBench(t)
				b.activate(b.profile(store.Anthropic), pt.Key)
				b.fake.Script(good)
				var ref store.Ref
				if inTask {
					ref = b.lease()
				}
				b.hooks[point] = func() { ok(t, b.store.RevokeHost(t.Context(), acme, "r1")) }
				_, err := b.decide(ask("q0", ref))
				refused(t, err, wire.Unauthenticated)
				equal(t, "provider calls", b.fake.Calls(), 1)
				delete(b.hooks, point)
				_, err = b.decide(ask("q0", ref)) // what is stored is not told either
				refused(t, err, wire.Unauthenticated)
				_, err = b.decide(ask("q1", ref))
				refused(t, err, wire.Unauthenticated)
				equal(t, "provider calls", b.fake.Calls(), 1)
				if inTask {
					equal(t, "decisions", len(b.decisions(ref)), 0)
				}
				used, _, err := b.store.Usage(t.Context(), acme, store.UsageQuery{}, store.Page{})
				ok(t, err)
				equal(t, "accounted", len(used), 1) // the answer was paid for
				equal(t, "tokens", used[0].TokensIn, pt.TokensIn)
			})
		}
	}
}

func TestRequestsOutsideOfATask(t *testing.T) {
	b := newBench(t, func(o *planner.Options) { o.LooseRate = 3 })
	b.activate(b.profile(store.Anthropic), pt.Key)
	addHost(t, b.store, acme, "r2")
	for i := range 3 {
		d, err := b.decide(ask(fmt.Sprint("q", i), store.Ref{}))
		ok(t, err)
		equal(t, "step", d.StepIndex, 0)
	}
	_, err := b.decide(ask("q3", store.Ref{}))
	r := refused(t, err, wire.LimitExceeded)
	equal(t, "retry after", r.RetryAfter(), 20*time.Second)
	req := ask("q0", store.Ref{})
	req.HostID = "r2"
	_, err = b.Decide(t.Context(), planner.Caller{Tenant: "acme", Host: "r2"}, req, nil, nil)
	ok(t, err) // another rack has its own
	_, err = b.decide(ask("q4", b.lease()))
	ok(t, err) // and so have tasks
	b.wait(20 * time.Second)
	_, err = b.decide(ask("q5", store.Ref{}))
	ok(t, err)

	// One prompt is in the database: that of the task.
	n := 0
	for _, name := range []string{"cloud.db", "cloud.db-wal"} {
		raw, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		n += bytes.Count(raw, []byte("only the system prompt holds"))
	}
	if n == 0 || n > 2 { // once in the log, once in the file
		t.Errorf("%d prompts are in the database, want those of one request", n)
	}
}

func TestWhatIsNoRequestIsRefusedAndStoresNothing(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	jpeg := append([]byte{0xFF, 0xD8, 0xFF}, make([]byte, wire.MaxFrame)...)
	many := make([]wire.PlanTool, 257)
	for i := range many {
		many[i] = wire.PlanTool{Name: fmt.Sprint("t", i), InputSchema: json.RawMessage(`{"type":"object"}`)}
	}
	tool := func(name, schema string) []wire.PlanTool {
		return []wire.PlanTool{{Name: name, InputSchema: json.RawMessage(schema)}}
	}
	for _, c := range []struct {
		name   string
		change func(*wire.PlanRequest)
		screen []byte
		code   wire.Code
	}{
		{name: "no request id", change: func(r *wire.PlanRequest) { r.RequestID = "" }},
		{name: "a long request id", change: func(r *wire.PlanRequest) { r.RequestID = strings.Repeat("a", 64) }},
		{name: "a request id with a line break", change: func(r *wire.PlanRequest) { r.RequestID = "a\nb" }},
		{name: "task without attempt", change: func(r *wire.PlanRequest) { r.Attempt = 0 }},
		{name: "attempt without task", change: func(r *wire.PlanRequest) { r.TaskID = "" }},
		{name: "negative attempt", change: func(r *wire.PlanRequest) { r.Attempt = -1 }},
		{name: "negative attempt without task", change: func(r *wire.PlanRequest) { r.TaskID, r.Attempt = "", -1 }},
		{name: "an odd task id", change: func(r *wire.PlanRequest) { r.TaskID = "a b" }},
		{name: "no user prompt", change: func(r *wire.PlanRequest) { r.UserPrompt = " \n" }},
		{name: "a prompt that is not UTF-8", change: func(r *wire.PlanRequest) { r.SystemPrompt = "\xff" }},
		{name: "no tools", change: func(r *wire.PlanRequest) { r.Tools = nil }},
		{name: "too many tools", change: func(r *wire.PlanRequest) { r.Tools = many }},
		{name: "a tool without a name", change: func(r *wire.PlanRequest) { r.Tools = tool("", `{}`) }},
		{name: "a tool with a line break", change: func(r *wire.PlanRequest) { r.Tools = tool("a\nb", `{}`) }},
		{name: "a tool without a schema", change: func(r *wire.PlanRequest) { r.Tools = tool("a", ``) }},
		{name: "a schema that is a list", change: func(r *wire.PlanRequest) { r.Tools = tool("a", `[]`) }},
		{name: "two tools of one name", change: func(r *wire.PlanRequest) { r.Tools = append(tool("a", `{}`), tool("a", `{}`)...) }},
		{name: "a screen that is no JPEG", screen: []byte("\x89PNG\r\n")},
		{name: "a giant screen", screen: jpeg, code: wire.PayloadTooLarge},
		{name: "giant prompts", change: func(r *wire.PlanRequest) { r.UserPrompt = strings.Repeat("a", wire.MaxJSON) }, code: wire.PayloadTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := ask("q0", ref)
			if c.change != nil {
				c.change(&req)
			}
			if c.code == "" {
				c.code = wire.BadRequest
			}
			_, err := b.Decide(t.Context(), rack1, req, c.screen, nil)
			if r := refused(t, err, c.code); r.Retryable {
				t.Error("it is retryable")
			}
		})
	}
	// The id is still free.
	_, err := b.decide(ask("q0", ref))
	ok(t, err)
	equal(t, "provider calls", b.fake.Calls(), 1)
}

func TestAGiantDecisionIsRefused(t *testing.T) {
	b := newBench(t)
	b.activate(b.profile(store.Anthropic), pt.Key)
	ref := b.lease()
	b.fake.Script(pt.Call("x--mcp-3ashop-2fbuy", `{"a":"`+strings.Repeat("a", 128<<10)+`"}`))
	_, err := b.decide(ask("q0", ref))
	refused(t, err, wire.BadArguments)
	equal(t, "rows", len(b.decisions(ref)), 0)
}

func TestOptionsAreChecked(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*planner.Options){
		"no store":         func(o *planner.Options) { o.Store = nil },
		"no vault":         func(o *planner.Options) { o.Vault = nil },
		"no owner":         func(o *planner.Options) { o.Owner = "" },
		"a long owner":     func(o *planner.Options) { o.Owner = strings.Repeat("a", 101) },
		"a negative rate":  func(o *planner.Options) { o.LooseRate = -1 },
		"a negative extra": func(o *planner.Options) { o.Margin = -1 },
	} {
		o := b.o
		change(&o)
		if _, err := planner.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
