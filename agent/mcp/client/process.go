package client

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// environment is what every program gets: nothing of rackd's own, which may hold secrets.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}

// process is a server's program, in a process group of its own.
type process struct {
	in    *os.File // its standard input
	out   *os.File // its standard output
	end   context.CancelFunc
	ended chan struct{} // closed when it is gone and its pipes are
	said  tail
}

// run starts a server's program.
func run(s *Server) (*process, error) {
	ctx, kill := context.WithCancel(context.Background())
	p := &process{end: kill, ended: make(chan struct{})}
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	cmd.Env = append(append([]string{}, environment...), s.Env...)
	cmd.Dir = "/"
	cmd.Stderr = &p.said
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = closeTime
	theirIn, in, err := os.Pipe()
	if err != nil {
		kill()
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		kill()
		theirIn.Close()
		in.Close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, p.in, p.out = theirIn, theirOut, in, out
	err = cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		kill()
		in.Close()
		out.Close()
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // how it ended does not matter
		_ = killGroup(cmd)
	}()
	return p, nil
}

// stop lets the program end by itself for a moment, then kills it and all that it has started. When it returns, nothing
// waits for its pipes any more.
func (p *process) stop(patience time.Duration) {
	p.in.Close()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
	}
	p.end()
	p.out.Close()
	<-p.ended
}

// tail keeps the end of what a program says on its standard error, for the log.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

const maxTail = 1 << 10 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	t.text = append([]byte{}, t.text[max(0, len(t.text)-maxTail):]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// meter bounds what a program says from one question to the next: too long a message is the transport's to see, and all
// together is this one's.
type meter struct {
	io.Reader
	io.Closer
	mu   sync.Mutex
	left int64 // guarded by mu
}

// refill begins the next question. A flood that came before has ended the reading, and it stays so.
func (m *meter) refill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = maxTalk
}

var errTalk = fmt.Errorf("it says more than %d MiB", maxTalk>>20)

func (m *meter) Read(p []byte) (int, error) {
	m.mu.Lock()
	left := m.left
	m.mu.Unlock()
	if left <= 0 {
		return 0, errTalk
	}
	n, err := m.Reader.Read(p[:min(int64(len(p)), left)])
	m.mu.Lock()
	m.left -= int64(n)
	m.mu.Unlock()
	return n, err
}
