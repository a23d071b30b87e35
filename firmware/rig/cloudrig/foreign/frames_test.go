package foreign_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig/cloudrig"
	"phonerack/sync/wire"
)

// hello begins a session by hand.
func (c *client) hello(session int) (nonce string, frame []byte) {
	c.t.Helper()
	nonce = fmt.Sprintf("nonce-of-session-%04d", session)
	frame = c.sign(c.topic(wire.Up, wire.KindSession), fmt.Sprintf(
		`{"type":"session.hello","body":{"nonce":%q,"generation":1,"boot":"1-hand","session":%d}}`, nonce, session))
	if m := c.ask(wire.KindSession, frame); m.Type != wire.TypeWelcome || m.Sess != nonce {
		c.t.Fatalf("the hello is answered by %s in the session %q: %s", m.Type, m.Sess, m.Body)
	}
	return nonce, frame
}

// lease submits a task for the rack and claims it by hand.
func (c *client) lease(ctx context.Context, cloud *cloudrig.Cloud) string {
	c.t.Helper()
	id, err := cloud.Submit(ctx, "--goal", "be done by hand", "--rack", c.bundle.Rack)
	if err != nil {
		c.t.Fatal(err)
	}
	m := c.ask(wire.KindTask, c.sign(c.topic(wire.Up, wire.KindTask), `{"type":"task.claim","body":{"slot":1,"phone":"SIM0001","claim_id":"by-hand","skills_version":""}}`))
	var lease wire.Lease
	if err := m.Decode(&lease); err != nil || m.Type != wire.TypeLease || lease.Task.TaskID != id {
		c.t.Fatalf("the claim is answered by %s: %s", m.Type, m.Body)
	}
	return id
}

// TestFramesThatAreNotOfNowAreRefusedAndCounted sends results of a leased task that must not end it, each by
// mosquitto_pub with the rack's own certificate, and looks at metrics and task after each.
func TestFramesThatAreNotOfNowAreRefusedAndCounted(t *testing.T) {
	ctx := t.Context()
	cloud := startCloud(t, cloudrig.Options{})
	a, b := addRack(t, cloud, "a"), addRack(t, cloud, "b")
	oldNonce, oldHello := a.hello(1)
	nonce, _ := a.hello(2)
	b.hello(1)
	task := a.lease(ctx, cloud)

	own := a.topic(wire.Up, wire.KindTask)
	result := func(sess, more string) string {
		return fmt.Sprintf(`{"type":"task.result","sess":%q%s,"body":{"task_id":%q,"attempt":1,"outcome":"succeeded","wrote":true,"steps":7,"tokens":0}}`, sess, more, task)
	}
	at := func(d time.Duration) string {
		ts := time.Now().Add(d)
		return fmt.Sprintf(`,"ts":%d,"exp":%d`, ts.UnixMilli(), ts.Add(time.Minute).UnixMilli())
	}
	good := a.sign(own, result(nonce, ""))
	change := func(old, changed string) []byte {
		if bytes.Count(good, []byte(old)) != 1 {
			t.Fatalf("%q is not there once: %q", old, good)
		}
		return bytes.Replace(good, []byte(old), []byte(changed), 1)
	}
	picture := filepath.Join(t.TempDir(), "picture")
	if err := os.WriteFile(picture, bytes.Repeat([]byte("picture "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	attached := a.sign(own, result(nonce, ""), "--attach", "screen=image/jpeg="+picture)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(a.bundle.MACSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	mac := strings.Fields(string(good[:200]))[3]

	f := readFigures(t, cloud)
	for _, c := range []struct {
		name, reason string
		by           *client
		topic        wire.Topic
		frame        []byte
	}{
		{"one byte of the JSON", "mac", a, own, change(`"steps":7`, `"steps":8`)},
		{"one digit of the MAC", "mac", a, own, change(mac, flip(mac))},
		{"one byte of an attachment", "content", a, own, alter(attached, len(attached)-100)},
		{"an attachment cut off", "content", a, own, attached[:len(attached)-1]},
		{"signed for another topic of the rack", "mac", a, a.topic(wire.Up, wire.KindCommand), good},
		{"signed for the way down", "mac", a, own, a.sign(a.topic(wire.Down, wire.KindTask), `{"type":"task.none","body":{}}`)},
		{"another rack's frame on one's own topic", "unknown_key", b, b.topic(wire.Up, wire.KindTask), good},
		{"expired", "expired", a, own, a.sign(own, result(nonce, at(-2*time.Minute)))},
		{"ahead of time", "early", a, own, a.sign(own, result(nonce, at(8*time.Minute)))},
		{"just over 900 KiB", oversize, a, own, append(bytes.Clone(good), make([]byte, wire.MaxFrame+1-len(good))...)},
		{"just over 256 KiB of JSON", "too_large", a, own, append(bytes.Clone(good), bytes.Repeat([]byte(" "), wire.MaxJSON)...)},
		{"of the session before", "session", a, own, a.sign(own, result(oldNonce, ""))},
		{"the hello of the session before", "session", a, a.topic(wire.Up, wire.KindSession), oldHello},
		{"a key id that nobody has", "unknown_key", a, own, a.signBy([]string{"--secret", secret, "--kid", "feedface"}, own, result(nonce, ""))},
		{"an algorithm that is not there", "malformed", a, own, bytes.Replace(good, []byte("pr1 h1 "), []byte("pr1 s1 "), 1)},
		{"no frame", "malformed", a, own, []byte(result(nonce, ""))},
		{"nothing", "malformed", a, own, nil},
		{"a type that nobody knows", "unsupported", a, own, a.sign(own, fmt.Sprintf(`{"type":"task.dance","sess":%q}`, nonce))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.frame) == 0 {
				if out, err := c.by.run(nil, "mosquitto_pub", "-t", c.topic.String(), "-n"); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			} else {
				c.by.publish(c.topic, c.frame)
			}
			f.counted(t, cloud, c.reason)
			leased(t, cloud, task)
		})
	}
	t.Run("over the broker's limit", func(t *testing.T) {
		// The broker ends the connection. How many bytes of it the client can write before, and so what it says, is chance.
		out, err := a.run(append(bytes.Clone(good), make([]byte, 2<<20)...), "mosquitto_pub", "-t", own.String(), "-s")
		t.Logf("mosquitto_pub: %v: %s", err, out)
		f.counted(t, cloud, oversize)
		leased(t, cloud, task)
	})

	first := a.ask(wire.KindTask, good)
	if first.Type != wire.TypeTaskAck || string(first.Body) != "{}" {
		t.Fatalf("the proper frame is answered by %s: %s", first.Type, first.Body)
	}
	f.same(t, cloud)
	end, err := cloud.Await(ctx, task)
	if err != nil || end.State != "succeeded" {
		t.Fatalf("the proper frame has not ended the task: %+v, %v", end, err)
	}
	t.Run("the same bytes twice", func(t *testing.T) {
		again := a.ask(wire.KindTask, good)
		if again.Type != first.Type || !bytes.Equal(again.Body, first.Body) || again.Corr != first.Corr {
			t.Errorf("answered by %s %s, at first by %s %s", again.Type, again.Body, first.Type, first.Body)
		}
		f.counted(t, cloud, repeated)
	})
	t.Run("an event stays one, also after a restart", func(t *testing.T) {
		topic := a.topic(wire.Up, wire.KindEvent)
		event := a.sign(topic, fmt.Sprintf(`{"type":"event","exp":0,"sess":%q,"body":{"kind":"by.hand","at":%d}}`, nonce, time.Now().UnixMilli()), "--life", "0")
		a.ask(wire.KindEvent, event)
		if err := cloud.Close(); err != nil {
			t.Fatal(err)
		}
		if err := cloud.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if m := a.ask(wire.KindEvent, event); m.Type != wire.TypeEventAck {
			t.Errorf("the cloud that knows it from its database answers by %s: %s", m.Type, m.Body)
		}
		a.ask(wire.KindTask, good)
		if n := events(t, cloud, a, "by.hand"); n != 1 {
			t.Errorf("the event is there %d times", n)
		}
		var task2 cloudrig.Task
		if err := cloud.Ask(ctx, &task2, "task", "show", task); err != nil || task2 != end {
			t.Errorf("the task is %+v, %v", task2, err)
		}
		a.hello(3)
		f := readFigures(t, cloud)
		a.publish(topic, event)
		f.counted(t, cloud, "session")
	})
}

func addRack(t *testing.T, cloud *cloudrig.Cloud, name string) *client {
	t.Helper()
	path, err := cloud.AddRack(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, path)
}

// leased wants a task untouched.
func leased(t *testing.T, cloud *cloudrig.Cloud, id string) {
	t.Helper()
	var task cloudrig.Task
	if err := cloud.Ask(t.Context(), &task, "task", "show", id); err != nil || task.State != "leased" || task.Attempt != 1 {
		t.Errorf("the task is %+v, %v", task, err)
	}
}

// events counts the events of a kind that the cloud has of a rack.
func events(t *testing.T, cloud *cloudrig.Cloud, of *client, kind string) (n int) {
	t.Helper()
	var all []struct {
		Kind string `json:"kind"`
	}
	if err := cloud.Ask(t.Context(), &all, "events", "--rack", of.bundle.Rack); err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// flip changes one hexadecimal digit.
func flip(digits string) string {
	raw, _ := hex.DecodeString(digits)
	raw[len(raw)/2] ^= 1
	return hex.EncodeToString(raw)
}

// alter changes one bit of one byte.
func alter(frame []byte, at int) []byte {
	changed := bytes.Clone(frame)
	changed[at] ^= 1
	return changed
}
