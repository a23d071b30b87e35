package link_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"phonerack/sync/link"
	"phonerack/sync/link/linktest"
	"phonerack/sync/wire"
)

func TestSessionBeginsWithStateAndHelloAndEndsWithOffline(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		connect := b.broker.Connects()[0]
		if connect.ClientIdentifier != "rack-1" || connect.Username != "rack-1" || !connect.CleanSession || connect.Keepalive != 20 {
			t.Errorf("CONNECT is %+v", connect)
		}
		will := frameOf(t, b, linktest.Publish{Topic: connect.WillTopic, Payload: connect.WillMessage})
		if s := linktest.Decode[wire.State](t, will); s.State != wire.Offline || s.Generation != 3 || s.Session != 1 || will.Exp != 0 || !connect.WillRetain {
			t.Errorf("the will is %+v, exp %d", s, will.Exp)
		}
		if s := linktest.Decode[wire.State](t, frameOf(t, b, linktest.Publish{Topic: up(wire.KindState), Payload: b.broker.Retained(up(wire.KindState))})); s.State != wire.Online || s.Generation != 3 || s.Session != 1 || s.Versions["rackd"] != "1.0.0" {
			t.Errorf("the retained state is %+v", s)
		}
		hello := linktest.Decode[wire.Hello](t, b.cloud.Heard(wire.TypeHello)[0].Message)
		if len(hello.Nonce) < 22 || hello.Generation != 3 || hello.Session != 1 || hello.Boot != "4-9f3c" {
			t.Errorf("the hello is %+v", hello)
		}
		if s := b.link.Status(); s.State != link.Online || s.Session != 1 || s.Broker != "tcp://broker.test:1883" || !s.Trusted {
			t.Errorf("the status is %+v", s)
		}
		b.stop()
		if s := linktest.Decode[wire.State](t, frameOf(t, b, linktest.Publish{Topic: up(wire.KindState), Payload: b.broker.Retained(up(wire.KindState))})); s.State != wire.Offline || s.Session != 1 {
			t.Errorf("after a clean stop the retained state is %+v", s)
		}
		for _, p := range b.broker.Published() {
			if p.Will {
				t.Error("the broker had to publish the will after a clean stop")
			}
		}
	})
}

// Each session has a number that was committed before it, and a nonce of its own.
func TestSessionNumbersRiseOverReconnectsAndRestarts(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		b.broker.HangUpAll()
		time.Sleep(10 * time.Second)
		b.waitOnline()
		b.stop()
		b.broker = linktest.NewBroker()
		b.o.Dial = b.broker.Dial
		old := b.cloud
		b.cloud = linktest.NewCloud(b.broker, b.cloud.Now, b.cloud.Keys()...)
		b.link = nil
		b.online()
		var numbers []uint64
		nonces := map[string]bool{}
		for _, h := range append(old.Heard(wire.TypeHello), b.cloud.Heard(wire.TypeHello)...) {
			hello := linktest.Decode[wire.Hello](t, h.Message)
			numbers = append(numbers, hello.Session)
			nonces[hello.Nonce] = true
		}
		if !slices.Equal(numbers, []uint64{1, 2, 3}) || len(nonces) != 3 {
			t.Errorf("sessions %v with %d nonces", numbers, len(nonces))
		}
		b.stop()
		b.o.Generation, b.link = 4, nil
		b.broker = linktest.NewBroker()
		b.o.Dial = b.broker.Dial
		b.cloud = linktest.NewCloud(b.broker, b.cloud.Now, b.cloud.Keys()...)
		b.online()
		if n := b.link.Status().Session; n != 1 {
			t.Errorf("a new generation begins with session %d", n)
		}
	})
}

func TestSessionGoesOnFromTheNumbersOfTheCloud(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.cloud.On(wire.TypeHello, func(h linktest.Heard) {
			hello := linktest.Decode[wire.Hello](t, h.Message)
			b.cloud.Reply(h, wire.TypeWelcome, wire.Welcome{Nonce: hello.Nonce, Now: b.cloud.Now().UnixMilli(), Session: max(41, hello.Session)})
		})
		b.online()
		if n := b.link.Status().Session; n != 42 {
			t.Errorf("session %d after the cloud had seen 41", n)
		}
	})
}

func TestWelcomeMustAnswerTheNonce(t *testing.T) {
	for name, spoil := range map[string]func(*linktest.Cloud, linktest.Heard, *wire.Welcome){
		"another nonce": func(_ *linktest.Cloud, _ linktest.Heard, w *wire.Welcome) { w.Nonce = "bm90IHlvdXJzIGJ1dCBtaW5l" },
		"no time":       func(_ *linktest.Cloud, _ linktest.Heard, w *wire.Welcome) { w.Now = 0 },
		"another hello": func(c *linktest.Cloud, h linktest.Heard, _ *wire.Welcome) { h.Message.ID = wire.NewID(noon) },
	} {
		t.Run(name, func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				b.cloud.On(wire.TypeHello, func(h linktest.Heard) {
					hello := linktest.Decode[wire.Hello](t, h.Message)
					w := wire.Welcome{Nonce: hello.Nonce, Now: b.cloud.Now().UnixMilli(), Session: hello.Session}
					copied := *h.Message
					h.Message = &copied
					spoil(b.cloud, h, &w)
					b.cloud.Reply(h, wire.TypeWelcome, w)
				})
				b.run()
				time.Sleep(9 * time.Second)
				synctest.Wait()
				if s := b.link.Status(); s.State != link.Greeting || s.Counters["refused_welcome"] != 2 || s.Trusted {
					t.Errorf("after wrong welcomes to two hellos: %+v", s)
				}
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				if s := b.link.Status(); s.State != link.Waiting || s.LastError == "" {
					t.Errorf("ten seconds without a welcome: %+v", s)
				}
			})
		})
	}
}

func TestHelloThatIsRefusedEndsTheSession(t *testing.T) {
	for _, c := range []struct {
		refusal  *wire.Refusal
		min, max int // connects in ten minutes
	}{
		{wire.Refuse(wire.Conflict, nil), 2, 3}, // only a person helps
		{wire.Refuse(wire.LimitExceeded, nil), 10, 16},
	} {
		t.Run(string(c.refusal.Code), func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				b.cloud.On(wire.TypeHello, func(h heard) { b.cloud.Reply(h, wire.TypeError, c.refusal) })
				b.run()
				synctest.Wait()
				if s := b.link.Status(); s.State != link.Waiting || !strings.Contains(s.LastError, c.refusal.Error()) {
					t.Errorf("status %+v", s)
				}
				time.Sleep(10 * time.Minute)
				if n := len(b.broker.Connects()); n < c.min || n > c.max {
					t.Errorf("%d connects in ten minutes", n)
				}
			})
		})
	}
}

// TestAHelloThatNobodyHeardIsSaidAgain: after a broker's restart the rack can be back before the cloud.
func TestAHelloThatNobodyHeardIsSaidAgain(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.cloud.On(wire.TypeHello, nil)
		b.run()
		time.Sleep(time.Second)
		b.cloud.On(wire.TypeHello, b.cloud.Answer)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if s := b.link.Status(); s.State != link.Online || s.Session != 1 {
			t.Errorf("2.5 s after a hello that nobody heard: %+v", s)
		}
		time.Sleep(10 * time.Second)
		said := b.cloud.Heard(wire.TypeHello)
		if len(said) != 2 || len(b.broker.Connects()) != 1 {
			t.Fatalf("%d hellos in %d connections", len(said), len(b.broker.Connects()))
		}
		first, second := linktest.Decode[wire.Hello](t, said[0].Message), linktest.Decode[wire.Hello](t, said[1].Message)
		if first.Nonce != second.Nonce || second.Session != 1 || said[0].Message.ID == said[1].Message.ID {
			t.Errorf("the second hello is another session's: %+v, %+v", first, second)
		}
	})
}

func TestSilentCloudGetsNoSecondHelloInTheSameMoment(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.cloud.On(wire.TypeHello, nil)
		b.run()
		time.Sleep(5 * time.Minute)
		n := len(b.broker.Connects())
		// 10 s each without a welcome, and pauses of 1, 2, 4, ... 60 s.
		if n < 7 || n > 9 {
			t.Errorf("%d connects in 5 minutes", n)
		}
	})
}

func TestSilenceOfTheCloudEndsTheSession(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		b.cloud.On(wire.TypeHello, nil)
		time.Sleep(65 * time.Second) // one interval of silence, two for the answer
		b.cloud.On(wire.TypeHello, b.cloud.Answer)
		if len(b.broker.Connects()) < 2 {
			t.Error("the session goes on although the cloud has said nothing for three intervals")
		}
		if h := b.cloud.Heard(wire.TypeHello); linktest.Decode[wire.Hello](t, h[1].Message).Session != 1 || linktest.Decode[wire.Hello](t, h[0].Message).Nonce != linktest.Decode[wire.Hello](t, h[1].Message).Nonce {
			t.Error("the sign of life was not asked for with the session's own hello")
		}
		time.Sleep(time.Minute)
		b.waitOnline()
	})
}

func TestSessionThatAnswersLasts(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		time.Sleep(6 * time.Hour)
		if n := len(b.broker.Connects()); n != 1 {
			t.Errorf("%d connects in six quiet hours", n)
		}
	})
}

func TestFramesAreRefusedAndCounted(t *testing.T) {
	type env struct {
		b     *bench
		m     *wire.Message
		topic string
		frame []byte
	}
	cancel := wire.Cancel{TaskID: "t1", Attempt: 1}
	for _, c := range []struct {
		name, counter string
		send          func(e env)
	}{
		{"retained", "refused_retained", func(e env) { e.b.broker.Deliver(e.topic, true, e.frame) }},
		{"altered", "refused_mac", func(e env) {
			e.frame[len(e.frame)-2] ^= 1
			e.b.broker.Publish(e.topic, false, e.frame)
		}},
		{"on another topic", "refused_mac", func(e env) { e.b.broker.Publish("pr/v1/acme/rack-1/dn/cmd", false, e.frame) }},
		{"of an unknown key", "refused_unknown_key", func(e env) {
			e.b.cloud.SetKeys(keys(e.b, "x9"))
			topic, frame := e.b.cloud.Frame(rack, wire.KindTask, e.m)
			e.b.broker.Publish(topic, false, frame)
		}},
		{"of another session", "refused_session", func(e env) {
			e.m.Sess = "c29tZXRoaW5nIG9sZA"
			e.b.cloud.Send(rack, wire.KindTask, e.m)
		}},
		{"without a session", "refused_session", func(e env) {
			e.m.Sess = ""
			e.b.cloud.Send(rack, wire.KindTask, e.m)
		}},
		{"expired", "refused_expired", func(e env) {
			e.m.TS, e.m.Exp = noon.Add(-time.Hour).UnixMilli(), noon.Add(-time.Hour+time.Minute).UnixMilli()
			e.b.cloud.Send(rack, wire.KindTask, e.m)
		}},
		{"not a frame", "refused_malformed", func(e env) { e.b.broker.Publish(e.topic, false, []byte("ON")) }},
		{"too large", "refused_oversize", func(e env) { e.b.broker.Publish(e.topic, false, make([]byte, wire.MaxFrame+1)) }},
		{"with a wrong content", "refused_content", func(e env) {
			raw := []byte(`{"v":1,"V":2}`)
			frame, _ := wire.SealJSON(wire.Topic{Tenant: "acme", Rack: "rack-1", Direction: wire.Down, Kind: wire.KindTask}, e.b.cloud.Keys()[0], raw)
			e.b.broker.Publish(e.topic, false, frame)
		}},
		{"on a topic that is none", "refused_topic", func(e env) { e.b.broker.Publish("pr/v1/acme/rack-1/dn/party", false, e.frame) }},
		{"repeated", "ignored_repeated", func(e env) {
			e.b.broker.Publish(e.topic, false, e.frame)
			synctest.Wait()
			e.b.broker.Publish(e.topic, false, e.frame)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				var got []string
				b.make().Handle(wire.TypeCancel, func(_ context.Context, m *wire.Message) { got = append(got, m.ID) })
				b.online()
				synctest.Wait()
				before := len(b.broker.Published())
				m := b.cloud.Message("rack-1", wire.TypeCancel, cancel)
				topic, frame := b.cloud.Frame(rack, wire.KindTask, m)
				c.send(env{b, m, topic, frame})
				synctest.Wait()
				if b.counter(c.counter) != 1 {
					t.Errorf("counted %v", b.link.Status().Counters)
				}
				want := 0
				if c.name == "repeated" {
					want = 1
				}
				if len(got) != want {
					t.Errorf("the handler ran %d times", len(got))
				}
				if n := len(b.broker.Published()) - before; n != 0 {
					t.Errorf("%d answers to a frame that nobody can answer", n)
				}
				if b.broker.Unacked() != 0 {
					t.Error("it was not acknowledged to the broker, which would send it again")
				}
				// The session goes on.
				b.cloud.SetKeys(keys(t, "k1"))
				b.cloud.Send(rack, wire.KindTask, b.cloud.Message("rack-1", wire.TypeCancel, cancel))
				synctest.Wait()
				if len(got) != want+1 {
					t.Error("a proper message afterwards did not arrive")
				}
			})
		})
	}
}

func TestUnknownTypeIsAnsweredUnsupportedAndAnErrorIsNot(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		m := b.cloud.Message("rack-1", "task.dance", map[string]int{"steps": 3})
		b.cloud.Send(rack, wire.KindTask, m)
		b.cloud.Send(rack, wire.KindTask, b.cloud.Message("rack-1", wire.TypeError, wire.Refuse(wire.Internal, nil)))
		synctest.Wait()
		answers := b.cloud.Heard(wire.TypeError)
		if len(answers) != 1 || answers[0].Corr != m.ID {
			t.Fatalf("%d answers", len(answers))
		}
		if r := linktest.Decode[wire.Refusal](t, answers[0].Message); r.Code != wire.Unsupported || r.Args["what"] != "task.dance" {
			t.Errorf("answered %+v", r)
		}
	})
}

func TestDesiredVersionsOnlyRise(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		var got []uint64
		take := func(_ context.Context, m *wire.Message) {
			got = append(got, linktest.Decode[wire.Desired](t, m).Version)
		}
		desire := func(version uint64, config string) {
			b.cloud.Send(rack, wire.KindDesired, b.cloud.Message("rack-1", wire.TypeDesired, wire.Desired{Version: version, Config: []byte(config)}))
			synctest.Wait()
		}
		b.cloud.Desire = 4
		desire(3, `{"a":3}`) // kept by the broker from before
		b.make().Handle(wire.TypeDesired, take)
		b.online()
		synctest.Wait()
		if len(got) != 0 || b.counter("refused_stale_desired") != 1 {
			t.Errorf("an old configuration that the broker kept was taken: %v", got)
		}
		desire(5, `{"a":5}`)
		desire(4, `{"a":4}`)
		desire(5, `{"a":"another"}`)
		b.broker.Publish("pr/v1/acme/rack-1/dn/desired", true, nil)
		synctest.Wait()
		if !slices.Equal(got, []uint64{5}) || b.counter("refused_stale_desired") != 3 || b.counter("ignored_empty_desired") != 1 {
			t.Errorf("taken %v, counted %v", got, b.link.Status().Counters)
		}
		// Another run on the same database remembers, and gets the same version again.
		b.stop()
		b.broker = linktest.NewBroker()
		b.o.Dial = b.broker.Dial
		b.cloud = linktest.NewCloud(b.broker, b.cloud.Now, b.cloud.Keys()...)
		b.cloud.Say, got, b.link = b.broker.Publish, nil, nil
		b.make().Handle(wire.TypeDesired, take)
		b.online()
		desire(4, `{"a":4}`)
		desire(5, `{"a":5}`)
		if !slices.Equal(got, []uint64{5}) {
			t.Errorf("taken %v after a restart", got)
		}
	})
}

func TestMessagesBeforeTheWelcomeWaitForIt(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		var mu sync.Mutex // guards got: the handlers are of two kinds
		var got []wire.Type
		note := func(_ context.Context, m *wire.Message) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m.Type)
		}
		b.make().Handle(wire.TypeCancel, note)
		b.link.Handle(wire.TypeWelcome, note)
		b.cloud.On(wire.TypeHello, func(h linktest.Heard) {
			b.cloud.Send(rack, wire.KindTask, b.cloud.Message("rack-1", wire.TypeCancel, wire.Cancel{TaskID: "t1", Attempt: 1}))
			time.Sleep(time.Second)
			b.cloud.Welcome(h)
		})
		b.online()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(got)
		if !slices.Equal(got, []wire.Type{wire.TypeWelcome, wire.TypeCancel}) {
			t.Errorf("handled %v", got)
		}
	})
}

func TestKeysRotateWhileTheLinkRuns(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		var ring atomic.Pointer[[]wire.Keys]
		ring.Store(&[]wire.Keys{keys(t, "k1")})
		b.o.Keys = func() []wire.Keys { return *ring.Load() }
		b.online()
		synctest.Wait()
		// The rack has the new keys first: the cloud does not take them yet.
		ring.Store(&[]wire.Keys{keys(t, "n2"), keys(t, "k1")})
		b.cloud.On(wire.TypeHeartbeat, func(h linktest.Heard) { b.cloud.Reply(h, wire.TypeSync, wire.Sync{}) })
		beat := func() {
			t.Helper()
			if _, err := b.link.Request(t.Context(), link.Call{Kind: wire.KindTask, Type: wire.TypeHeartbeat, Body: wire.Heartbeat{}}); err != nil {
				t.Fatal(err)
			}
		}
		beat()
		// Now the cloud signs with the new ones, and still reads the old ones.
		b.cloud.SetKeys(keys(t, "n2"), keys(t, "k1"))
		beat()
		time.Sleep(time.Minute) // a hello tells the rack
		b.cloud.SetKeys(keys(t, "n2"))
		beat()
		if r := b.cloud.Refused(); len(r) != 0 {
			t.Errorf("the cloud could not read %v", r)
		}
	})
}

func TestHelloIsSignedWithTheOtherKeyWhenTheCloudIsSilent(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.o.Keys = func() []wire.Keys { return []wire.Keys{keys(t, "n2"), keys(t, "k1")} }
		b.online() // the cloud has k1 alone
		if len(b.cloud.Refused()) == 0 || b.link.Status().Session != 2 {
			t.Errorf("session %d", b.link.Status().Session)
		}
	})
}

func TestTimeComesFromTheCloudAndStaysAFloor(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		start := time.Now()
		b.o.Clock = clock{start, time.Date(1970, 1, 1, 0, 1, 0, 0, time.UTC)} // a board without a battery
		b.o.Floor = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
		b.make()
		if now, trusted := b.link.Now(); trusted || !now.Equal(b.o.Floor) {
			t.Errorf("before the welcome it is %s, trusted %t", now, trusted)
		}
		b.online()
		time.Sleep(time.Hour)
		now, trusted := b.link.Now()
		if !trusted || now.Sub(noon.Add(time.Hour)).Abs() > time.Second {
			t.Errorf("an hour after the welcome it is %s, trusted %t", now, trusted)
		}
		b.broker.HangUpAll()
		synctest.Wait()
		if _, trusted := b.link.Now(); !trusted {
			t.Error("the time is forgotten with the session")
		}
		b.stop()
		b.link = nil
		b.make()
		floor, trusted := b.link.Now()
		if trusted || floor.Before(noon.Add(45*time.Minute)) || floor.After(noon.Add(time.Hour+time.Minute)) {
			t.Errorf("after a restart it is %s, trusted %t", floor, trusted)
		}
	})
}

func TestTheStateSaysWhichConfigurationIsApplied(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		state := func() wire.State {
			synctest.Wait()
			return linktest.Decode[wire.State](t, frameOf(t, b, linktest.Publish{Topic: up(wire.KindState), Payload: b.broker.Retained(up(wire.KindState))}))
		}
		if s := state(); s.Desired != 0 {
			t.Errorf("before any it says %+v", s)
		}
		b.link.SetDesired(7)
		if s := state(); s.Desired != 7 || s.State != wire.Online {
			t.Errorf("it says %+v", s)
		}
		if s := b.link.Status(); s.Desired != 7 || s.Presence != wire.Online {
			t.Errorf("its status is %+v", s)
		}
		b.broker.HangUpAll()
		synctest.Wait()
		if s := state(); s.Desired != 0 || s.State != wire.Offline {
			t.Errorf("the will says %+v", s)
		}
		time.Sleep(10 * time.Second)
		b.waitOnline()
		if s := state(); s.Desired != 7 {
			t.Errorf("in the next session it says %+v", s)
		}
	})
}

func TestPresenceIsPublishedWhenItChanges(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		state := func() wire.Presence {
			synctest.Wait()
			return linktest.Decode[wire.State](t, frameOf(t, b, linktest.Publish{Topic: up(wire.KindState), Payload: b.broker.Retained(up(wire.KindState))})).State
		}
		b.link.SetPresence(wire.Draining)
		if p := state(); p != wire.Draining {
			t.Errorf("it says %s", p)
		}
		b.broker.HangUpAll()
		synctest.Wait()
		if p := state(); p != wire.Offline {
			t.Errorf("after the connection broke it says %s", p)
		}
		time.Sleep(10 * time.Second)
		b.waitOnline()
		if p := state(); p != wire.Draining {
			t.Errorf("in the next session it says %s", p)
		}
		// The cloud takes a hello for online, so the last word is the state's.
		for range 2 {
			var last, hello int
			for i, p := range b.broker.Published() {
				switch p.Topic {
				case up(wire.KindState):
					last = i
				case up(wire.KindSession):
					hello = i
				}
			}
			if last < hello {
				t.Error("after a hello the state was not said again")
			}
			time.Sleep(time.Minute) // in which hellos ask for signs of life
			synctest.Wait()
		}
	})
}

func TestRequests(t *testing.T) {
	ask := link.Call{Kind: wire.KindTask, Type: wire.TypeRenew, Body: wire.Renew{TaskID: "t1", Attempt: 1}}
	t.Run("answer", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			b.cloud.On(wire.TypeRenew, func(h linktest.Heard) { b.cloud.Reply(h, wire.TypeRenewed, wire.Renewed{LeaseMS: 120000}) })
			ask := ask
			ask.ID = wire.NewID(noon)
			for range 2 { // a caller may repeat what it has asked
				m, err := b.link.Request(t.Context(), ask)
				if err != nil || m.Corr != ask.ID || linktest.Decode[wire.Renewed](t, m).LeaseMS != 120000 {
					t.Fatalf("answer %+v, %v", m, err)
				}
			}
			if h := b.cloud.Heard(wire.TypeRenew); len(h) != 2 || h[0].ID != h[1].ID || h[0].Exp-h[0].TS != wire.MaxLife.Milliseconds() {
				t.Errorf("heard %+v", h)
			}
		})
	})
	t.Run("refusal", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			b.cloud.On(wire.TypeRenew, func(h linktest.Heard) {
				b.cloud.Reply(h, wire.TypeError, wire.Refuse(wire.AttemptOver, map[string]any{"task": "t1"}))
			})
			if _, err := b.link.Request(t.Context(), ask); !wire.Is(err, wire.AttemptOver) {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("too late", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			b.cloud.On(wire.TypeRenew, func(h linktest.Heard) {
				time.Sleep(2 * time.Second)
				b.cloud.Reply(h, wire.TypeRenewed, wire.Renewed{LeaseMS: 1})
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := b.link.Request(ctx, ask); !errors.Is(err, link.ErrTimeout) {
				t.Errorf("%v", err)
			}
			if h := b.cloud.Heard(wire.TypeRenew)[0]; h.Exp-h.TS != 1000 {
				t.Errorf("it expires after %d ms", h.Exp-h.TS)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if b.counter("ignored_late_answer") != 1 {
				t.Errorf("%v", b.link.Status().Counters)
			}
		})
	})
	t.Run("never, without a deadline", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			b.cloud.On(wire.TypeRenew, nil)
			start := time.Now()
			if _, err := b.link.Request(context.Background(), ask); !errors.Is(err, link.ErrTimeout) || time.Since(start) != wire.MaxLife {
				t.Errorf("%v after %s", err, time.Since(start))
			}
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			ctx, cancel := context.WithCancel(t.Context())
			b.cloud.On(wire.TypeRenew, func(linktest.Heard) { cancel() })
			if _, err := b.link.Request(ctx, ask); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("offline", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.broker.Connect = func(*packets.ConnectPacket) byte { return packets.ErrRefusedServerUnavailable }
			b.run()
			synctest.Wait()
			if _, err := b.link.Request(t.Context(), ask); !errors.Is(err, link.ErrOffline) {
				t.Errorf("%v", err)
			}
			if err := b.link.Telemetry(t.Context(), map[string]int{"load": 1}); !errors.Is(err, link.ErrOffline) {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("the session ends", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			b.cloud.On(wire.TypeRenew, func(linktest.Heard) {
				go func() { time.Sleep(time.Second); b.broker.HangUpAll() }()
			})
			start := time.Now()
			if _, err := b.link.Request(t.Context(), ask); !errors.Is(err, link.ErrOffline) || time.Since(start) != time.Second {
				t.Errorf("%v after %s", err, time.Since(start))
			}
		})
	})
	t.Run("several answers", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			b.cloud.On(wire.TypePlanRequest, func(h linktest.Heard) {
				b.cloud.Reply(h, wire.TypePlanAccepted, wire.PlanAccepted{RequestID: h.ID, DeadlineMS: 60000})
				time.Sleep(8 * time.Second)
				b.cloud.Reply(h, wire.TypePlanDecision, wire.PlanDecision{RequestID: h.ID, ToolName: "tap", Arguments: []byte(`{}`)})
			})
			picture := []byte{0xff, 0xd8, 0, 1}
			x, err := b.link.Open(t.Context(), link.Call{
				Kind: wire.KindPlan, Type: wire.TypePlanRequest, Body: wire.PlanRequest{HostID: "rack-1"},
				Attachments: []wire.Attachment{{Name: wire.ScreenAttachment, Type: "image/jpeg", Data: picture}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			for _, want := range []wire.Type{wire.TypePlanAccepted, wire.TypePlanDecision} {
				if m, err := x.Next(t.Context()); err != nil || m.Type != want || m.Corr != x.ID() {
					t.Fatalf("%+v, %v", m, err)
				}
			}
			if got := b.cloud.Heard(wire.TypePlanRequest)[0].Attachment(wire.ScreenAttachment); string(got) != string(picture) {
				t.Errorf("the picture came as %x", got)
			}
		})
	})
	t.Run("too large", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.o.MaxFrame = 128 << 10 // AWS closes the connection above it
			b.online()
			big := ask
			big.Attachments = []wire.Attachment{{Name: "screen", Type: "image/jpeg", Data: make([]byte, 128<<10)}}
			if _, err := b.link.Request(t.Context(), big); !wire.Is(err, wire.PayloadTooLarge) {
				t.Errorf("%v", err)
			}
			if len(b.broker.Connects()) != 1 || b.link.Status().State != link.Online {
				t.Error("it cost the connection")
			}
		})
	})
	t.Run("bounded in flight", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			b.cloud.On(wire.TypeRenew, nil)
			for range 64 {
				if _, err := b.link.Open(t.Context(), ask); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := b.link.Open(ctx, ask); !errors.Is(err, link.ErrTimeout) {
				t.Errorf("the 65th: %v", err)
			}
		})
	})
}
