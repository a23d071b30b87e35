package rig

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed host/adbd
var adbdScript string

const (
	// adbdPort is outside of 5555 to 5585, which adb clients take for emulators.
	adbdPort = 6001
	// adbdLimit is how long adbd may take to listen.
	adbdLimit = 30 * time.Second
)

// Adbd is a real adbd (34) of the host, in namespaces of its own: no network reaches it, only Dial does. Its
// shell is the host's /bin/sh as user 2000, in a file system of which only /tmp and /data can be written; PHONE in its
// environment is its name. It asks for no authentication.
type Adbd struct {
	Name    string
	process *process
	log     *tailBuffer
	network *os.File // its network namespace
	newroot string   // the folder that its file system hides; empty on the host
}

// StartAdbd starts n of them, named phone1, phone2 and so on, and returns when all listen. It needs root.
func (k *Kit) StartAdbd(ctx context.Context, n int) ([]*Adbd, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("adbd: needs root, for namespaces of its own")
	}
	var all []*Adbd
	for i := range n {
		a, err := k.startAdbd(ctx, "phone"+strconv.Itoa(i+1))
		if err != nil {
			for _, a := range all {
				err = errors.Join(err, a.Close())
			}
			return nil, fmt.Errorf("adbd: %w", err)
		}
		all = append(all, a)
	}
	return all, nil
}

func (k *Kit) startAdbd(ctx context.Context, name string) (*Adbd, error) {
	newroot, err := os.MkdirTemp("", "rig-adbd-")
	if err != nil {
		return nil, err
	}
	a := &Adbd{Name: name, log: &tailBuffer{}, newroot: newroot}
	cmd := exec.Command("/bin/sh", "-c", adbdScript, "adbd", newroot, k.adbDir(), name, strconv.Itoa(adbdPort))
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", a.log, a.log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// The first process of a process namespace takes all the others along when it ends.
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
	}
	if a.process, err = startProcess(cmd); err != nil {
		return nil, errors.Join(err, os.Remove(newroot))
	}
	a.network, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid))
	if err == nil {
		err = a.listens(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", name, err, a.log)
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// listens waits until a connection succeeds.
func (a *Adbd) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, adbdLimit)
	defer cancel()
	for {
		conn, err := a.Dial(ctx)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-a.process.done:
			return fmt.Errorf("ended: %w", a.process.reason())
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(connectEvery):
		}
	}
}

// Dial opens a connection to adbd. The socket is made inside adbd's network namespace and can be used from here.
func (a *Adbd) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type result struct {
		conn net.Conn
		err  error
	}
	// A namespace belongs to a thread: the goroutine keeps its thread for itself while it is elsewhere.
	made := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			made <- result{nil, err}
			return
		}
		defer home.Close()
		if err = unix.Setns(int(a.network.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			made <- result{nil, fmt.Errorf("enter the network of %s: %w", a.Name, err)}
			return
		}
		conn, err := dialLoopback(adbdPort)
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread() // else the thread is lost: it ends with the goroutine
		}
		made <- result{conn, err}
	}()
	r := <-made
	return r.conn, r.err
}

// dialLoopback connects to a port of 127.0.0.1, on the calling thread. On a loopback it succeeds or fails at once.
func dialLoopback(port int) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	socket := os.NewFile(uintptr(fd), "adbd")
	defer socket.Close() // net.FileConn makes a copy
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, fmt.Errorf("connect to adbd: %w", err)
	}
	return net.FileConn(socket)
}

// Log is the end of what adbd has logged.
func (a *Adbd) Log() string { return a.log.String() }

// Close ends adbd and all that it has started.
func (a *Adbd) Close() error {
	a.process.kill()
	var err error
	if a.network != nil {
		err = a.network.Close()
	}
	return errors.Join(err, os.RemoveAll(a.newroot))
}
