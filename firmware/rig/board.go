package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// ErrEnded says that the board is off: its QEMU has ended, or [Board.Close] was called.
var ErrEnded = errors.New("the board has ended")

// shells is how many commands can run in the guest at the same time.
const shells = 3

// bootLimit is how long a board may take to answer, whatever the caller's context says: 60 times what an idle machine needs.
const bootLimit = 3 * time.Minute

// connectEvery is the pause between attempts to reach a socket of QEMU that is not there yet.
const connectEvery = 20 * time.Millisecond

// Board is a running board. Its methods may be called by several goroutines.
type Board struct {
	dir      string // holds QEMU's sockets and the initramfs; removed by Close
	qemu     *process
	stderr   *tailBuffer
	console  *console
	trace    *console // what QEMU says of the wires; nil without any
	monitor  *qmp
	control  *channel      // carries interrupts only; guarded by interrupting
	idle     chan *channel // shells without a command
	shells   []*channel
	sockets  map[string]string // port of a phone -> socket
	closing  sync.Once
	closeErr error

	interrupting sync.Mutex // held while control is in use
	driving      sync.Mutex // held while an input is driven

	mu      sync.Mutex          // guards all below
	plugged map[string]*Plugged // by port; what is plugged, or was last
	logs    []*namedLog
	closed  bool
}

// Boot starts a board and returns once its shell answers, some seconds later, or an error after three minutes at most. ctx
// limits the start only; the board runs until Close, or until the guest powers off.
func (k *Kit) Boot(ctx context.Context, config BoardConfig) (*Board, error) {
	wiring, err := config.topology()
	if err == nil {
		err = config.guest()
	}
	if err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	tree, err := k.tree(ctx, config.cpus(), config.memory())
	if err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	initramfs, err := k.initramfs(&config)
	if err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	dir, err := os.MkdirTemp("", "rig-")
	if err != nil {
		return nil, err
	}
	b := &Board{
		dir: dir, stderr: &tailBuffer{}, console: newConsole(), idle: make(chan *channel, shells),
		sockets: map[string]string{}, plugged: map[string]*Plugged{},
	}
	if err := os.WriteFile(filepath.Join(dir, "initramfs"), initramfs, 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	args, err := b.arguments(k, &config, wiring, tree)
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("board: %w", err)
	}
	cmd := exec.Command(k.qemu, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, b.console, b.stderr
	if err := b.start(cmd, config.Wires); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	if err := b.connect(starting); err != nil {
		err = fmt.Errorf("board does not come up: %w", err)
		if text := b.stderr.String(); text != "" {
			err = fmt.Errorf("%w\nqemu: %s", err, text)
		}
		if text := b.console.tail(20); text != "" {
			err = fmt.Errorf("%w\nconsole:\n%s", err, text)
		}
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// start starts QEMU, with its trace if that is wanted.
func (b *Board) start(cmd *exec.Cmd, wires bool) error {
	var trace *os.File
	if wires {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer w.Close() // QEMU has its own
		trace, b.trace, cmd.ExtraFiles = r, newConsole(), []*os.File{w}
	}
	var err error
	if b.qemu, err = startProcess(cmd); err != nil {
		if trace != nil {
			trace.Close()
		}
		return err
	}
	go func() {
		<-b.qemu.done
		b.console.end()
	}()
	if trace != nil {
		go func() {
			defer trace.Close()
			defer b.trace.end()
			_, _ = io.Copy(b.trace, trace) // until QEMU has ended
		}()
	}
	return nil
}

// arguments gives QEMU's command line. Sockets have short relative names: a path may have 107 bytes.
func (b *Board) arguments(k *Kit, c *BoardConfig, wiring *topology, tree string) ([]string, error) {
	words := append([]string{"console=ttyAMA0", "quiet", "panic=-1"}, c.Append...)
	args := append(machine(c.cpus(), c.memory()),
		"-M", "virt", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-net", "none",
		"-name", filepath.Base(b.dir), "-msg", "timestamp=on",
		"-kernel", k.kernel(), "-initrd", "initramfs", "-dtb", tree, "-append", strings.Join(words, " "),
		"-qmp", "unix:qmp,server=on,wait=off",
		"-device", "virtio-serial-pci")
	for i := range shells + 1 {
		args = append(args,
			"-chardev", fmt.Sprintf("socket,id=shell%d,path=shell%[1]d,server=on,wait=off", i),
			"-device", fmt.Sprintf("virtserialport,chardev=shell%d,name=rig.%[1]d", i))
	}
	if c.Network { // the guest sets up no route, so that nothing but HostAddress can be reached
		args = append(args, "-netdev", "user,id=host,ipv6=off", "-device", "virtio-net-pci,netdev=host,romfile=")
	}
	if c.Wires {
		args = append(args, wireArguments...)
	}
	args = append(args, "-device", fmt.Sprintf("qemu-xhci,id=xhci,p2=%d,p3=2", rootPorts))
	for i, hub := range wiring.hubs {
		args = append(args, "-device", fmt.Sprintf("usb-hub,bus=xhci.0,port=%s,ports=%d,port-power=on", hub.qemu(), wiring.sizes[i]))
	}
	for i, phone := range wiring.phones {
		socket := fmt.Sprintf("phone%d", i)
		b.sockets[phone.String()] = socket
		args = append(args,
			"-chardev", fmt.Sprintf("socket,id=%s,path=%[1]s,server=on,wait=off", socket),
			"-device", fmt.Sprintf("usb-redir,chardev=%s,bus=xhci.0,port=%s", socket, phone.qemu()))
	}
	drives := c.Drives
	if c.RootFS {
		drives = append([]Drive{{Path: k.rootfs(), Snapshot: true}}, drives...)
	}
	for _, d := range drives {
		drive, err := d.argument()
		if err != nil {
			return nil, err
		}
		args = append(args, "-drive", drive)
	}
	return append(args, c.QEMU...), nil
}

// connect opens the monitor and the shells, and waits for the guest to answer.
func (b *Board) connect(ctx context.Context) error {
	conn, err := b.dial(ctx, "qmp")
	if err != nil {
		return err
	}
	if b.monitor, err = openQMP(ctx, conn); err != nil {
		return b.cause(err)
	}
	for i := range shells + 1 {
		conn, err := b.dial(ctx, fmt.Sprintf("shell%d", i))
		if err != nil {
			return err
		}
		ch := &channel{name: fmt.Sprintf("rig.%d", i), conn: conn}
		b.shells = append(b.shells, ch)
		if i == 0 {
			b.control = ch
			continue
		}
		ch.interrupt = func(ctx context.Context) error { return b.interrupt(ctx, ch.name) }
		b.idle <- ch
	}
	if _, err := b.control.run(ctx, "true", nil, nil); err != nil {
		return b.cause(err)
	}
	return nil
}

// dial connects to a socket of QEMU.
func (b *Board) dial(ctx context.Context, name string) (net.Conn, error) {
	conn, err := dialIn(ctx, b.dir, name, b.qemu.done)
	if err != nil && ctx.Err() == nil {
		err = b.cause(err)
	}
	return conn, err
}

// dialIn connects to a socket in a folder, by way of /proc so that the length of the path does not matter. It tries again
// while the socket is not there yet, until ended is closed.
func dialIn(ctx context.Context, dir, name string, ended <-chan struct{}) (net.Conn, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name))
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-ended:
			return nil, err
		case <-time.After(connectEvery):
		}
	}
}

// cause adds to an error that the board has ended, and how, if it has.
func (b *Board) cause(err error) error {
	select {
	case <-b.qemu.done:
		return fmt.Errorf("%w (qemu: %w): %w", ErrEnded, b.qemu.reason(), err)
	case <-time.After(200 * time.Millisecond): // a broken connection is seen before the end of the process
		return err
	}
}

// Done is closed when the board is off.
func (b *Board) Done() <-chan struct{} { return b.qemu.done }

// WaitLine returns the first line of the console that matches, from boot on: one that is there already, or one to come.
// It blocks until then, or until ctx ends or the board does.
func (b *Board) WaitLine(ctx context.Context, pattern *regexp.Regexp) (string, error) {
	return b.console.wait(ctx, 0, pattern)
}

// WaitLineAfter is WaitLine for the lines that follow the first n; with the number that Lines gave earlier, for what came
// since then.
func (b *Board) WaitLineAfter(ctx context.Context, n int, pattern *regexp.Regexp) (string, error) {
	return b.console.wait(ctx, n, pattern)
}

// Lines is the number of lines that the console has shown.
func (b *Board) Lines() int { return b.console.count() }

// Console is all that the console has shown, each line with the seconds since the start.
func (b *Board) Console() string { return b.console.tail(-1) }

// Monitor gives a command to QEMU's monitor (QMP). The answer goes into result unless that is nil.
func (b *Board) Monitor(ctx context.Context, command string, arguments, result any) error {
	return b.monitor.execute(ctx, command, arguments, result)
}

// Events are those that the monitor has reported, oldest first.
func (b *Board) Events() []Event { return b.monitor.list() }

// Close ends the board at once, as a power cut would, waits for the devices in its ports and removes its files. Closing again does
// nothing. The error says what could not be ended or removed.
func (b *Board) Close() error {
	b.closing.Do(func() {
		b.mu.Lock()
		b.closed = true
		plugged := maps.Clone(b.plugged)
		b.mu.Unlock()
		// QEMU goes first: a Plug that is under way ends with it, and no new one begins.
		b.qemu.kill()
		for _, p := range plugged {
			b.closeErr = errors.Join(b.closeErr, p.Unplug())
		}
		if b.monitor != nil {
			b.monitor.close()
		}
		for _, ch := range b.shells {
			ch.conn.Close()
		}
		b.closeErr = errors.Join(b.closeErr, os.RemoveAll(b.dir))
	})
	return b.closeErr
}
