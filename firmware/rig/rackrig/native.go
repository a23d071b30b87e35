package rackrig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Native is a rack on this machine: rackd as a process, phones over unix sockets.
type Native struct {
	dir      string
	programs Programs
	rackd    *exec.Cmd
	ended    chan struct{} // closed when rackd has ended; nil as rackd
	log      lockedBuffer

	cancel context.CancelFunc
	phones sync.WaitGroup
}

// StartNative starts a rackd that [BuildNative] has built, with phones, in a folder that the caller removes; more is added
// to its configuration. It returns when rackd answers.
func StartNative(ctx context.Context, programs Programs, dir string, phones []*Phone, more string) (*Native, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n := &Native{dir: dir, programs: programs, cancel: cancel}
	var config strings.Builder
	fmt.Fprintf(&config, "[rack]\nid = \"native\"\nstate = \"state\"\nruntime = \"run\"\n\n[usb]\nenabled = false\n")
	for _, p := range phones {
		socket := filepath.Join(dir, fmt.Sprintf("p%d.sock", p.Slot))
		if err := n.serve(life, p, socket); err != nil {
			return nil, errors.Join(err, n.Close())
		}
		fmt.Fprintf(&config, "\n[[stream]]\nslot = %d\naddress = %q\n", p.Slot, "unix:"+socket)
	}
	config.WriteString("\n" + more)
	if err := os.WriteFile(n.config(), []byte(config.String()), 0o600); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if err := n.StartRackd(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// serve plays a phone on a unix socket, one connection at a time, until life ends.
func (n *Native) serve(life context.Context, p *Phone, socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	context.AfterFunc(life, func() { l.Close() })
	n.phones.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			// What ends a connection is in the phone's own log; the next one starts afresh.
			_ = p.USB.ServeStream(life, c)
		}
	})
	return nil
}

func (n *Native) config() string { return filepath.Join(n.dir, "rackd.toml") }

// StartRackd starts rackd, at first or after it was killed, and waits until it answers.
func (n *Native) StartRackd(ctx context.Context) error {
	rackd, ended := exec.Command(n.programs.Rackd, "run", "--config", n.config()), make(chan struct{})
	rackd.Stderr = &n.log
	rackd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := rackd.Start(); err != nil {
		return err
	}
	n.rackd, n.ended = rackd, ended
	go func() {
		defer close(ended)
		_ = rackd.Wait() // how it ended is for Close to say
	}()
	for {
		if exit, err := n.Ctl(ctx, io.Discard, "actions", "--json"); err == nil && exit == 0 {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("rackd ended at once:\n%s", n.log.String())
		case <-ctx.Done():
			return fmt.Errorf("rackd does not answer: %w\n%s", ctx.Err(), n.log.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Kill ends rackd at once, as kill -9 does. StartRackd may follow.
func (n *Native) Kill() {
	if n.rackd == nil {
		return
	}
	_ = n.rackd.Process.Kill() // it may have ended by itself
	<-n.ended
	n.rackd = nil
}

// Ctl implements Rack.
func (n *Native) Ctl(ctx context.Context, stdout io.Writer, args ...string) (int, error) {
	c := exec.CommandContext(ctx, n.programs.Rackctl, append([]string{"--socket", filepath.Join(n.dir, "run", "rackd.sock")}, args...)...)
	c.Stdout = stdout
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Run()
	fmt.Fprint(&n.log, stderr.String())
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), ctx.Err()
	}
	return 0, err
}

// Fetch implements Rack.
func (n *Native) Fetch(_ context.Context, from, dir string) error {
	return os.CopyFS(dir, os.DirFS(from))
}

// Scratch implements Rack.
func (n *Native) Scratch() string { return n.dir }

// Log implements Rack.
func (n *Native) Log() string { return n.log.String() }

// Close implements Rack: rackd is asked to stop, and killed if it has not after ten seconds.
func (n *Native) Close() error {
	var err error
	if n.rackd != nil {
		_ = n.rackd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		select {
		case <-n.ended:
		case <-time.After(10 * time.Second):
			err = errors.New("rackd did not stop within 10 s and was killed")
			_ = syscall.Kill(-n.rackd.Process.Pid, syscall.SIGKILL)
			<-n.ended
		}
	}
	n.cancel()
	n.phones.Wait()
	return err
}

// lockedBuffer is a buffer that a process writes while a test reads.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var _ Rack = (*Native)(nil)
