package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const greeting = `{"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": ["oob"]}}`

// peer plays QEMU: for each command that comes it writes the lines of the next element of script, in which %d stands for
// the command's id. "" as a line closes the connection.
func peer(t *testing.T, greet string, script ...[]string) net.Conn {
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	t.Cleanup(func() {
		theirs.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		fmt.Fprintln(theirs, greet)
		commands := bufio.NewScanner(theirs)
		for _, lines := range script {
			if !commands.Scan() {
				return
			}
			var command struct{ ID int }
			if err := json.Unmarshal(commands.Bytes(), &command); err != nil {
				t.Errorf("command: %v", err)
			}
			for _, line := range lines {
				if line == "" {
					theirs.Close()
					return
				}
				fmt.Fprintln(theirs, strings.ReplaceAll(line, "%d", fmt.Sprint(command.ID)))
			}
		}
		for commands.Scan() { // unanswered
		}
	}()
	return ours
}

var negotiated = []string{`{"return": {}, "id": %d}`}

func TestMonitorAnswersAndKeepsEvents(t *testing.T) {
	conn := peer(t, greeting, negotiated,
		[]string{
			`{"timestamp": {"seconds": 1, "microseconds": 2}, "event": "RESUME"}`,
			`{"return": {"status": "running", "running": true}, "id": %d}`,
		},
		[]string{`{"error": {"class": "CommandNotFound", "desc": "The command nonsense has not been found"}, "id": %d}`},
		[]string{`{"event": "SHUTDOWN", "data": {"guest": true}}`, ""},
	)
	q, err := openQMP(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	var status struct{ Status string }
	if err := q.execute(t.Context(), "query-status", nil, &status); err != nil || status.Status != "running" {
		t.Errorf("%v, %v", status, err)
	}
	var refused *qmpError
	if err := q.execute(t.Context(), "nonsense", nil, nil); !errors.As(err, &refused) || refused.Class != "CommandNotFound" {
		t.Errorf("a refusal: %v", err)
	}
	if err := q.execute(t.Context(), "system_powerdown", nil, nil); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("a lost connection: %v", err)
	}
	events := q.list()
	if len(events) != 2 || events[0].Name != "RESUME" || events[1].Name != "SHUTDOWN" || string(events[1].Data) != `{"guest": true}` {
		t.Errorf("events: %v", events)
	}
}

func TestMonitorIsStrict(t *testing.T) {
	for name, test := range map[string]struct {
		greet string
		lines []string
		says  string
	}{
		"no greeting":        {`{"return": {}, "id": 1}`, nil, "greeting must come first"},
		"no JSON":            {`hello`, nil, "invalid character"},
		"second greeting":    {greeting, []string{greeting}, "greeting must come first, and once"},
		"other's answer":     {greeting, []string{`{"return": {}, "id": 77}`}, "command that was not given"},
		"answer without id":  {greeting, []string{`{"return": {}}`}, "command that was not given"},
		"return and error":   {greeting, []string{`{"return": {}, "error": {"class": "X", "desc": ""}, "id": %d}`}, "neither or both"},
		"neither":            {greeting, []string{`{"id": %d}`}, "neither or both"},
		"line without limit": {greeting, []string{strings.Repeat("x", qmpLineLimit+1)}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openQMP(t.Context(), peer(t, test.greet, test.lines))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q in it", err, test.says)
			}
		})
	}
}

func TestMonitorThatIsSilentEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := openQMP(ctx, ours); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no greeting: %v", err)
		}
	})
}
