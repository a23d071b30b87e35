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

	asked, asking, err := os.Pipe()
	if err != nil {
		return end{}, err
	}
	answered, answering, err := os.Pipe()
	if err != nil {
		asked.Close()
		asking.Close()
		return end{}, err
	}
	defer answered.Close()
	life, kill := context.WithCancelCause(life)
	said := &complaints{noisy: func() { kill(errNoisy) }}
	c := &exec.Cmd{
		Path: program[0], Args: program,
		Env: environment, Dir: "/",
		Stdin: asked, Stdout: answering, Stderr: said, ExtraFiles: []*os.File{file},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		WaitDelay:   time.Second, // for a standard error that somebody else holds
	}
	err = c.Start()
	asked.Close()
	answering.Close()
	if err != nil {
		asking.Close()
		return end{}, err
	}
	killed := make(chan struct{}) // closed when the kill is done
	context.AfterFunc(life, func() {
		defer close(killed)
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		_ = answered.SetReadDeadline(time.Now()) // whoever else holds the other end
	})
	// The child sets the same limits on itself; it may also be dead already.
	_ = restrict(c.Process.Pid, ask.Limits)
	err = writeRequest(asking, request)
	if err == nil {
		err = a.read(answered, func() { _ = restrictMemory(c.Process.Pid, ask.Limits.Memory) })
	}
	// Whole or not, there is nothing more to come. Until the child is reaped its number stays its own, and its group's.
	kill(err)
	awaitDeath(c.Process.Pid)
	<-killed
	_ = c.Wait()
	e := end{exit: c.ProcessState.String(), cpu: c.ProcessState.UserTime() + c.ProcessState.SystemTime(), complaints: said.String()}
	if err != nil {
		e.err = context.Cause(life) // the first reason
		status, _ := c.ProcessState.Sys().(syscall.WaitStatus)
		e.killed = status.Signaled() && errors.Is(e.err, io.ErrUnexpectedEOF)
	}
	return e, nil
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
	return unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}, nil)
}

// awaitDeath waits until the process has ended and leaves it to be reaped.
func awaitDeath(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// nameless returns an empty file that exists in memory only.
func nameless() (*os.File, error) {
	fd, err := unix.MemfdCreate("document", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "document"), nil
}
