package api

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/cloud/bus"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

func TestFramesThatAreNotOfNowAreRefusedAndCounted(t *testing.T) {
	type odd struct {
		name, reason string
		frame        func(r *rack) bus.Frame
		answer       wire.Code // "" for silence
	}
	good := func(r *rack) bus.Frame {
		return bus.Frame{Topic: r.topic(wire.KindTask), Data: r.seal(wire.KindTask, r.message(wire.TypeHeartbeat, wire.Heartbeat{SkillsVersion: "odd"}))}
	}
	for _, c := range []odd{
		{"altered", "mac", func(r *rack) bus.Frame {
			f := good(r)
			f.Data = bytes.Replace(f.Data, []byte("odd"), []byte("add"), 1)
			return f
		}, ""},
		{"of another topic of the rack", "mac", func(r *rack) bus.Frame { f := good(r); f.Topic.Kind = wire.KindCommand; return f }, ""},
		{"of another rack", "unknown_key", func(r *rack) bus.Frame {
			f := good(r)
			other := r.rack("acme")
			other.hello()
			f.Topic.Rack = other.bundle.Rack
			return f
		}, ""},
		{"of another tenant", "unknown_key", func(r *rack) bus.Frame { f := good(r); f.Topic.Tenant = "other"; return f }, ""},
		{"of a key that nobody has", "unknown_key", func(r *rack) bus.Frame {
			r.keys.KID = "feedfacefeedface"
			f := good(r)
			r.keys = must(r.bundle.Keys())(r.t)
			return f
		}, ""},
		{"sent back to its sender", "mac", func(r *rack) bus.Frame {
			down := r.topic(wire.KindTask)
			down.Direction = wire.Down
			m, err := wire.NewMessage(wire.TypeNone, r.clock(), time.Minute, wire.NoTask{})
			if err != nil {
				r.t.Fatal(err)
			}
			return bus.Frame{Topic: r.topic(wire.KindTask), Data: must(wire.Seal(down, r.keys, m))(r.t)}
		}, ""},
		{"no frame", "malformed", func(r *rack) bus.Frame { f := good(r); f.Data = []byte(`{"v":1}`); return f }, ""},
		{"too large", "too_large", func(r *rack) bus.Frame { f := good(r); f.Data = make([]byte, wire.MaxFrame+1); return f }, ""},
		{"no sense", "content", func(r *rack) bus.Frame {
			f := good(r)
			f.Data = r.sign(wire.KindTask, `{"v":1,"id":"`+wire.NewID(r.clock())+`","type":"task.heartbeat","ts":1,"exp":2,"body":{},"v":1}`)
			return f
		}, ""},
		{"too long a life", "content", func(r *rack) bus.Frame {
			f := good(r)
			f.Data = r.sign(wire.KindTask, `{"v":1,"id":"`+wire.NewID(r.clock())+`","type":"task.heartbeat","ts":1,"exp":999999999999,"body":{}}`)
			return f
		}, wire.BadRequest},
		{"expired", "expired", func(r *rack) bus.Frame { f := good(r); r.wait(31 * time.Second); return f }, wire.Expired},
		{"of a clock that is ahead", "early", func(r *rack) bus.Frame {
			r.wait(10 * time.Minute)
			f := good(r)
			r.wait(-10 * time.Minute)
			return f
		}, wire.BadRequest},
		{"retained", "retained", func(r *rack) bus.Frame { f := good(r); f.Retained = true; return f }, ""},
		{"of an old session", "session", func(r *rack) bus.Frame {
			m := r.message(wire.TypeHeartbeat, wire.Heartbeat{SkillsVersion: "odd"})
			m.Sess = r.nonce
			f := bus.Frame{Topic: r.topic(wire.KindTask), Data: r.seal(wire.KindTask, m)}
			r.hello()
			return f
		}, ""},
		{"an old hello", "session", func(r *rack) bus.Frame {
			f := bus.Frame{Topic: r.topic(wire.KindSession), Data: r.seal(wire.KindSession, r.message(wire.TypeHello, wire.Hello{Nonce: r.nonce, Generation: 1, Session: r.session}))}
			old := r.nonce
			r.hello()
			r.nonce = old // what is answered carries the nonce of the old one, so that no living rack takes it
			return f
		}, wire.Conflict},
		{"a hello of a generation that is over", "session", func(r *rack) bus.Frame {
			f := bus.Frame{Topic: r.topic(wire.KindSession), Data: r.seal(wire.KindSession, r.message(wire.TypeHello, wire.Hello{Nonce: r.nonce, Generation: 1, Session: 9}))}
			old := r.nonce
			m := r.message(wire.TypeHello, wire.Hello{Nonce: "nonce-of-the-new-one", Generation: 2, Session: 1})
			r.nonce = "nonce-of-the-new-one"
			if a := r.deliver(wire.KindSession, r.seal(wire.KindSession, m)); len(a) != 1 || a[0].Type != wire.TypeWelcome {
				r.t.Fatalf("got %+v", a)
			}
			r.nonce = old
			return f
		}, wire.Conflict},
		{"of a type of the future", "unsupported", func(r *rack) bus.Frame {
			return bus.Frame{Topic: r.topic(wire.KindTask), Data: r.seal(wire.KindTask, r.message("task.dance", struct{}{}))}
		}, wire.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			r := s.rack("acme")
			r.hello()
			f := c.frame(r)
			before := s.refused(c.reason)
			s.link.take(t.Context(), f)
			if got := s.refused(c.reason) - before; got != 1 {
				t.Errorf("%d frames are counted as %s", got, c.reason)
			}
			heard := r.heard()
			var refusal wire.Refusal
			switch {
			case c.answer == "" && len(heard) > 0:
				t.Errorf("it was answered: %s", heard[0].Body)
			case c.answer != "" && (len(heard) != 1 || heard[0].Decode(&refusal) != nil || refusal.Code != c.answer):
				t.Errorf("got %+v", heard)
			}
			if h := must(s.fleet.Host(t.Context(), acme, r.bundle.Rack))(t); h.SkillsVersion != "" {
				t.Error("it had an effect")
			}
		})
	}
}

// sign makes a frame of JSON that Seal would not write.
func (r *rack) sign(k wire.Kind, raw string) []byte {
	r.t.Helper()
	// SealJSON gives the frame together with what its receiver would say.
	frame, err := wire.SealJSON(r.topic(k), r.keys, []byte(raw))
	if err == nil {
		r.t.Fatal("the JSON is good")
	}
	return frame
}

func TestARepeatedMessageGetsTheFirstAnswerAndDoesNothing(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	r.hello()
	task, _, err := s.fleet.Submit(t.Context(), acme, fleet.NewTask{Task: wire.Task{Goal: "g"}})
	if err != nil {
		t.Fatal(err)
	}
	frame := r.seal(wire.KindTask, r.message(wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c"}))
	first := r.deliver(wire.KindTask, frame)
	again := r.deliver(wire.KindTask, frame)
	if len(first) != 1 || len(again) != 1 || first[0].Type != wire.TypeLease || !bytes.Equal(first[0].Body, again[0].Body) || first[0].Corr != again[0].Corr {
		t.Fatalf("got %+v and %+v", first, again)
	}
	result := r.message(wire.TypeResult, wire.Result{TaskID: task.TaskID, Attempt: 1, Outcome: wire.Failed, Wrote: true})
	if a := r.deliver(wire.KindTask, r.seal(wire.KindTask, result)); len(a) != 1 || string(a[0].Body) != "{}" {
		t.Fatalf("got %+v", a)
	}
	s.wait(time.Hour) // the answers are forgotten, and the store knows it again
	if a := r.deliver(wire.KindTask, r.seal(wire.KindTask, result)); len(a) != 1 || string(a[0].Body) != `{"ignored":true}` {
		t.Errorf("after an hour: %+v", a)
	}
	if got := must(s.fleet.Task(t.Context(), acme, task.TaskID))(t); len(got.Attempts) != 1 || got.State != wire.TaskFailure {
		t.Errorf("got %+v", got)
	}
	// An answer of the first session is no answer of the second.
	r.hello()
	if a := r.deliver(wire.KindTask, r.seal(wire.KindTask, result)); len(a) != 1 {
		t.Errorf("in the next session: %+v", a)
	}
}

func TestAnotherReplicaAnswersInTheSessionThatItHasNotSeen(t *testing.T) {
	db, dir := filepath.Join(t.TempDir(), "cloud.db"), t.TempDir()
	one, two := openSite(t, db, dir), openSite(t, db, dir)
	r := one.rack("acme")
	r.hello()
	there := two.with(r.bundle)
	there.nonce, there.session = r.nonce, r.session
	if m, err := there.callMQTT(wire.TypeHeartbeat, wire.Heartbeat{}); err != nil || m.Type != wire.TypeSync {
		t.Fatalf("got %+v, %v", m, err)
	}
	there.hello() // the next session begins at the second replica
	r.nonce = there.nonce
	if m, err := r.callMQTT(wire.TypeHeartbeat, wire.Heartbeat{}); err != nil || m.Type != wire.TypeSync {
		t.Errorf("got %+v, %v", m, err)
	}
	if err := one.office.Revoke(t.Context(), acme.Scope(), r.bundle.Rack); err != nil {
		t.Fatal(err)
	}
	two.wait(4 * time.Second)
	if _, err := there.callMQTT(wire.TypeHeartbeat, wire.Heartbeat{}); err != errSilence {
		t.Errorf("the second replica answers a revoked rack: %v", err)
	}
}

func TestWhatTheCloudSaysByItselfIsPushed(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	task, _, err := s.fleet.Submit(t.Context(), acme, fleet.NewTask{Task: wire.Task{Goal: "g"}})
	if err != nil {
		t.Fatal(err)
	}
	early := must(s.fleet.Send(t.Context(), acme, fleet.NewCommand{Rack: r.bundle.Rack, Name: fleet.Ping}))(t)
	if heard := r.heard(); len(heard) != 0 {
		t.Fatalf("pushed to a rack that is away: %+v", heard)
	}
	r.hello()
	if _, err := r.callMQTT(wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.callMQTT(wire.TypeQuestion, wire.Question{TaskID: task.TaskID, Attempt: 1, QuestionID: "q1", Text: "which?", Choices: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	if got := must(s.fleet.Task(t.Context(), acme, task.TaskID))(t); got.State != wire.TaskWaiting || got.Question == nil || got.Question.Text != "which?" {
		t.Errorf("got %+v", got)
	}
	must(s.fleet.Answer(t.Context(), acme, task.TaskID, "", "a"))(t)
	must(s.fleet.Cancel(t.Context(), acme, task.TaskID))(t)
	late := must(s.fleet.Send(t.Context(), acme, fleet.NewCommand{Rack: r.bundle.Rack, Slot: 1, Name: fleet.Screenshot}))(t)
	heard := r.heard()
	var types []string
	for _, m := range heard {
		types = append(types, string(m.Type))
	}
	// Both commands, in their order: the first one was never taken.
	if got := strings.Join(types, " "); got != "task.answer task.cancel cmd.execute cmd.execute" {
		t.Fatalf("pushed: %s", got)
	}
	var answer wire.Answer
	if heard[0].Decode(&answer) != nil || answer.Text != "a" || answer.QuestionID != "q1" {
		t.Errorf("got %+v", answer)
	}
	for i, want := range []string{early.CommandID, late.CommandID} {
		var c wire.Command
		if heard[2+i].Decode(&c) != nil || c.CommandID != want {
			t.Errorf("command %d is %+v", i, c)
		}
	}
	m, err := r.callMQTT(wire.TypeHeartbeat, wire.Heartbeat{})
	var sync wire.Sync
	if err != nil || m.Type != wire.TypeSync {
		t.Fatalf("got %v, %v", m, err)
	}
	if m.Decode(&sync) != nil || len(sync.Answers) != 1 || len(sync.Cancel) != 1 {
		t.Errorf("the heartbeat brings %+v", sync)
	}
}

func TestAScreenshotIsInMemoryAlone(t *testing.T) {
	db := filepath.Join(t.TempDir(), "cloud.db")
	s := openSite(t, db, t.TempDir())
	r := s.rack("acme")
	r.hello()
	c := must(s.fleet.Send(t.Context(), acme, fleet.NewCommand{Rack: r.bundle.Rack, Slot: 1, Name: fleet.Screenshot}))(t)
	r.heard()
	picture := []byte("\xff\xd8 a picture that no database has \xff\xd9")
	m := r.message(wire.TypeCommandStatus, wire.CommandStatus{CommandID: c.CommandID, Version: 1, Status: wire.CommandSucceeded, Detail: json.RawMessage(`{"width":720}`)})
	m.Attach(wire.ScreenAttachment, "image/jpeg", picture)
	if a := r.deliver(wire.KindCommand, r.seal(wire.KindCommand, m)); len(a) != 1 || a[0].Type != wire.TypeCommandAck {
		t.Fatalf("got %+v", a)
	}
	if got := must(s.fleet.Picture(t.Context(), acme, c.CommandID))(t); !bytes.Equal(got, picture) {
		t.Errorf("got %q", got)
	}
	other := acme
	other.Tenant = "other"
	if _, err := s.fleet.Picture(t.Context(), other, c.CommandID); !wire.Is(err, wire.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if hits := scan(t, filepath.Dir(db), picture); hits != "" {
		t.Errorf("the picture is in %s", hits)
	}
	s.wait(11 * time.Minute)
	if _, err := s.fleet.Picture(t.Context(), acme, c.CommandID); !wire.Is(err, wire.PictureGone) {
		t.Errorf("after eleven minutes: %v", err)
	}
}

func TestAStateOlderThanWhatIsKnownChangesNothing(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	r.hello()
	r.hello()
	say := func(p wire.Presence, session uint64) {
		f := r.seal(wire.KindState, r.message(wire.TypeState, wire.State{State: p, Generation: 1, Session: session}))
		s.link.take(t.Context(), bus.Frame{Topic: r.topic(wire.KindState), Data: f, Retained: true})
	}
	presence := func() string { return must(s.fleet.Host(t.Context(), acme, r.bundle.Rack))(t).Presence }
	say(wire.Offline, 1) // the will of the session before
	if presence() != "online" {
		t.Error("an old will has won")
	}
	say(wire.Offline, 2)
	if presence() != "offline" {
		t.Error("the will was not taken")
	}
	if len(r.heard()) != 0 {
		t.Error("a state was answered")
	}
}

// TestADecisionAboutAPageOfHTMLFitsAFrame: <, > and & take one byte each, and are not written as \u003c.
func TestADecisionAboutAPageOfHTMLFitsAFrame(t *testing.T) {
	s := newSite(t)
	r := s.rack("acme")
	r.hello()
	r.heard()
	arguments := json.RawMessage(`{"text":"` + strings.Repeat("<&>", 60<<10) + `"}`)
	s.decide = func(context.Context, enroll.Caller, wire.PlanRequest, []byte, func(time.Duration)) (wire.PlanDecision, error) {
		return wire.PlanDecision{ToolName: "type", Arguments: arguments}, nil
	}
	a := r.deliver(wire.KindPlan, r.seal(wire.KindPlan, r.message(wire.TypePlanRequest, plan(r, "q1"))))
	if len(a) != 1 || a[0].Type != wire.TypePlanDecision {
		t.Fatalf("got %d answers: %.300s", len(a), a[0].Body)
	}
	var d wire.PlanDecision
	if err := a[0].Decode(&d); err != nil || !bytes.Equal(d.Arguments, arguments) {
		t.Errorf("%v, %.100s", err, d.Arguments)
	}
}
