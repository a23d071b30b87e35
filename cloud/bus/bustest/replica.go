package bustest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

const replicaVar = "PHONERACK_BUSTEST_REPLICA"

// Replica tells another process how to open a bus.
type Replica struct {
	Driver   string // "nats" or "shared"; "" if no other process can
	NATS     []string
	MQTT     []string
	Password string
	Group    string
	Kind     wire.Kind
}

func (r Replica) bus() (bus.Bus, error) {
	m := bus.MQTT{URLs: r.MQTT, Username: bus.CloudUser, Password: r.Password}
	if r.Driver == "nats" {
		return bus.OpenNATS(bus.NATS{URLs: r.NATS, Username: bus.CloudUser, Password: r.Password, MQTT: m, Group: r.Group})
	}
	return bus.OpenShared(bus.Shared{MQTT: m, Group: r.Group})
}

// BeReplica serves for ever and prints the content of each frame as a line, if this process was started by Spawn. It is
// called first in TestMain of a package that runs the suite.
func BeReplica() {
	text := os.Getenv(replicaVar)
	if text == "" {
		return
	}
	var r Replica
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	b, err := r.bus()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for b.Stats().Listening == 0 || b.Check(context.Background()) != nil {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println("ready")
	}()
	err = b.Serve(context.Background(), []wire.Kind{r.Kind}, func(_ context.Context, f bus.Frame) {
		fmt.Printf("%s\n", f.Data)
	})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// process is a replica of its own that can be killed.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu    sync.Mutex // guards lines
	lines []string
}

// spawn starts a replica for a kind and waits until it serves.
func spawn(t testing.TB, r Replica) *process {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^$"), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), replicaVar+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.mu.Unlock()
		}
		p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	Eventually(t, 20*time.Second, "the other replica serves", func() bool { return len(p.handled()) > 0 })
	return p
}

// handled are the lines it has printed.
func (p *process) handled() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}
