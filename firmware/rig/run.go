package rig

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Run runs a shell command in the guest and returns what it wrote to standard output and its exit code; what it writes
// to standard error goes to the console. err is for a command that could not be run to its end: when ctx ends first the
// command is killed with all it has started in its session.
//
// Commands have neither HOME nor a terminal. One that leaves a program running must give it another output than its
// own: see [Board.Start]. Three commands can run at the same time, more wait for their turn.
func (b *Board) Run(ctx context.Context, command string) (output string, exit int, err error) {
	var out bytes.Buffer
	exit, err = b.Stream(ctx, command, nil, &out)
	return out.String(), exit, err
}

// RunRootFS is Run inside the Debian of BoardConfig.RootFS, with HOME=/root.
func (b *Board) RunRootFS(ctx context.Context, command string) (output string, exit int, err error) {
	const environment = "env HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	return b.Run(ctx, environment+" chroot /rootfs /bin/sh -c "+quote(command))
}

// Stream is Run for output of any size, written to stdout as it comes, and with an input. A nil stdout throws the output
// away.
func (b *Board) Stream(ctx context.Context, command string, stdin []byte, stdout io.Writer) (exit int, err error) {
	if stdout == nil {
		stdout = io.Discard
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("run %s: %w", brief(command), context.Cause(ctx))
	}
	var shell *channel
	select {
	case shell = <-b.idle:
	case <-ctx.Done():
		return 0, fmt.Errorf("no shell of the board is free: %w", context.Cause(ctx))
	}
	defer func() { b.idle <- shell }()
	exit, err = shell.run(ctx, command, stdin, stdout)
	if err != nil {
		return exit, fmt.Errorf("run %s: %w", brief(command), b.cause(err))
	}
	return exit, nil
}

// brief shortens a command for an error.
func brief(command string) string {
	const limit = 100
	if len(command) > limit {
		command = command[:limit] + "..."
	}
	return strconv.Quote(command)
}

// interrupt kills what runs on a shell.
func (b *Board) interrupt(ctx context.Context, shell string) error {
	b.interrupting.Lock()
	defer b.interrupting.Unlock()
	_, err := b.control.run(ctx, "kill -9 -$(cat /run/rig/"+shell+".pid)", nil, io.Discard)
	return err
}

// quote makes one word of s for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// expect runs a command of the rig's own, for which any exit code but 0 is an error.
func (b *Board) expect(ctx context.Context, command string) (string, error) {
	output, exit, err := b.Run(ctx, "exec 2>&1; "+command)
	if err == nil && exit != 0 {
		err = fmt.Errorf("run %s: exit status %d: %s", brief(command), exit, strings.TrimSpace(output))
	}
	return output, err
}

// Service is a program that Start has left running in the guest.
type Service struct {
	Name string
	PID  int // in the guest

	board *Board
}

// Start starts a program in the guest, argv[0] being a path or a name in /bin, and leaves it running in a session of its
// own. Each line it writes comes on the console behind its name and a colon, so that [Board.WaitLine] sees it. A name can
// be used again once its program has ended.
func (b *Board) Start(ctx context.Context, name string, argv ...string) (*Service, error) {
	if len(argv) == 0 || name == "" || strings.ContainsAny(name, "/. \t\n'") {
		return nil, fmt.Errorf("start %q: needs a plain name and a program", name)
	}
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = quote(a)
	}
	output, err := b.expect(ctx, "sh /rig/start "+name+" "+strings.Join(words, " "))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(output))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &Service{name, pid, b}, nil
}

// Signal sends a signal to the program; nothing happens when it has ended.
func (s *Service) Signal(ctx context.Context, signal syscall.Signal) error {
	state := "/run/rig/service." + s.Name
	_, err := s.board.expect(ctx, fmt.Sprintf("[ -e %s.exit ] || kill -%d %d", state, int(signal), s.PID))
	return err
}

// Wait returns the exit code (128 and the signal's number for a program ended by a signal) once the program has ended.
func (s *Service) Wait(ctx context.Context) (exit int, err error) {
	file := "/run/rig/service." + s.Name + ".exit"
	output, err := s.board.expect(ctx, "until [ -e "+file+" ]; do sleep 0.1; done; cat "+file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(output))
}

// Push writes a file into the guest, through the guest's memory.
func (b *Board) Push(ctx context.Context, content []byte, to string) error {
	exit, err := b.Stream(ctx, "cat >"+quote(to), content, nil)
	if err == nil && exit != 0 {
		err = fmt.Errorf("push %s: exit status %d", to, exit)
	}
	return err
}

// Pull copies a file, or a folder with all that is below it, out of the guest into the folder dir of the host, which is
// made if needed. Only regular files and folders can be pulled.
func (b *Board) Pull(ctx context.Context, from, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	r, w := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := unpack(root, r)
		r.CloseWithError(err) // nil: further output is refused, there is none after the archive's end
		unpacked <- err
	}()
	command := fmt.Sprintf("tar -c -f - -C %s -- %s", quote(path.Dir(from)), quote(path.Base(from)))
	exit, err := b.Stream(ctx, command, nil, w)
	w.Close()
	unpackErr := <-unpacked
	switch {
	case unpackErr != nil:
		err = unpackErr // the command's own error, if any, follows from it
	case err == nil && exit != 0:
		err = fmt.Errorf("tar: exit status %d", exit)
	}
	if err != nil {
		return fmt.Errorf("pull %s: %w", from, err)
	}
	return nil
}

// unpack reads a tar archive to its end.
func unpack(root *os.Root, r io.Reader) error {
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, r) // the padding behind the archive's end
			return err
		}
		if err != nil {
			return err
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			if err := root.MkdirAll(name, 0o755); err != nil {
				return err
			}
		case tar.TypeReg:
			if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
				return err
			}
			f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, h.FileInfo().Mode().Perm())
			if err != nil {
				return err
			}
			_, err = io.Copy(f, archive)
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is neither a regular file nor a folder", h.Name)
		}
	}
}

// USBDevice is a device as the guest's kernel sees it, hubs included.
type USBDevice struct {
	Path   string // as sysfs names it: "1-1.2"
	Speed  int    // Mbit/s
	Serial string // empty if it has none
}

// USB lists what is plugged in, as the guest's kernel sees it.
func (b *Board) USB(ctx context.Context) ([]USBDevice, error) {
	output, err := b.expect(ctx, `for d in /sys/bus/usb/devices/[0-9]*; do
	case ${d##*/} in *:*) continue ;; esac
	speed= serial=
	{ read -r speed <$d/speed; read -r serial <$d/serial; } 2>/dev/null
	echo "${d##*/} $speed $serial"
done`)
	if err != nil {
		return nil, err
	}
	var devices []USBDevice
	for line := range strings.Lines(output) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), " ", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("list of USB devices: unexpected %q", line)
		}
		speed, _ := strconv.Atoi(fields[1]) // a device that has just gone has no speed
		devices = append(devices, USBDevice{Path: fields[0], Speed: speed, Serial: fields[2]})
	}
	return devices, nil
}

// usbEvery is the pause between two looks at the guest's USB devices.
const usbEvery = 100 * time.Millisecond

// WaitPlugged blocks until the guest's kernel sees a device with that serial number at that port.
func (b *Board) WaitPlugged(ctx context.Context, port, serial string) (USBDevice, error) {
	for {
		devices, err := b.USB(ctx)
		if err != nil {
			return USBDevice{}, fmt.Errorf("waiting for %s at port %s: %w", serial, port, err)
		}
		for _, d := range devices {
			if d.Path == port && d.Serial == serial {
				return d, nil
			}
		}
		time.Sleep(usbEvery)
	}
}

// WaitUnplugged blocks until the guest's kernel sees no device at that port.
func (b *Board) WaitUnplugged(ctx context.Context, port string) error {
	for {
		devices, err := b.USB(ctx)
		if err != nil {
			return fmt.Errorf("waiting for port %s to be empty: %w", port, err)
		}
		there := false
		for _, d := range devices {
			there = there || d.Path == port
		}
		if !there {
			return nil
		}
		time.Sleep(usbEvery)
	}
}
