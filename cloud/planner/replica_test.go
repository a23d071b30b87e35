package planner_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/agent/planner/provider"
	pt "phonerack/agent/planner/provider/providertest"
	"phonerack/cloud/planner"
	"phonerack/cloud/store"
	"phonerack/cloud/store/pgtest"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

// replicaVariable makes the test's binary a replica: its value is a replica as JSON.
const replicaVariable = "PHONERACK_TEST_PLANNER_REPLICA"

// replicaTimeout is the profile's. A replica that was killed is missed for so long, and the margin.
const (
	replicaTimeout = 2 * time.Second
	replicaMargin  = 500 * time.Millisecond
	replicaLife    = 60 * time.Second // of a process, whatever happens
)

// replica is what a process is told.
type replica struct {
	DSN     string
	Keys    string
	Owner   string
	Request wire.PlanRequest
	Die     planner.Point // where it stops and waits to be killed; "" for nowhere
}

// said is a line of a replica.
type said struct {
	At     planner.Point `json:"at,omitempty"`
	Answer string        `json:"answer,omitempty"`
	Error  string        `json:"error,omitempty"`
}

// asReplica runs a replica if this process is one.
func asReplica() bool {
	raw, there := os.LookupEnv(replicaVariable)
	if !there {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), replicaLife)
	defer cancel()
	answer, err := runReplica(ctx, raw)
	if err != nil {
		say(said{Error: err.Error()})
	} else {
		say(said{Answer: answer})
	}
	return true
}

func say(s said) {
	raw, _ := json.Marshal(s)
	fmt.Println(string(raw))
}

func runReplica(ctx context.Context, raw string) (string, error) {
	var r replica
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		return "", err
	}
	s, err := store.Open(ctx, r.DSN, store.Options{})
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	v, err := vault.Open(r.Keys)
	if err != nil {
		return "", err
	}
	p, err := planner.New(planner.Options{
		Store: s, Vault: v, Owner: r.Owner, Margin: replicaMargin, Pool: &provider.Pool{},
		Failpoint: func(at planner.Point) {
			if at == r.Die {
				say(said{At: at})
				<-ctx.Done()
				os.Exit(3)
			}
		},
	})
	if err != nil {
		return "", err
	}
	// A rack's transport brings a request again until it is answered.
	for {
		d, err := p.Decide(ctx, rack1, r.Request, nil, nil)
		if err == nil {
			raw, err := json.Marshal(d)
			return string(raw), err
		}
		if !wire.Is(err, wire.ProviderTimeout) || ctx.Err() != nil {
			return "", err
		}
	}
}

// process is a replica that runs.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	out   io.Closer
}

func startReplica(t *testing.T, r replica) *process {
	t.Helper()
	raw, err := json.Marshal(r)
	ok(t, err)
	self, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), replicaVariable+"="+string(raw))
	cmd.Stderr = io.Discard // its log
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	p := &process{cmd: cmd, lines: bufio.NewScanner(out), out: out}
	t.Cleanup(p.kill)
	return p
}

// kill ends the process with SIGKILL, if it still runs.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.out.Close()
	_ = p.cmd.Wait()
}

// next is what the process says next.
func (p *process) next(t *testing.T) said {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the replica ended without a word: %v", p.lines.Err())
	}
	var s said
	if err := json.Unmarshal(p.lines.Bytes(), &s); err != nil {
		t.Fatalf("the replica said %q", p.lines.Text())
	}
	return s
}

func (p *process) answer(t *testing.T) string {
	t.Helper()
	s := p.next(t)
	if s.Answer == "" {
		t.Fatalf("the replica said %+v, want an answer", s)
	}
	return s.Answer
}

func TestReplicasKilledAnywhereGiveOneAnswer(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		killReplicas(t, func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "cloud.db") })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		server := pgtest.Start(t)
		killReplicas(t, func(t *testing.T) string { return server.Database(t) })
	})
}

func killReplicas(t *testing.T, database func(*testing.T) string) {
	for _, c := range []struct {
		die   planner.Point
		calls int // one without a kill
	}{
		{"", 1},
		{planner.AfterRequest, 1},
		{planner.AfterReply, 2},
		{planner.AfterCommit, 1},
		{planner.BeforePublish, 1},
	} {
		name := "killed at " + string(c.die)
		if c.die == "" {
			name = "none is killed"
		}
		t.Run(name, func(t *testing.T) {
			f := newFleetOfReplicas(t, database(t))
			var processes []*process
			if c.die != "" {
				victim := startReplica(t, f.replica("victim", c.die))
				equal(t, "the victim is", victim.next(t).At, c.die)
				defer victim.kill() // if it was not, below
				processes = append(processes, victim)
			}
			for i := len(processes); i < 3; i++ {
				processes = append(processes, startReplica(t, f.replica(fmt.Sprint("replica", i), "")))
			}
			if c.die != "" {
				processes[0].kill()
				processes = processes[1:]
			}
			answers := make([]string, len(processes))
			for i, p := range processes {
				answers[i] = p.answer(t)
				equal(t, "answer", answers[i], answers[0])
			}
			equal(t, "provider calls", f.fake.Calls(), c.calls)
			f.oneRow(t, answers[0])
		})
	}
}

// fleetOfReplicas is a database with one request that several processes work on.
type fleetOfReplicas struct {
	dsn, keys string
	store     *store.Store
	fake      *pt.Server
	request   wire.PlanRequest
}

func newFleetOfReplicas(t *testing.T, dsn string) *fleetOfReplicas {
	t.Helper()
	f := &fleetOfReplicas{dsn: dsn, keys: filepath.Join(t.TempDir(), "keys")}
	var err error
	f.store, err = store.Open(t.Context(), dsn, store.Options{})
	ok(t, err)
	t.Cleanup(func() { ok(t, f.store.Close()) })
	v := newVault(t, f.keys)
	calls := 0
	f.fake, err = pt.Start(pt.Config{Default: func(*pt.Seen) pt.Reply { // no two answers are alike
		calls++
		return pt.Call("tap", fmt.Sprintf(`{"element":%d}`, calls))
	}})
	ok(t, err)
	t.Cleanup(f.fake.Close)
	addHost(t, f.store, acme, "r1")
	activate(t, f.store, v, store.Profile{
		ID: store.NewID(), Name: "p", Provider: store.Anthropic, Model: "model-a", BaseURL: f.fake.URL, Timeout: replicaTimeout, KeyVersion: 1,
	}, pt.Key)
	f.request = ask("q0", lease(t, f.store, "r1", 1))
	return f
}

func (f *fleetOfReplicas) replica(owner string, die planner.Point) replica {
	return replica{DSN: f.dsn, Keys: f.keys, Owner: owner, Request: f.request, Die: die}
}

// oneRow wants the answer in one row, which has the first step; the next request gets the next one.
func (f *fleetOfReplicas) oneRow(t *testing.T, answer string) {
	t.Helper()
	next := f.replica("next", "")
	next.Request.RequestID = "q1"
	second := startReplica(t, next).answer(t)
	list, _, err := f.store.Decisions(t.Context(), acme, f.request.TaskID, 0, store.Page{})
	ok(t, err)
	equal(t, "rows", len(list), 2)
	for i, want := range []string{answer, second} {
		row, err := json.Marshal(wire.PlanDecision{
			RequestID: list[i].RequestID, StepIndex: i, ToolName: list[i].Tool, Arguments: list[i].Arguments, Tokens: int(list[i].TokensIn + list[i].TokensOut),
		})
		ok(t, err)
		equal(t, "row", string(row), want)
		equal(t, "step", list[i].Step, i)
	}
	if !strings.Contains(answer, `"request_id":"q0"`) {
		t.Errorf("the answer is %s", answer)
	}
}
