package main

import (
	"strings"
	"testing"
	"time"
)

func TestWaitTakesATimeOrNone(t *testing.T) {
	const done = `{"command_id":"c1","rack_id":"r1","name":"ping","state":"succeeded","task_id":"t1"}`
	const open = `{"command_id":"c1","rack_id":"r1","name":"ping","state":"queued","task_id":"t1"}`
	submit, send := []string{"task", "submit", "--goal", "g"}, []string{"command", "send", "ping", "r1"}
	for _, c := range []struct {
		name   string
		order  []string
		words  []string
		answer string
		code   int
		asks   bool // how it goes on
	}{
		{"a command, not waited for", send, nil, open, 0, false},
		{"a command, to its end", send, []string{"--wait"}, done, 0, false}, // its first answer tells the end
		{"a command, for a time", send, []string{"--wait=30s"}, done, 0, false},
		{"a command, the time as a word of its own", send, []string{"--wait", "30s"}, done, 0, false},
		{"a command, until the time is over", send, []string{"--wait=1ms"}, open, exitRefused, true},
		{"a command, before other words", []string{"command", "send", "--wait", "ping", "r1"}, nil, done, 0, false},
		{"a command, no time", send, []string{"--wait=soon"}, done, exitUsage, false},
		{"a command, a time that is over", send, []string{"--wait=-1s"}, done, exitUsage, false},
		{"a task, not waited for", submit, nil, open, 0, false},
		{"a task, to its end", submit, []string{"--wait"}, done, 0, true},
		{"a task, for a time", submit, []string{"--wait=30s"}, done, 0, true},
		{"a task, the time as a word of its own", submit, []string{"--wait", "30s"}, done, 0, true},
		{"a task, until the time is over", submit, []string{"--wait=1ms"}, open, exitRefused, true},
		{"a task, before other flags", []string{"task", "submit", "--wait", "--goal", "g"}, nil, done, 0, true},
		{"a task, no time", submit, []string{"--wait=1"}, done, exitUsage, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			asked, said, code := operated(t, c.answer, append(c.order[:len(c.order):len(c.order)], c.words...)...)
			if code != c.code || (len(asked) > 1) != c.asks || (c.code == exitUsage) != (len(asked) == 0) {
				t.Errorf("%d, asked %q, said %s", code, asked, said)
			}
			if time.Since(begin) > 10*time.Second {
				t.Error("it has waited on")
			}
		})
	}
}

func TestTablesSayWhatIsSo(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer string
		args   []string
		says   string
		not    string
	}{
		{"a rack that was revoked while it was online", `{"rack_id":"r1","presence":"online","revoked":1790000000000}`, []string{"host", "show", "r1"}, "revoked, seen", "online"},
		{"a command to the rack itself", `{"command_id":"c1","rack_id":"r1","name":"ping","state":"queued"}`, []string{"command", "show", "c1"}, "r1    -  ", ""},
		{"a command to a slot", `{"command_id":"c1","rack_id":"r1","slot":7,"name":"reboot","state":"queued"}`, []string{"command", "show", "c1"}, "r1    7  ", ""},
		{"a task that nobody had", `{"task_id":"t1","state":"cancelled","goal":"g"}`, []string{"task", "show", "t1"}, "before a rack had it", ""},
		{"a task that a rack had", `{"task_id":"t1","state":"cancelled","goal":"g","attempts":[{"attempt":1,"rack_id":"r1","slot":2,"state":"cancelled"}]}`, []string{"task", "show", "t1"}, "cancelled", "before a rack"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, said, code := operated(t, c.answer, c.args...)
			if code != 0 || !strings.Contains(said, c.says) || c.not != "" && strings.Contains(said, c.not) {
				t.Errorf("%d: %s", code, said)
			}
		})
	}
}
