// Package cloudrig runs rackcloud as a process of its own, for the demo and for tests: with its embedded broker and
// SQLite in a folder, on ports of the loopback that stay the same over a restart. Orders are given as people give them,
// by the rackcloud program.
package cloudrig

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options say what cloud is started.
type Options struct {
	Program string   // path of a rackcloud that Build has made; Start builds one without it
	Dir     string   // for everything that it writes; the caller removes it
	Names   []string // by which racks reach this machine; the first goes into bundles. 127.0.0.1 without any
	Flags   []string // further flags of rackcloud serve
	Env     []string // further words of its environment
}

// Cloud is a rackcloud that can be stopped, killed and started again.
type Cloud struct {
	Program string // path of the rackcloud program
	o       Options
	ports   [3]string // of hosts' HTTP, the admin API and MQTT

	mu    sync.Mutex // guards what follows
	log   bytes.Buffer
	serve *exec.Cmd
	ended chan struct{} // closed when serve has ended
}

// Build builds rackcloud into a folder and returns its path. It works in any folder of the repository.
func Build(ctx context.Context, dir string) (program string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// As make build-portable builds it, so that the Go tool has most of it already.
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "phonerack/cmd/rackcloud")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return filepath.Join(dir, "rackcloud"), nil
}

// Start starts a rackcloud. It returns when rackcloud says that it is ready.
func Start(ctx context.Context, o Options) (*Cloud, error) {
	if len(o.Names) == 0 {
		o.Names = []string{"127.0.0.1"}
	}
	if o.Program == "" {
		var err error
		if o.Program, err = Build(ctx, filepath.Join(o.Dir, "bin")); err != nil {
			return nil, err
		}
	}
	c := &Cloud{Program: o.Program, o: o}
	ports, err := FreePorts(len(c.ports))
	if err != nil {
		return nil, err
	}
	copy(c.ports[:], ports)
	return c, c.Restart(ctx)
}

// FreePorts finds ports of the loopback that nobody has now.
func FreePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all are found, so that they differ
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// Restart starts rackcloud after it was stopped or killed.
func (c *Cloud) Restart(ctx context.Context) error {
	args := []string{
		"serve", "--state", filepath.Join(c.o.Dir, "state"), "--listen", "127.0.0.1:" + c.ports[0],
		"--admin-listen", "127.0.0.1:" + c.ports[1], "--mqtt", "127.0.0.1:" + c.ports[2],
	}
	for _, name := range c.o.Names {
		args = append(args, "--name", name)
	}
	serve := exec.Command(c.Program, append(args, c.o.Flags...)...)
	serve.Env = append(os.Environ(), c.o.Env...)
	serve.Stderr = (*logged)(c)
	serve.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := serve.StdoutPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	ended, ready := make(chan struct{}), make(chan bool, 1)
	c.mu.Lock()
	c.serve, c.ended = serve, ended
	c.mu.Unlock()
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready:") {
				ready <- true
			}
		}
		_ = serve.Wait() // how it ended is in its log
	}()
	select {
	case <-ready:
		return nil
	case <-ended:
		return fmt.Errorf("rackcloud ended at once:\n%s", c.Log())
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("rackcloud is not ready: %w\n%s", ctx.Err(), c.Log()), c.Close())
	}
}

// logged takes what rackcloud writes.
type logged Cloud

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

// Log is what rackcloud has logged so far.
func (c *Cloud) Log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// Kill ends rackcloud at once, as kill -9 does.
func (c *Cloud) Kill() { _ = c.end(syscall.SIGKILL, 10*time.Second) }

// Close asks rackcloud to stop, and kills it if it has not after ten seconds.
func (c *Cloud) Close() error { return c.end(syscall.SIGTERM, 10*time.Second) }

func (c *Cloud) end(signal syscall.Signal, limit time.Duration) error {
	c.mu.Lock()
	serve, ended := c.serve, c.ended
	c.serve = nil
	c.mu.Unlock()
	if serve == nil {
		return nil
	}
	_ = serve.Process.Signal(signal) // it may have ended by itself
	select {
	case <-ended:
		return nil
	case <-time.After(limit):
		_ = serve.Process.Kill()
		<-ended
		return fmt.Errorf("rackcloud did not stop within %s and was killed", limit)
	}
}

// API is the address of the hosts' HTTP.
func (c *Cloud) API() string { return "127.0.0.1:" + c.ports[0] }

// MQTT is the address of the broker.
func (c *Cloud) MQTT() string { return "127.0.0.1:" + c.ports[2] }

// Admin is the address of the admin API.
func (c *Cloud) Admin() string { return "127.0.0.1:" + c.ports[1] }

// PID is the number of the process; 0 if none runs.
func (c *Cloud) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serve == nil {
		return 0
	}
	return c.serve.Process.Pid
}

// Figures are rackcloud's metrics as Prometheus reads them.
func (c *Cloud) Figures(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Admin()+"/metrics", nil)
	if err != nil {
		return "", err
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the metrics answered %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	return string(text), err
}

// State is the folder of what outlives a restart.
func (c *Cloud) State() string { return filepath.Join(c.o.Dir, "state") }

// Ctl gives an order by the rackcloud program and writes its output as it comes.
func (c *Cloud) Ctl(ctx context.Context, stdout io.Writer, args ...string) (exit int, err error) {
	cmd := exec.CommandContext(ctx, c.Program, append([]string{"--admin", "http://" + c.Admin()}, args...)...)
	cmd.Stdout = stdout
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		if ctx.Err() != nil {
			return failed.ExitCode(), ctx.Err()
		}
		return failed.ExitCode(), fmt.Errorf("rackcloud %s: exit code %d: %s", strings.Join(args, " "), failed.ExitCode(), strings.TrimSpace(stderr.String()))
	}
	return 0, err
}

// Ask gives an order and reads its JSON into v.
func (c *Cloud) Ask(ctx context.Context, v any, args ...string) error {
	var out bytes.Buffer
	if _, err := c.Ctl(ctx, &out, append([]string{"--json"}, args...)...); err != nil {
		return err
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		return fmt.Errorf("rackcloud %s printed %.200q: %w", strings.Join(args, " "), out.String(), err)
	}
	return nil
}

// AddRack enrols a rack and returns the path of its bundle.
func (c *Cloud) AddRack(ctx context.Context, name string) (bundle string, err error) {
	bundle = filepath.Join(c.o.Dir, name+".json")
	_, err = c.Ctl(ctx, io.Discard, "host", "add", "--name", name, "--out", bundle)
	return bundle, err
}

// Script makes the shipped rules decide.
func (c *Cloud) Script(ctx context.Context) error {
	_, err := c.Ctl(ctx, io.Discard, "provider", "add", "rules", "--provider", "scripted", "--activate")
	return err
}

// Task is what rackcloud tells of a task, as far as it is looked at here.
type Task struct {
	ID      string `json:"task_id"`
	State   string `json:"state"`
	Attempt int    `json:"attempt"`
}

// Submit submits a task and returns its id.
func (c *Cloud) Submit(ctx context.Context, args ...string) (string, error) {
	var t Task
	err := c.Ask(ctx, &t, append([]string{"task", "submit"}, args...)...)
	return t.ID, err
}

// Await waits until a task is over and returns it.
func (c *Cloud) Await(ctx context.Context, id string) (Task, error) {
	for {
		var t Task
		err := c.Ask(ctx, &t, "task", "show", id)
		switch {
		case ctx.Err() != nil:
			return t, fmt.Errorf("task %s is %s: %w", id, t.State, ctx.Err())
		case err == nil && (t.State == "succeeded" || t.State == "failed" || t.State == "cancelled" || t.State == "lost"):
			return t, nil
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// Decision is a decision as rackcloud decisions tells it.
type Decision struct {
	Attempt int    `json:"attempt"`
	Step    int    `json:"step_index"`
	Tool    string `json:"tool_name"`
}
