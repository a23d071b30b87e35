package document

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"phonerack/agent/document/internal/protocol"
)

// environment is all that a child gets: one arena for the C library's memory, which else reserves 64 MiB of address space
// for each thread that asks.
var environment = []string{"MALLOC_ARENA_MAX=1"}

// runChild starts a child, reads its answer and waits for its end, which the end of life brings about if nothing else
// does. The error is that no child could be started.
func runChild(life context.Context, program []string, file *os.File, ask protocol.Request, a *answer) (end, error) {
	if len(program) == 0 {
		return end{}, errors.New("no program is set")
	}
	request, err := json.Marshal(ask)
	if err != nil {
		return end{}, err
	}
	if len(request) > protocol.MaxRequestBytes {
		return end{}, fmt.Errorf("a request of %d bytes", len(request))
	}
	// The child dies with the thread that starts it: it has to be there until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := start(life, program, file)
	if err != nil {
		return end{}, err
	}
	// The child sets the same limits on itself; it may also be dead already.
	_ = restrict(p.pid(), ask.Limits)
	err = writeRequest(p.request, request)
	if err == nil {
		err = a.read(p.answer, func() { _ = restrictMemory(p.pid(), ask.Limits.Memory) })
	}
	return p.finish(err), nil
}

// process is a child from its start to its end.
type process struct {
	cmd     *exec.Cmd
	request *os.File // to its standard input
	answer  *os.File // from its standard output
	said    *complaints
	life    context.Context         // ends it
	kill    context.CancelCauseFunc // ends life
	killed  chan struct{}           // closed when it was killed
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func start(life context.Context, program []string, file *os.File) (*process, error) {
	asked, request, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	answer, answering, err := os.Pipe()
	if err != nil {
		request.Close()
		return nil, err
	}
	defer answering.Close()
	p := &process{request: request, answer: answer, killed: make(chan struct{})}
	p.life, p.kill = context.WithCancelCause(life)
	p.said = &complaints{noisy: func() { p.kill(errNoisy) }}
	p.cmd = &exec.Cmd{
		Path: program[0], Args: program, Env: environment, Dir: "/",
		Stdin: asked, Stdout: answering, Stderr: p.said, ExtraFiles: []*os.File{file},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		WaitDelay:   time.Second, // for a standard error that somebody else holds
	}
	if err := p.cmd.Start(); err != nil {
		p.kill(err)
		request.Close()
		answer.Close()
		return nil, err
	}
	context.AfterFunc(p.life, func() {
		defer close(p.killed)
		_ = unix.Kill(-p.pid(), unix.SIGKILL)  // its group: nobody has reaped it, so the number is its own
		_ = answer.SetReadDeadline(time.Now()) // whoever else holds the other end
	})
	return p, nil
}

// finish ends and reaps the child after its answer, which is whole if err is nil: nothing more is to come.
func (p *process) finish(err error) end {
	p.kill(err)
	awaitDeath(p.pid())
	<-p.killed
	_ = p.cmd.Wait() // how it ended is in its state
	p.answer.Close()
	state := p.cmd.ProcessState
	e := end{exit: state.String(), cpu: state.UserTime() + state.SystemTime(), complaints: p.said.String()}
	if err != nil {
		e.err = context.Cause(p.life) // the first reason
		status, _ := state.Sys().(syscall.WaitStatus)
		e.killed = status.Signaled() && errors.Is(e.err, io.ErrUnexpectedEOF)
	}
	return e
}

// restrict bounds what a child may use but for its memory.
func restrict(pid int, l protocol.Limits) error {
	var errs []error
	for resource, n := range map[int]uint64{
		unix.RLIMIT_CPU: l.CPUSeconds, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: protocol.MaxFiles,
	} {
		errs = append(errs, unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil))
	}
	return errors.Join(errs...)
}

// restrictMemory allows a child the address space that it has and as much on top: a program reserves far more of it than
// it will ever use.
func restrictMemory(pid int, more uint64) error {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return err
	}
	size, _, _ := strings.Cut(string(b), " ")
	pages, err := strconv.ParseUint(size, 10, 64)
	if err != nil {
		return err
	}
	n := pages*uint64(os.Getpagesize()) + more
	var own unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_AS, nil, &own); err != nil || own.Max <= n { // root could raise it
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}, nil)
}

// awaitDeath waits until the process has ended and leaves it to be reaped.
func awaitDeath(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// nameless returns an empty file that exists in memory only.
func nameless() (*os.File, error) {
	fd, err := unix.MemfdCreate("document", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("document", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "document"), nil
}
