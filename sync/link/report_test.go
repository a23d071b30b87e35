package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"phonerack/sync/link"
	"phonerack/sync/link/linktest"
	"phonerack/sync/wire"
)

// The numbers of TestPitfall are those of paho's known problems in docs/link.md;
// TestReport is what users of other fleets have reported.

// putResult puts a result and returns its id.
func putResult(t *testing.T, b *bench, task string) string {
	t.Helper()
	id, err := b.link.Outbox().Put(link.Entry{Type: wire.TypeResult, Body: wire.Result{TaskID: task, Attempt: 1, Outcome: wire.Succeeded}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func held(t *testing.T, b *bench, id string) bool {
	t.Helper()
	h, err := b.link.Outbox().Holds(id)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// onUp judges what is published on one kind of topic, and forwards the rest.
func onUp(k wire.Kind, judge func(n int) linktest.Verdict) func(linktest.Publish) linktest.Verdict {
	n := 0
	return func(p linktest.Publish) linktest.Verdict {
		if p.Topic != up(k) {
			return linktest.Forward
		}
		n++
		return judge(n)
	}
}

// TestPitfall01_FalseSuccess: the broker acknowledges and throws away, or the
// connection ends right after the acknowledgement. Only the cloud's word counts.
func TestPitfall01_FalseSuccess(t *testing.T) {
	for name, verdict := range map[string]linktest.Verdict{"acknowledged and dropped": linktest.AckOnly, "acknowledged and hung up": linktest.AckAndHangUp} {
		t.Run(name, func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				b.broker.Judge = onUp(wire.KindTask, func(n int) linktest.Verdict {
					if n == 1 {
						return verdict
					}
					return linktest.Forward
				})
				b.online()
				id := putResult(t, b, "t1")
				time.Sleep(50 * time.Millisecond)
				synctest.Wait()
				if !held(t, b, id) {
					t.Fatal("the result left the outbox for the broker's acknowledgement")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if h := b.cloud.Heard(wire.TypeResult); len(h) != 1 || h[0].ID != id || held(t, b, id) {
					t.Errorf("the cloud heard %d results", len(h))
				}
			})
		})
	}
}

// TestPitfall02_PoisonMessage: the broker closes the connection whenever it sees a
// certain message. The link must not come back with it first each time.
func TestPitfall02_PoisonMessage(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		poison := putResult(t, b, "poison")
		var after []string
		for i := range 10 {
			after = append(after, putResult(t, b, fmt.Sprintf("t%d", i)))
		}
		b.broker.Judge = func(p linktest.Publish) linktest.Verdict {
			if strings.Contains(string(p.Payload), poison) {
				return linktest.HangUp
			}
			return linktest.Forward
		}
		b.run()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		for _, id := range after {
			if held(t, b, id) {
				t.Errorf("%s never came through", id)
			}
		}
		if !held(t, b, poison) {
			t.Error("a result was dropped")
		}
		n := len(b.broker.Connects())
		if n > 12 {
			t.Errorf("%d connects in 20 minutes", n)
		}
		time.Sleep(time.Hour)
		if m := len(b.broker.Connects()) - n; m > 7 {
			t.Errorf("%d connects in the hour after", m)
		}
	})
}

// TestPitfall03_NoHandlerNoAck: what the broker has kept arrives before anything
// else, and must be acknowledged.
func TestPitfall03_NoHandlerNoAck(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		for _, kind := range []string{"desired", "cmd", "task", "party"} {
			b.broker.Publish("pr/v1/acme/rack-1/dn/"+kind, true, []byte("rubbish"))
		}
		b.online()
		synctest.Wait()
		if n := b.broker.Unacked(); n != 0 {
			t.Errorf("%d messages were not acknowledged", n)
		}
		if c := b.link.Status().Counters; c["refused_retained"]+c["refused_malformed"]+c["refused_topic"] != 4 {
			t.Errorf("counted %v", c)
		}
	})
}

// TestPitfall04_OfflineQueue: nothing piles up in the MQTT client while there is no
// connection; what must arrive waits in the outbox, which is bounded.
func TestPitfall04_OfflineQueue(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		b.broker.HangUpAll()
		synctest.Wait()
		if _, err := b.link.Request(t.Context(), link.Call{Kind: wire.KindTask, Type: wire.TypeHeartbeat, Body: wire.Heartbeat{}}); !errors.Is(err, link.ErrOffline) {
			t.Errorf("a request without a connection: %v", err)
		}
		before := len(b.broker.Published())
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, p := range b.broker.Published()[before:] {
			if p.Topic != up(wire.KindSession) && p.Topic != up(wire.KindState) {
				t.Errorf("%s was sent after the reconnect", p.Topic)
			}
		}
	})
}

// TestPitfall05_OrderAfterReconnect: entries arrive in their order, whatever was
// lost on the way.
func TestPitfall05_OrderAfterReconnect(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.broker.Judge = onUp(wire.KindTask, func(n int) linktest.Verdict {
			switch {
			case n == 6:
				return linktest.HangUp
			case n == 9 || n == 17:
				return linktest.AckOnly
			}
			return linktest.Forward
		})
		b.online()
		var want []string
		for i := range 40 {
			want = append(want, putResult(t, b, fmt.Sprintf("t%d", i)))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		// An entry that was lost comes after those behind it that were on their way;
		// each of them is there, and those that were not lost are in order.
		seen := map[string]bool{}
		var got []string
		for _, h := range b.cloud.Heard(wire.TypeResult) {
			if !seen[h.ID] {
				seen[h.ID] = true
				got = append(got, h.ID)
			}
		}
		if len(got) != 40 {
			t.Fatalf("%d of 40 arrived", len(got))
		}
		late := 0
		for i := 1; i < len(got); i++ {
			if slices.Index(want, got[i]) < slices.Index(want, got[i-1]) {
				late++
			}
		}
		if late > 3 {
			t.Errorf("%d steps back for 3 losses", late)
		}
		if s := b.link.Outbox().Status(); s.Entries[link.Results] != 0 {
			t.Errorf("the outbox still has %v", s.Entries)
		}
	})
}

// TestPitfall07_HandlerBlocks: a handler that never returns stops neither pings
// nor acknowledgements nor the handlers of other kinds.
// (Also TestReport11: brocaar/chirpstack-network-server PR #564.)
func TestPitfall07_HandlerBlocks(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		cancels := 0
		b.make().Handle(wire.TypeExecute, func(ctx context.Context, _ *wire.Message) { <-ctx.Done() })
		b.link.Handle(wire.TypeCancel, func(context.Context, *wire.Message) { cancels++ })
		b.online()
		for i := range 200 {
			b.cloud.Send(rack, wire.KindCommand, b.cloud.Message("rack-1", wire.TypeExecute, wire.Command{CommandID: "c", Seq: uint64(i + 1), Name: "ping"}))
			synctest.Wait()
		}
		b.cloud.Send(rack, wire.KindTask, b.cloud.Message("rack-1", wire.TypeCancel, wire.Cancel{TaskID: "t", Attempt: 1}))
		synctest.Wait()
		if cancels != 1 {
			t.Error("the handler of another kind did not run")
		}
		if b.broker.Unacked() != 0 {
			t.Errorf("%d messages were not acknowledged", b.broker.Unacked())
		}
		if n := b.counter("refused_overflow"); n != 200-64-1 {
			t.Errorf("%d messages were dropped", n)
		}
		time.Sleep(time.Hour)
		if n := len(b.broker.Connects()); n != 1 {
			t.Errorf("%d connects", n)
		}
	})
}

// TestPitfall08_LostSubscriptions (also TestReport05: thingsboard #2898): what the
// cloud says arrives in the second session as in the first.
func TestPitfall08_LostSubscriptions(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		got := 0
		b.make().Handle(wire.TypeCancel, func(context.Context, *wire.Message) { got++ })
		b.online()
		for range 3 {
			b.broker.HangUpAll()
			time.Sleep(90 * time.Second)
			b.waitOnline()
			b.cloud.Send(rack, wire.KindTask, b.cloud.Message("rack-1", wire.TypeCancel, wire.Cancel{TaskID: "t", Attempt: 1}))
			synctest.Wait()
		}
		if got != 3 {
			t.Errorf("%d of 3 messages arrived", got)
		}
	})
}

// TestPitfall08_RefusedFilter: a subscription can be refused without an error. It
// needs somebody to change the broker, so the link tries seldom and says so.
func TestPitfall08_RefusedFilter(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.broker.Suback = []byte{0x80}
		b.run()
		synctest.Wait()
		if s := b.link.Status(); s.State != link.Waiting || !strings.Contains(s.LastError, "pr/v1/acme/rack-1/dn/+") || !strings.Contains(s.LastError, "0x80") {
			t.Errorf("status %+v", s)
		}
		time.Sleep(time.Hour)
		if n := len(b.broker.Connects()); n > 13 {
			t.Errorf("%d connects in an hour", n)
		}
		if !strings.Contains(b.log.String(), "level=ERROR") {
			t.Error("nobody was told")
		}
	})
}

// A broker that answers for more filters than there are makes paho panic.
func TestPitfall_SubackWithTooManyCodes(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.broker.Suback = []byte{1, 1, 1}
		b.run()
		synctest.Wait()
		if s := b.link.Status(); s.State != link.Waiting || s.LastError == "" {
			t.Errorf("status %+v", s)
		}
	})
}

// A broker may announce a packet of 256 MiB, which paho would set aside at once.
func TestPitfall_PacketLargerThanAnyFrame(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		b.broker.Publish("pr/v1/acme/rack-1/dn/cmd", false, make([]byte, 8<<20))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if s := b.link.Status(); s.State == link.Online || !strings.Contains(s.LastError, "larger than any frame") {
			t.Errorf("status %+v", s)
		}
		time.Sleep(time.Minute)
		b.waitOnline()
	})
}

// TestPitfall10_WaitForEver: a broker that accepts the connection and says nothing,
// or acknowledges no publish, does not hold the link up for ever.
func TestPitfall10_WaitForEver(t *testing.T) {
	t.Run("no CONNACK", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			tries := 0
			var far []net.Conn
			b.o.Dial = func(context.Context, string, string) (net.Conn, error) {
				tries++
				near, end := net.Pipe()
				far = append(far, end)
				go func() { // reads, and says nothing
					buf := make([]byte, 1024)
					for {
						if _, err := end.Read(buf); err != nil {
							return
						}
					}
				}()
				return near, nil
			}
			b.run()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if tries < 3 {
				t.Errorf("%d tries in two minutes", tries)
			}
			b.stop()
			for _, c := range far {
				c.Close()
			}
		})
	})
	t.Run("no PUBACK", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.broker.Judge = func(linktest.Publish) linktest.Verdict { return linktest.ForwardMute }
			b.online()
			for i := range 20 { // far below what is tolerated
				putResult(t, b, fmt.Sprint(i))
			}
			synctest.Wait()
			if s := b.link.Status(); s.State != link.Online || s.Outbox.Entries[link.Results] != 0 {
				t.Errorf("status %+v", s)
			}
			for i := range 100 {
				putResult(t, b, fmt.Sprint(i))
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if s := b.link.Status(); s.Outbox.Entries[link.Results] != 0 || len(b.broker.Connects()) < 2 {
				t.Errorf("%d connects, status %+v", len(b.broker.Connects()), s)
			}
		})
	})
	t.Run("stopping at a dead broker", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			b.online()
			b.broker.Freeze()
			start := time.Now()
			go func() { time.Sleep(time.Minute); b.broker.HangUpAll() }()
			b.stop()
			if d := time.Since(start); d > 90*time.Second {
				t.Errorf("it took %s", d)
			}
			time.Sleep(time.Minute)
		})
	})
}

// TestPitfall11_BackoffHasJitter: a fleet that lost its broker must not come back
// in step. The pauses are drawn from a range that doubles up to a minute.
func TestPitfall11_BackoffHasJitter(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		var limits []time.Duration
		b.o.Jitter = func(limit time.Duration) time.Duration {
			limits = append(limits, limit)
			return limit / 2
		}
		b.broker.Connect = func(*packets.ConnectPacket) byte { return packets.ErrRefusedServerUnavailable }
		b.run()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}
		for i, w := range want {
			if i >= len(limits) || limits[i] != w*time.Second {
				t.Fatalf("the ranges are %v", limits)
			}
		}
	})
}

// TestPitfall12_OnlineMeansWelcomed: paho is "connected" while it reconnects.
func TestPitfall12_OnlineMeansWelcomed(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.cloud.On(wire.TypeHello, nil)
		b.run()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s := b.link.Status(); s.State != link.Greeting || b.link.WaitOnline(ctx) == nil {
			t.Errorf("status %+v", s)
		}
	})
}

// TestPitfall13_HalfOpen: the other end is gone and nobody says so, idle and with
// a large frame on its way.
func TestPitfall13_HalfOpen(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy %t", busy), func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				b.online()
				b.broker.Freeze()
				start := time.Now()
				if busy {
					_, err := b.link.Request(t.Context(), link.Call{
						Kind: wire.KindPlan, Type: wire.TypePlanRequest, Body: wire.PlanRequest{},
						Attachments: []wire.Attachment{{Name: "screen", Type: "image/jpeg", Data: make([]byte, 800<<10)}},
					})
					if !errors.Is(err, link.ErrOffline) {
						t.Errorf("the request: %v", err)
					}
				}
				for b.link.Status().State == link.Online {
					time.Sleep(time.Second)
				}
				if d := time.Since(start); d > 50*time.Second {
					t.Errorf("noticed after %s", d)
				}
				time.Sleep(30 * time.Second)
				b.waitOnline()
			})
		})
	}
}

// TestPitfall14_FreshClient: a client is never used again; after many sessions
// nothing is left of them (the bubble fails if a goroutine is).
func TestPitfall14_FreshClient(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		for range 20 {
			time.Sleep(2 * time.Minute)
			b.waitOnline()
			b.broker.HangUpAll()
			synctest.Wait()
		}
		time.Sleep(2 * time.Minute)
		if s := b.link.Status(); s.Session != 21 {
			t.Errorf("session %d", s.Session)
		}
	})
}

// TestPitfall15_NoFallbackToMQTT31: a refused login is not tried again in MQTT 3.1
// (the broker here complains of that), and not soon.
func TestPitfall15_NoFallbackToMQTT31(t *testing.T) {
	for _, code := range []byte{packets.ErrRefusedIDRejected, packets.ErrRefusedBadUsernameOrPassword, packets.ErrRefusedNotAuthorised} {
		t.Run(packets.ConnackReturnCodes[code], func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				b.broker.Connect = func(*packets.ConnectPacket) byte { return code }
				b.run()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				if n := len(b.broker.Connects()); n != 1 || b.link.Status().LastError == "" {
					t.Errorf("%d connects, status %+v", n, b.link.Status())
				}
			})
		})
	}
}

// TestReport01_StaleWill: the broker publishes the will of the old connection after
// the new one has said online. Its numbers are older, so the cloud can tell.
// (jagheterfredrik/wallbox-mqtt-bridge #107)
func TestReport01_StaleWill(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		b.broker.Freeze() // the broker notices nothing, and takes the next connection for a second one
		time.Sleep(2 * time.Minute)
		b.waitOnline()
		synctest.Wait()
		var wills, online []wire.State
		for _, p := range b.broker.Published() {
			if p.Topic != up(wire.KindState) {
				continue
			}
			s := linktest.Decode[wire.State](t, frameOf(t, b, p))
			if p.Will {
				wills = append(wills, s)
			} else {
				online = append(online, s)
			}
		}
		if len(wills) != 1 || len(online) != 2 {
			t.Fatalf("wills %+v, online %+v", wills, online)
		}
		if w, o := wills[0], online[1]; w.Generation != o.Generation || w.Session >= o.Session || w.State != wire.Offline {
			t.Errorf("the old will %+v cannot be told from the new state %+v", w, o)
		}
	})
}

// TestReport02_OfflineOnCleanStop: no will is published after DISCONNECT, so the
// retained state would say online for ever. (arendst/Tasmota #7189)
func TestReport02_OfflineOnCleanStop(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		b.stop()
		p := linktest.Publish{Topic: up(wire.KindState), Payload: b.broker.Retained(up(wire.KindState))}
		if s := linktest.Decode[wire.State](t, frameOf(t, b, p)); s.State != wire.Offline {
			t.Errorf("the retained state says %s", s.State)
		}
	})
}

// TestReport03_RetainedCommand: a command that the broker has kept runs at each
// connect. (emsesp/EMS-ESP32 #2179, Tasmota #2809)
func TestReport03_RetainedCommand(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		ran := 0
		b.make().Handle(wire.TypeExecute, func(context.Context, *wire.Message) { ran++ })
		b.online()
		topic, frame := b.cloud.Frame(rack, wire.KindCommand, b.cloud.Message("rack-1", wire.TypeExecute, wire.Command{CommandID: "c1", Seq: 1, Name: "reboot"}))
		b.broker.Publish(topic, true, frame) // live: proper but for the flag, which nobody sees
		synctest.Wait()
		for range 3 {
			b.broker.HangUpAll()
			time.Sleep(90 * time.Second)
			b.waitOnline()
		}
		if ran != 1 || b.counter("refused_retained") != 3 {
			t.Errorf("it ran %d times; counted %v", ran, b.link.Status().Counters)
		}
	})
}

// TestReport06_TakeOver: a second board with the same identity throws the rack out,
// and is thrown out by it. (aws/amazon-freertos #3005)
func TestReport06_TakeOver(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		stop := make(chan struct{})
		twin := make(chan struct{})
		go func() {
			defer close(twin)
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Second):
				}
				impostor(t, b.broker)
			}
		}()
		time.Sleep(2 * time.Minute)
		n := len(b.broker.Connects())
		time.Sleep(30 * time.Minute)
		close(stop)
		<-twin
		synctest.Wait()
		if !strings.Contains(b.log.String(), "level=ERROR") || !strings.Contains(b.log.String(), "does another board use the same rack id") {
			t.Errorf("nobody was told:\n%s", b.log)
		}
		own := 0
		for _, c := range b.broker.Connects()[n:] {
			if c.WillFlag { // the impostor has none
				own++
			}
		}
		if own > 31 {
			t.Errorf("the rack connected %d times in half an hour", own)
		}
	})
}

// TestRetryEndsAPauseForAPersonWhoHasMendedTheCause: the pause after three short sessions is minutes long, and nobody
// wants to wait for its end who has just restarted the broker three times.
func TestRetryEndsAPauseForAPersonWhoHasMendedTheCause(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.online()
		b.link.Retry() // nothing waits
		for range 3 {
			time.Sleep(time.Second)
			b.broker.HangUpAll()
			synctest.Wait()
			if s := b.link.Status(); s.State != link.Waiting {
				t.Fatalf("%s: the retry of before has ended a later pause", s.State)
			}
			if s := b.link.Status(); s.NextTry < time.Minute {
				time.Sleep(s.NextTry)
				b.waitOnline()
			}
		}
		before := b.link.Status()
		if before.State != link.Waiting || before.NextTry < time.Minute {
			t.Fatalf("%s, next try in %s", before.State, before.NextTry)
		}
		b.link.Retry()
		time.Sleep(time.Second) // a little for the session, nothing for a pause
		b.waitOnline()
		b.broker.HangUpAll()
		synctest.Wait()
		if s := b.link.Status(); s.NextTry > time.Second {
			t.Errorf("the next pause is %s: the failures of before still count", s.NextTry)
		}
	})
}

// impostor connects with the rack's id and goes on until it is thrown out.
func impostor(t *testing.T, broker *linktest.Broker) {
	conn, err := broker.Dial(t.Context(), "", "")
	if err != nil {
		return
	}
	defer conn.Close()
	p := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion, p.CleanSession, p.ClientIdentifier = "MQTT", 4, true, "rack-1"
	if p.Write(conn) == nil {
		_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
		for {
			if _, err := packets.ReadPacket(conn); err != nil {
				return
			}
		}
	}
}

// TestReport13_DuplicatesHaveOneEffect: QoS 1 delivers at least once.
// (thingsboard/tbmq #320: also without the duplicate flag)
func TestReport13_DuplicatesHaveOneEffect(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.broker.Duplicate = true
		ran := 0
		b.make().Handle(wire.TypeExecute, func(context.Context, *wire.Message) { ran++ })
		b.online()
		for i := range 5 {
			b.cloud.Send(rack, wire.KindCommand, b.cloud.Message("rack-1", wire.TypeExecute, wire.Command{CommandID: "c", Seq: uint64(i + 1), Name: "ping"}))
		}
		synctest.Wait()
		if ran != 5 || b.counter("ignored_repeated") != 5 {
			t.Errorf("5 commands ran %d times; counted %v", ran, b.link.Status().Counters)
		}
	})
}
