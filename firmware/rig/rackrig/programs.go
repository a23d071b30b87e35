package rackrig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"phonerack/firmware/rig"
)

// Programs are the paths of built programs.
type Programs struct{ Rackd, Rackctl string }

func programsIn(dir string) Programs {
	return Programs{filepath.Join(dir, "rackd"), filepath.Join(dir, "rackctl")}
}

// small leaves out what only debuggers read: the board unpacks its programs at each boot.
const small = "-ldflags=-s -w"

// BuildForBoard builds rackd and rackctl for the emulated board into dir. The Go tool's cache makes
// it quick when nothing has changed.
func BuildForBoard(ctx context.Context, dir string) (Programs, error) {
	p := programsIn(dir)
	return p, errors.Join(
		rig.Build(ctx, p.Rackd, "build", "-trimpath", small, "phonerack/cmd/rackd"),
		rig.Build(ctx, p.Rackctl, "build", "-trimpath", small, "phonerack/cmd/rackctl"),
	)
}

// BuildNative builds rackd and rackctl for this machine into dir. It works in any folder of the repository.
func BuildNative(ctx context.Context, dir string) (Programs, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Programs{}, err
	}
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", dir+"/", "phonerack/cmd/rackd", "phonerack/cmd/rackctl")
	if out, err := c.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return programsIn(dir), nil
}
