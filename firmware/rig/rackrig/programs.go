package rackrig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are the paths of built programs.
type Programs struct{ Rackd, Rackctl string }

// crossC is what cgo needs to build for the board: Debian's cross compiler and the board's libusb.
var crossC = []string{
	"CGO_ENABLED=1", "CC=aarch64-linux-gnu-gcc",
	"PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig",
}

// BuildForBoard builds rackd and rackctl for the emulated board into dir. The Go tool's cache makes
// it quick when nothing has changed.
func BuildForBoard(ctx context.Context, dir string) (Programs, error) {
	board := []string{"GOOS=linux", "GOARCH=arm64"}
	if err := build(ctx, dir, append(board, crossC...), "./cmd/rackd"); err != nil {
		return Programs{}, err
	}
	if err := build(ctx, dir, append(board, "CGO_ENABLED=0"), "./cmd/rackctl"); err != nil {
		return Programs{}, err
	}
	return programsIn(dir), nil
}

// BuildNative builds rackd and rackctl for this machine into dir.
func BuildNative(ctx context.Context, dir string) (Programs, error) {
	if err := build(ctx, dir, nil, "./cmd/rackd", "./cmd/rackctl"); err != nil {
		return Programs{}, err
	}
	return programsIn(dir), nil
}

// BuildTest builds the tests of a package, with a build tag, for the emulated board.
func BuildTest(ctx context.Context, out, pkg, tag string) error {
	return run(ctx, append([]string{"GOOS=linux", "GOARCH=arm64"}, crossC...), "test", "-c", "-tags", tag, "-o", out, pkg)
}

func programsIn(dir string) Programs {
	return Programs{filepath.Join(dir, "rackd"), filepath.Join(dir, "rackctl")}
}

func build(ctx context.Context, dir string, env []string, packages ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return run(ctx, env, append([]string{"build", "-trimpath", "-o", dir + "/"}, packages...)...)
}

func run(ctx context.Context, env []string, args ...string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = root
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// repository finds the root of the repository from the working folder upwards.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod here or above: run this inside the repository")
		}
		dir = parent
	}
}
