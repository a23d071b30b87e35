package rig

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// buildLimit is how long the Go tool may take, also on a machine that has built nothing yet.
const buildLimit = 10 * time.Minute

// Build runs the Go tool, from the root of the repository, so that it builds for the board: arm64, with C, against
// Debian's libraries. The first word is the Go command, output is where its product goes:
//
//	rig.Build(ctx, "/tmp/rackd", "build", "./cmd/rackd")
//	rig.Build(ctx, "/tmp/usblink.test", "test", "-c", "./usb/adb/usblink")
func Build(ctx context.Context, output string, command ...string) error {
	return build(ctx, output, command, "CGO_ENABLED=1", "CC=aarch64-linux-gnu-gcc",
		"PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig")
}

// BuildPortable is Build without C, for what make build-portable builds.
func BuildPortable(ctx context.Context, output string, command ...string) error {
	return build(ctx, output, command, "CGO_ENABLED=0")
}

func build(ctx context.Context, output string, command []string, environment ...string) error {
	output, err := filepath.Abs(output)
	if err != nil {
		return err
	}
	root, err := repository()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	args := append([]string{command[0], "-o", output}, command[1:]...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(append(os.Environ(), "GOOS=linux", "GOARCH=arm64"), environment...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(text))
	}
	return nil
}
