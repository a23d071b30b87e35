package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// PiConfig says what runs on an emulated Raspberry Pi 3.
type PiConfig struct {
	Files    map[string]string // guest path -> file or folder of the host
	Contents map[string]string // guest path -> content
	Init     []string          // lines of shell to run once it is up; their output goes to its serial line
	Append   []string          // further words of the kernel's command line
}

// Pi is a running Raspberry Pi 3 of QEMU, with the SoC's own GPIO controller and a kernel of Debian's backports: what
// becomes of a line is decided by its driver, pinctrl-bcm2835. It has neither shells nor phones.
type Pi struct {
	dir     string
	qemu    *process
	stderr  *tailBuffer
	console *console
	monitor *qmp
}

// piModules are for the USB bus, without which rackd has nothing to look at.
var piModules = []string{"phy_generic", "dwc2"}

func (k *Kit) piDir() string { return filepath.Join(k.cache, "kernel-pi") }

// BootPi starts a Pi and returns at once; [Pi.WaitLine] tells how far it is.
func (k *Kit) BootPi(ctx context.Context, c PiConfig) (*Pi, error) {
	modules := filepath.Join(k.piDir(), "modules")
	tree, err := readModuleTree(modules)
	if err != nil {
		return nil, fmt.Errorf("%w (missing: %w)", ErrNotSetUp, err)
	}
	board := &BoardConfig{Files: c.Files, Contents: c.Contents, Init: c.Init}
	if err := board.guest(); err != nil {
		return nil, fmt.Errorf("pi: %w", err)
	}
	initramfs, err := k.pack(board, tree, modules, piModules)
	if err != nil {
		return nil, fmt.Errorf("pi: %w", err)
	}
	dir, err := os.MkdirTemp("", "rig-")
	if err != nil {
		return nil, err
	}
	p := &Pi{dir: dir, stderr: &tailBuffer{}, console: newConsole()}
	if err := p.start(ctx, k, c, initramfs); err != nil {
		return nil, errors.Join(fmt.Errorf("pi does not start: %w", err), p.Close())
	}
	return p, nil
}

func (p *Pi) start(ctx context.Context, k *Kit, c PiConfig, initramfs []byte) error {
	if err := os.WriteFile(filepath.Join(p.dir, "initramfs"), initramfs, 0o600); err != nil {
		return err
	}
	words := append([]string{"console=ttyAMA0,115200", "quiet", "panic=-1", "deferred_probe_timeout=1"}, c.Append...)
	cmd := exec.Command(k.qemu, "-M", "raspi3b", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-name", filepath.Base(p.dir), "-qmp", "unix:qmp,server=on,wait=off",
		"-kernel", filepath.Join(k.piDir(), "vmlinuz"), "-dtb", filepath.Join(k.piDir(), "board.dtb"), "-initrd", "initramfs",
		"-append", strings.Join(words, " "))
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, p.console, p.stderr
	var err error
	if p.qemu, err = startProcess(cmd); err != nil {
		return err
	}
	go func() {
		<-p.qemu.done
		p.console.end()
	}()
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	conn, err := dialIn(ctx, p.dir, "qmp", p.qemu.done)
	if err == nil {
		p.monitor, err = openQMP(ctx, conn)
	}
	if err != nil && p.stderr.String() != "" {
		err = fmt.Errorf("%w: %s", err, p.stderr)
	}
	return err
}

// WaitLine returns the first line of the serial line, from boot on, that matches.
func (p *Pi) WaitLine(ctx context.Context, pattern *regexp.Regexp) (string, error) {
	return p.console.wait(ctx, 0, pattern)
}

// Console is all that the serial line has shown.
func (p *Pi) Console() string { return p.console.tail(-1) }

// Registers of the GPIO controller (BCM2835 ARM Peripherals, chapter 6).
const (
	gpfsel0 = 0x3f200000 // ten lines a word, three bits a line
	gplev0  = 0x3f200034
)

// Functions of a line.
const (
	PiInput  = 0
	PiOutput = 1
)

// Line reads what a line is, from the controller's registers and past the guest: its function and its level.
func (p *Pi) Line(ctx context.Context, n int) (function int, high bool, err error) {
	if n < 0 || n > 31 {
		return 0, false, fmt.Errorf("line %d: 0 to 31 can be read", n)
	}
	word, err := p.word(ctx, gpfsel0+n/10*4)
	if err != nil {
		return 0, false, err
	}
	levels, err := p.word(ctx, gplev0)
	return int(word >> (n % 10 * 3) & 7), levels>>n&1 == 1, err
}

// word reads a word of the machine's memory.
func (p *Pi) word(ctx context.Context, address int) (uint32, error) {
	var answer string
	err := p.monitor.execute(ctx, "human-monitor-command", map[string]string{"command-line": fmt.Sprintf("xp /1wx %#x", address)}, &answer)
	if err != nil {
		return 0, err
	}
	_, text, ok := strings.Cut(answer, ": 0x")
	n, err := strconv.ParseUint(strings.TrimSpace(text), 16, 32)
	if err != nil || !ok {
		return 0, fmt.Errorf("read %#x: qemu answers %q", address, answer)
	}
	return uint32(n), nil
}

// Close ends the Pi at once and removes its files.
func (p *Pi) Close() error {
	if p.qemu != nil {
		p.qemu.kill()
	}
	if p.monitor != nil {
		p.monitor.close()
	}
	return os.RemoveAll(p.dir)
}
