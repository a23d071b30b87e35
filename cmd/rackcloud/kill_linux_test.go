package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"phonerack/cloud/api"
	"phonerack/cloud/fleet"
	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// process is a rackcloud that can be killed.
type process struct {
	*served
	cmd *exec.Cmd
}

// binary is the program, once it is built; TestMain removes its folder.
var binary string

// build makes the program once for all tests of this file.
func build(t *testing.T) string {
	t.Helper()
	if binary == "" {
		dir, err := os.MkdirTemp("", "rackcloud-test")
		if err != nil {
			t.Fatal(err)
		}
		binary = filepath.Join(dir, "rackcloud")
		c := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return binary
}

// start runs the program on a state folder, with fixed ports, so that racks find it again.
func start(t *testing.T, dir string, ports [3]string, flags ...string) *process {
	t.Helper()
	args := append([]string{
		"serve", "--state", filepath.Join(dir, "state"), "--listen", "127.0.0.1:" + ports[0], "--admin-listen", "127.0.0.1:" + ports[1],
		"--mqtt", "127.0.0.1:" + ports[2], "--name", "localhost",
	}, flags...)
	p := &process{served: &served{t: t, dir: dir, admin: "http://127.0.0.1:" + ports[1], api: "https://localhost:" + ports[0]}}
	p.cmd = exec.Command(build(t), args...)
	p.cmd.Stderr = t.Output()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready:") {
		t.Fatalf("got %q, %v", line, err)
	}
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it has ended already, or ends now
	_ = p.cmd.Wait()
}

// freePorts picks three ports. Another program may take one before rackcloud does; then the test fails loudly.
func freePorts(t *testing.T) (ports [3]string) {
	t.Helper()
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		_, ports[i], _ = net.SplitHostPort(l.Addr().String())
	}
	return ports
}

// slowProvider is an OpenAI-compatible server that answers when it is let.
func slowProvider(t *testing.T) (url string, asked <-chan struct{}, let chan<- struct{}) {
	t.Helper()
	a, l := make(chan struct{}, 16), make(chan struct{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a <- struct{}{}
		select {
		case <-l:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": map[string]int{"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
			"choices": []any{map[string]any{"index": 0, "finish_reason": "tool_calls", "message": map[string]any{"role": "assistant", "tool_calls": []any{
				map[string]any{"id": "c1", "type": "function", "function": map[string]string{"name": "press_key", "arguments": `{"key":"home"}`}},
			}}}},
		})
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(listener) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return "http://" + listener.Addr().String() + "/v1", a, l
}

func planOf(rack, task, id string) wire.PlanRequest {
	return wire.PlanRequest{
		RequestID: id, HostID: rack, TaskID: task, Attempt: 1, SystemPrompt: "You act.", UserPrompt: "Goal: go home",
		Tools: []wire.PlanTool{{Name: "press_key", Description: "Press.", InputSchema: json.RawMessage(`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`)}},
	}
}

// decide asks for a decision until there is one.
func decide(t *testing.T, l *link.Link, req wire.PlanRequest) (d wire.PlanDecision) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if err := l.WaitOnline(ctx); err != nil {
			break
		}
		x, err := l.Open(ctx, link.Call{Kind: wire.KindPlan, Type: wire.TypePlanRequest, Body: req})
		if err != nil {
			continue
		}
		for {
			m, err := x.Next(ctx)
			if err != nil || m.Type == wire.TypePlanFailure {
				if err == nil {
					t.Logf("a failure: %s", m.Body)
				}
				break
			}
			if m.Type == wire.TypePlanDecision && m.Decode(&d) == nil {
				x.Close()
				return d
			}
		}
		x.Close()
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("there is no decision")
	return d
}

func TestARackcloudThatIsKilledBetweenRequestAndAnswerGivesOneAnswer(t *testing.T) {
	dir, ports := t.TempDir(), freePorts(t)
	url, asked, let := slowProvider(t)
	p := start(t, dir, ports)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("sk-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do("provider", "add", "slow", "--provider", "openai", "--model", "m", "--base-url", url, "--timeout", "5s", "--key", key, "--activate")
	b := p.enrol("bench")
	l := join(t, b, true, nil)
	task := decode[fleet.Task](t, p.do("task", "submit", "--goal", "go home"))
	if _, err := ask[wire.Lease](t, l, wire.KindTask, wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c1"}); err != nil {
		t.Fatal(err)
	}
	req := planOf(b.Rack, task.TaskID, "req-1")
	x, err := l.Open(t.Context(), link.Call{Kind: wire.KindPlan, Type: wire.TypePlanRequest, Body: req})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		m, err := x.Next(t.Context())
		t.Fatalf("the provider was not asked: %+v, %v", m, err)
	}
	p.kill()
	x.Close()
	close(let)
	p = start(t, dir, ports)
	first := decide(t, l, req)
	again := decide(t, l, req)
	if first.ToolName != "press_key" || first.StepIndex != 0 || again.StepIndex != first.StepIndex || string(again.Arguments) != string(first.Arguments) {
		t.Errorf("got %+v, then %+v", first, again)
	}
	if n := len(asked); n != 1 {
		t.Errorf("the provider was asked %d times more", n)
	}
	list := decode[[]api.Decision](t, p.do("decisions", task.TaskID))
	if len(list) != 1 || list[0].StepIndex != 0 || list[0].RequestID != "req-1" {
		t.Errorf("got %+v", list)
	}
}

func TestARestoredOldDatabaseRunsNothingAgain(t *testing.T) {
	dir, ports := t.TempDir(), freePorts(t)
	p := start(t, dir, ports)
	b := p.enrol("bench")
	executed := make(chan wire.Command, 16)
	l := join(t, b, true, func(l *link.Link) {
		l.Handle(wire.TypeExecute, func(_ context.Context, m *wire.Message) {
			var c wire.Command
			if m.Decode(&c) == nil {
				executed <- c
			}
		})
	})
	task := decode[fleet.Task](t, p.do("task", "submit", "--goal", "send a message"))
	if _, err := ask[wire.Lease](t, l, wire.KindTask, wire.TypeClaim, wire.Claim{Slot: 1, ClaimID: "c1"}); err != nil {
		t.Fatal(err)
	}
	queued := decode[fleet.Task](t, p.do("task", "submit", "--goal", "another"))
	old := decode[fleet.Command](t, p.do("command", "send", "identify", b.Rack))
	<-executed
	copied := filepath.Join(dir, "copy.db")
	p.do("backup", copied)
	// What happens after the copy is not in it: both ran to their end.
	if _, err := ask[wire.Ack](t, l, wire.KindCommand, wire.TypeCommandStatus, wire.CommandStatus{CommandID: old.CommandID, Version: 1, Status: wire.CommandSucceeded}); err != nil {
		t.Fatal(err)
	}
	if _, err := ask[wire.Ack](t, l, wire.KindTask, wire.TypeResult, wire.Result{TaskID: task.TaskID, Attempt: 1, Outcome: wire.Succeeded, Wrote: true}); err != nil {
		t.Fatal(err)
	}
	p.kill()
	for _, name := range []string{"cloud.db", "cloud.db-wal", "cloud.db-shm"} {
		if err := os.Remove(filepath.Join(dir, "state", name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(copied, filepath.Join(dir, "state", "cloud.db")); err != nil {
		t.Fatal(err)
	}
	p = start(t, dir, ports)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.WaitOnline(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first may still find the old session
		_, err := ask[wire.Sync](t, l, wire.KindTask, wire.TypeHeartbeat, wire.Heartbeat{})
		if err == nil {
			break
		}
	}
	for _, id := range []string{task.TaskID, queued.TaskID} {
		if got := decode[fleet.Task](t, p.do("task", "show", id)); got.State != wire.TaskLost {
			t.Errorf("task %s is %s", id, got.State)
		}
	}
	m, err := l.Request(ctx, link.Call{Kind: wire.KindTask, Type: wire.TypeClaim, Body: wire.Claim{Slot: 1, ClaimID: "c2"}})
	if err != nil || m.Type != wire.TypeNone {
		t.Errorf("a task of the copy was given out: %v, %v", m, err)
	}
	list, err := ask[wire.Commands](t, l, wire.KindCommand, wire.TypePending, wire.Pending{})
	if err != nil || len(list.Commands) != 0 {
		t.Errorf("commands of the copy are handed out: %+v, %v", list, err)
	}
	if got := decode[fleet.Command](t, p.do("command", "show", old.CommandID)); got.State != wire.CommandUnknown {
		t.Errorf("the command is %s", got.State)
	}
	next := decode[fleet.Command](t, p.do("command", "send", "ping", b.Rack))
	if next.Seq <= old.Seq+1 {
		t.Errorf("the next command has number %d: one that the rack has seen may be reused", next.Seq)
	}
	select {
	case c := <-executed:
		if c.CommandID != next.CommandID {
			t.Errorf("command %s ran again", c.CommandID)
		}
	case <-time.After(20 * time.Second):
		t.Error("the next command did not come")
	}
}
