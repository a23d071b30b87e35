package rackrig

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"phonerack/firmware/rig"
)

// Where things are on the board.
const (
	guestConfig  = "/etc/phonerack/rackd.toml"
	guestBoard   = "/etc/phonerack/board.toml"
	guestRules   = "/etc/phonerack/rules.yaml"
	GuestBundle  = "/etc/phonerack/identity.json"
	GuestDisk    = "/var/lib"
	guestState   = GuestDisk + "/rackd"
	guestRuntime = "/run/rackd"
	guestScratch = "/tmp"
)

// mountDisk mounts the disk as systemd mounts what fstab says to check: the kernel refuses a journal whose last commit was torn by a
// power cut, and e2fsck leaves that commit out. Its exit code is 1 when it has put something right.
const mountDisk = "exec 2>&1; e2fsck -p /dev/vda || [ $? -eq 1 ] && mount -t ext4 /dev/vda " + GuestDisk

// BoardSpec says what the emulated board of a rack has.
type BoardSpec struct {
	Hubs   []rig.Hub
	Slots  map[int]string    // slot number -> port path
	Files  map[string]string // further files: guest path -> host path
	Board  string            // the board file; "" for one with the slots and nothing else
	Rules  string            // of the planner, YAML; "" for those that rackd ships with
	Memory int               // MiB; 0 for the rig's default
	Config string            // added to rackd's configuration
	Bundle string            // of the cloud, a file of this machine; the configuration names it GuestBundle. "" for none
	Under  []string          // words before rackd's command: a program of the board that starts it
	Disk   *rig.Drive        // with ext4, checked and mounted at GuestDisk: rackd's state outlives the board. nil for a state in memory

	// Of the board itself, as rig.BoardConfig has them.
	Wires   bool
	Modules []string
	QEMU    []string
	Append  []string
}

// Board is a rack on the emulated board.
type Board struct {
	*rig.Board
	under   []string
	rackd   *rig.Service
	Plugged map[string]*rig.Plugged // by port
}

// BootBoard boots a board and starts rackd on it: on a read-only root, without HOME, able to write
// only below its state and runtime folders (and /tmp, for rackctl). It returns when rackd says that
// it runs. ctx limits the start.
func BootBoard(ctx context.Context, kit *rig.Kit, spec BoardSpec) (*Board, error) {
	b, err := Boot(ctx, kit, spec)
	if err != nil {
		return b, err
	}
	return b, b.StartRackd(ctx)
}

// Boot is BootBoard without the start of rackd.
func Boot(ctx context.Context, kit *rig.Kit, spec BoardSpec) (*Board, error) {
	cache, err := rig.CacheDir()
	if err != nil {
		return nil, err
	}
	programs, err := BuildForBoard(ctx, filepath.Join(cache, "programs"))
	if err != nil {
		return nil, err
	}
	config := rig.BoardConfig{
		Hubs: spec.Hubs, ReadOnlyRoot: true, Writable: []string{guestRuntime, guestScratch}, Memory: spec.Memory,
		Wires: spec.Wires, Modules: spec.Modules, QEMU: spec.QEMU, Append: spec.Append,
		Files: map[string]string{"/bin/rackd": programs.Rackd, "/bin/rackctl": programs.Rackctl},
		Contents: map[string]string{
			guestConfig: fmt.Sprintf("[rack]\nid = \"rig\"\nboard = \"board.toml\"\nstate = %q\nruntime = %q\n", guestState, guestRuntime),
			guestBoard:  boardFile(spec.Slots),
		},
	}
	if spec.Board != "" {
		config.Contents[guestBoard] = spec.Board
	}
	if spec.Rules != "" {
		config.Contents[guestConfig] += fmt.Sprintf("[planner]\nrules = %q\n", guestRules)
		config.Contents[guestRules] = spec.Rules
	}
	config.Contents[guestConfig] += spec.Config
	if spec.Bundle != "" {
		config.Network, config.Files[GuestBundle] = true, spec.Bundle
	}
	if spec.Disk != nil {
		config.Drives = []rig.Drive{*spec.Disk}
		config.Files["/sbin/e2fsck"] = kit.Fsck()
	} else {
		config.Writable = append(config.Writable, guestState)
	}
	for guest, host := range spec.Files {
		config.Files[guest] = host
	}
	for _, port := range spec.Slots {
		config.Ports = append(config.Ports, port)
	}
	raw, err := kit.Boot(ctx, config)
	if err != nil {
		return nil, err
	}
	b := &Board{Board: raw, under: spec.Under, Plugged: map[string]*rig.Plugged{}}
	if spec.Disk == nil {
		return b, nil
	}
	out, exit, err := b.Run(ctx, mountDisk)
	if err == nil && exit != 0 {
		err = fmt.Errorf("mount the disk: exit code %d: %s", exit, strings.TrimSpace(out))
	}
	return b, err
}

// StartRackd starts rackd, at boot or after it was stopped, and waits until it answers.
func (b *Board) StartRackd(ctx context.Context) error {
	var err error
	if b.rackd, err = b.Start(ctx, "rackd", append(slices.Clone(b.under), "rackd", "run", "--config", guestConfig)...); err != nil {
		return err
	}
	return b.WaitRackd(ctx)
}

// WaitRackd waits until rackd answers.
func (b *Board) WaitRackd(ctx context.Context) error {
	// A program that asks too early costs an emulated processor much.
	if _, _, err := b.Run(ctx, "until [ -S "+guestRuntime+"/rackd.sock ] || [ -e /run/rig/service.rackd.exit ]; do sleep 0.1; done"); err != nil {
		return err
	}
	for {
		if exit, err := b.Ctl(ctx, io.Discard, "actions", "--json"); err != nil {
			return err
		} else if exit == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("rackd does not answer: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Rackd is the running rackd.
func (b *Board) Rackd() *rig.Service { return b.rackd }

// PlugPhone puts a simulated phone into its port and waits until the board's kernel sees it.
func (b *Board) PlugPhone(ctx context.Context, p *Phone) error {
	return b.PlugDevice(ctx, p.Port, p.Serial, p.USB)
}

// PlugDevice puts any device into a port and waits until the board's kernel sees its serial there.
func (b *Board) PlugDevice(ctx context.Context, port, serial string, device rig.Redirector) error {
	plugged, err := b.Plug(ctx, port, device)
	if err != nil {
		return err
	}
	b.Plugged[port] = plugged
	_, err = b.WaitPlugged(ctx, port, serial)
	return err
}

// Ctl implements Rack.
func (b *Board) Ctl(ctx context.Context, stdout io.Writer, args ...string) (int, error) {
	return b.Stream(ctx, "rackctl "+Quote(args...), nil, stdout)
}

// Fetch implements Rack.
func (b *Board) Fetch(ctx context.Context, from, dir string) error {
	// Pull makes a folder of the same name in the one it is given.
	near, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(near)
	if err := b.Pull(ctx, from, near); err != nil {
		return err
	}
	return os.Rename(filepath.Join(near, filepath.Base(from)), dir)
}

// Scratch implements Rack.
func (b *Board) Scratch() string { return guestScratch }

// Log implements Rack.
func (b *Board) Log() string { return b.Console() }

// Quote writes words so that a POSIX shell takes them as they are.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

var _ Rack = (*Board)(nil)
