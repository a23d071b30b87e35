// Manager stands in for systemd on the emulated board: it starts one program, keeps the file descriptors that the program
// parks (FDSTORE=1 of sd_notify), and hands them to the next process of it (sd_listen_fds_with_names).
//
//	manager PROGRAM ARGUMENT...
//
// It prints what happens, a line each: "manager: started PID", "manager: ended STATUS", "manager: keeps NAME". A program that
// has ended is started again by SIGUSR1. SIGTERM is handed on, and ends the manager with its program. With KEEP=no it
// keeps nothing.
package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket is where the program tells of itself, an abstract name: the board's root is read-only.
const socket = "@phonerack-manager"

// store is what the program has parked.
type store struct {
	keep bool

	mu    sync.Mutex
	files map[string]*os.File // guarded by mu, by name
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "manager: which program?")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(argv []string) error {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	s := &store{keep: os.Getenv("KEEP") != "no", files: map[string]*os.File{}}
	go s.listen(conn) // until this process ends
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1)
	for {
		program, err := s.start(argv)
		if err != nil {
			return err
		}
		fmt.Println("manager: started", program.Process.Pid)
		ended := make(chan error, 1)
		go func() { ended <- program.Wait() }()
		stop := s.attend(program, ended, signals)
		if stop {
			return nil
		}
	}
}

// attend waits until the program has ended, and then for the order to start it again; true if all is over.
func (s *store) attend(program *exec.Cmd, ended <-chan error, signals <-chan os.Signal) (stop bool) {
	over := false
	for {
		select {
		case <-ended:
			over = true
			fmt.Println("manager: ended", program.ProcessState)
			if stop {
				return true
			}
		case sig := <-signals:
			switch {
			case sig == syscall.SIGTERM && over:
				return true
			case sig == syscall.SIGTERM:
				stop = true
				_ = program.Process.Signal(sig) // it may have ended meanwhile
			case over:
				return false
			}
		}
	}
}

// start starts the program with all that is kept. The shell knows the process number that LISTEN_PID has to name.
func (s *store) start(argv []string) (*exec.Cmd, error) {
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh"}, argv...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.Sorted(maps.Keys(s.files))
	for _, name := range names {
		cmd.ExtraFiles = append(cmd.ExtraFiles, s.files[name])
	}
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket,
		"LISTEN_FDS="+strconv.Itoa(len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	return cmd, cmd.Start()
}

// listen takes what the program tells.
func (s *store) listen(conn *net.UnixConn) {
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*16))
	for {
		n, oobn, _, _, err := conn.ReadMsgUnix(buf, oob)
		if err != nil {
			fmt.Println("manager: hears nothing any more:", err)
			return
		}
		if err := s.take(string(buf[:n]), oob[:oobn]); err != nil {
			fmt.Println("manager: does not understand:", err)
		}
	}
}

// take obeys one message.
func (s *store) take(message string, oob []byte) error {
	fields := map[string]string{}
	for line := range strings.Lines(message) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
		fields[key] = value
	}
	files, err := received(oob)
	if err != nil {
		return err
	}
	name := fields["FDNAME"]
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case fields["FDSTORE"] == "1" && len(files) == 1 && s.keep:
		s.drop(name)
		s.files[name] = files[0]
		fmt.Println("manager: keeps", name)
		return nil
	case fields["FDSTOREREMOVE"] == "1":
		s.drop(name)
	}
	for _, f := range files {
		f.Close()
	}
	return nil
}

// drop lets a descriptor go. s.mu is held.
func (s *store) drop(name string) {
	if f := s.files[name]; f != nil {
		f.Close()
		delete(s.files, name)
	}
}

// received are the descriptors that came with a message.
func received(oob []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, parseErr := unix.ParseUnixRights(&messages[i])
		err = errors.Join(err, parseErr)
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "kept"))
		}
	}
	return files, err
}
