package sitetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Process is a broker as a process of its own. It can be killed and started again.
type Process struct {
	program string
	args    []string
	listens []string // addresses that are served once it is ready
	as      *syscall.Credential

	mu    sync.Mutex // guards log
	log   bytes.Buffer
	cmd   *exec.Cmd     // nil while it does not run
	ended chan struct{} // closed when cmd has ended
}

// Write implements io.Writer: it takes what the process says.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// Log is what it has said so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Start starts it and waits until it listens.
func (p *Process) Start(ctx context.Context) error {
	if err := p.launch(); err != nil {
		return err
	}
	return p.await(ctx)
}

func (p *Process) launch() error {
	cmd, ended := exec.Command(p.program, p.args...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: p.as}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.ended = cmd, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return nil
}

// await waits until it listens.
func (p *Process) await(ctx context.Context) error {
	for _, address := range p.listens {
		for {
			c, err := net.DialTimeout("tcp", address, time.Second)
			if err == nil {
				c.Close()
				break
			}
			select {
			case <-p.ended:
				return fmt.Errorf("%s ended at once:\n%s", p.program, p.Log())
			case <-ctx.Done():
				return fmt.Errorf("%s does not listen: %w\n%s", p.program, ctx.Err(), p.Log())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// Kill ends it at once, as kill -9 does.
func (p *Process) Kill() { _ = p.end(syscall.SIGKILL) }

// Freeze stops it where it is: what is sent to it lies in buffers, and is lost with its Kill.
func (p *Process) Freeze() error {
	if p.cmd == nil {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(syscall.SIGSTOP)
}

// Close asks it to stop, and kills it if it has not after ten seconds.
func (p *Process) Close() error { return p.end(syscall.SIGTERM) }

func (p *Process) end(signal syscall.Signal) error {
	if p.cmd == nil {
		return nil
	}
	cmd := p.cmd
	p.cmd = nil
	_ = cmd.Process.Signal(signal) // it may have ended by itself
	select {
	case <-p.ended:
		return nil
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not stop within 10 s and was killed", p.program)
	}
}

// hangUp makes it read its files again.
func (p *Process) hangUp() error {
	if p.cmd == nil {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(syscall.SIGHUP)
}

// closeAll closes what a broker is made of.
func closeAll(all []*Process) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
