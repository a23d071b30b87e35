package render_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"phonerack/agent/document/internal/protocol"
)

var probeLimits = protocol.Limits{Memory: 256 << 20, CPUSeconds: 20}

// probes are tried in the child's confinement; those whose names begin with "may" have to work.
var probes = map[string]func() error{
	"read a file":    func() error { _, err := os.ReadFile("/etc/hostname"); return noFile(err) },
	"make a file":    func() error { return os.WriteFile("/tmp/phonerack-probe", []byte("x"), 0o600) },
	"remove a file":  func() error { return noFile(os.Remove("/tmp/phonerack-none")) },
	"connect":        func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err },
	"unix socket":    func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
	"start":          func() error { return exec.Command("/bin/true").Run() },
	"replace itself": func() error { return noFile(syscall.Exec("/bin/none", []string{"none"}, nil)) },
	"signal others":  func() error { return unix.Kill(os.Getppid(), 0) },
	"lift a limit": func() error {
		return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	},
	"map 1 GiB": func() error {
		_, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	},
	"may map 64 MiB": func() error {
		_, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	},
	"may start threads": func() error {
		done := make(chan struct{})
		for range 4 {
			go func() {
				runtime.LockOSThread() // a thread of its own, that ends with it
				done <- struct{}{}
			}()
		}
		for range 4 {
			<-done
		}
		return nil
	},
}

// noFile lets only a refusal count, not that something is not there.
func noFile(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
