package rig

import (
	"bytes"
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is a program of the host in a process group of its own.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended and its output has been read
	err  error         // how it ended; valid once done is closed
}

// startProcess starts cmd. The program gets SIGKILL when this process ends in whatever way: the kernel sends it at the
// end of the thread that started the program, so a goroutine keeps that thread until the program has ended.
func startProcess(cmd *exec.Cmd) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.WaitDelay = 5 * time.Second
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// kill ends the program at once and returns when it has ended. QEMU has no children; those of adbd end with their
// namespace.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails when it has ended already
	<-p.done
}

// reason says how the program ended, for an error.
func (p *process) reason() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// tailBuffer keeps the last part of what is written to it.
type tailBuffer struct {
	mu  sync.Mutex
	buf []byte
}

// tailLimit is how many bytes a tailBuffer keeps, at least.
const tailLimit = 64 << 10

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailLimit {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-tailLimit:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
