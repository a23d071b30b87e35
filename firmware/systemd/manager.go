package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

const (
	sendTimeout = 2 * time.Second
	maxStatus   = 300 // bytes of a line for people
	maxName     = 255 // bytes of a descriptor's name, sd_pid_notify_with_fds(3)
)

// A Manager is told how this service is. Its methods are safe for concurrent use.
type Manager struct {
	socket string        // "" if nobody wants to know
	period time.Duration // of WatchdogSec=; 0 without
}

// FromEnvironment returns the manager that started this process, if one did. A WATCHDOG_USEC that is meant for another
// process (WATCHDOG_PID), or is no number, counts as none.
func FromEnvironment() *Manager {
	m := &Manager{socket: os.Getenv("NOTIFY_SOCKET")}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m
	}
	const most = uint64(24 * time.Hour / time.Microsecond)
	if usec, err := strconv.ParseUint(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec <= most {
		m.period = time.Duration(usec) * time.Microsecond
	}
	return m
}

// Ready says that the service has started, or has reloaded; status is a line for people, "" for none.
func (m *Manager) Ready(status string) error { return m.send("READY=1"+statusLine(status), nil) }

// Status says in a line for people what the service is doing; systemctl status shows it.
func (m *Manager) Status(status string) error {
	return m.send(strings.TrimPrefix(statusLine(status), "\n"), nil)
}

// Stopping says that the service begins to stop.
func (m *Manager) Stopping() error { return m.send("STOPPING=1", nil) }

// Reloading says that the service reads its configuration anew; Ready ends it (Type=notify-reload).
func (m *Manager) Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("read the monotonic clock: %w", err)
	}
	return m.send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000), nil)
}

// Store parks a duplicate of the descriptor under the name, for Adopt of the next process. One of the same name stays
// beside it: Remove that first. The file stays the caller's.
func (m *Manager) Store(name string, f *os.File) error {
	if err := checkName(name); err != nil {
		return err
	}
	return m.send("FDSTORE=1\nFDNAME="+name, f)
}

// Remove has the manager close its duplicates with the name. None is no error.
func (m *Manager) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return m.send("FDSTOREREMOVE=1\nFDNAME="+name, nil)
}

// statusLine is the field for a status, on a line of its own; a status cannot add fields.
func statusLine(status string) string {
	if status == "" {
		return ""
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, status)
	if len(plain) > maxStatus {
		plain = strings.ToValidUTF8(plain[:maxStatus], "")
	}
	return "\nSTATUS=" + plain
}

func checkName(name string) error {
	if !validName(name) {
		return fmt.Errorf("%.80q cannot name a descriptor: use 1 to %d printable ASCII characters without colon", name, maxName)
	}
	return nil
}

// validName is fdname_is_valid of systemd.
func validName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r >= 0x7f || r == ':' })
}

// send sends one datagram, with f if that is not nil.
func (m *Manager) send(message string, f *os.File) error {
	if m.socket == "" || message == "" {
		return nil
	}
	// A leading @ stands for the abstract namespace, for net as well as for systemd.
	if m.socket[0] != '/' && m.socket[0] != '@' {
		return fmt.Errorf("notify systemd: NOTIFY_SOCKET is %.80q, neither a path nor an abstract name", m.socket)
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	if f == nil {
		_, err = conn.Write([]byte(message))
	} else {
		err = sendWith(conn, message, f)
	}
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}

// sendWith sends a descriptor along. Raw connections are used: WriteMsgUnix refuses a datagram socket that is connected,
// and File.Fd would make f block.
func sendWith(conn *net.UnixConn, message string, f *os.File) error {
	out, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	passed, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var sent, waited error
	err = passed.Control(func(fd uintptr) {
		waited = out.Write(func(socket uintptr) bool {
			sent = unix.Sendmsg(int(socket), []byte(message), unix.UnixRights(int(fd)), nil, unix.MSG_NOSIGNAL)
			return !errors.Is(sent, unix.EAGAIN)
		})
	})
	return errors.Join(err, waited, sent)
}
