package powerrig_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig/powerrig"
)

// newImage is a disk with one file on it.
func newImage(t *testing.T, ctx context.Context) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "disk")
	if err := powerrig.MakeImage(ctx, image); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("what was kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, "/usr/sbin/debugfs", "-w", "-R", "write "+file+" kept", image).CombinedOutput(); err != nil {
		t.Fatalf("debugfs: %v\n%s", err, out)
	}
	return image
}

func TestUnpackGivesTheFiles(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	image := newImage(t, ctx)
	before, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "files")
	if err := powerrig.Unpack(ctx, image, dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || string(got) != "what was kept" {
		t.Errorf("%q, %v", got, err)
	}
	if after, err := os.ReadFile(image); err != nil || string(after) != string(before) {
		t.Errorf("the disk itself was changed, %v", err)
	}
}

// TestUnpackRefusesADamagedDisk: the judge sees what a disk that lies about its flushes would do.
func TestUnpackRefusesADamagedDisk(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	image := newImage(t, ctx)
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, "/usr/sbin/debugfs", "-R", "imap <2>", image).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "located at block") {
		t.Fatalf("%v\n%s", err, out)
	}
	// The folder tree hangs on inode 2: its block is lost, as it would be if it had been written but not been flushed.
	words := strings.Fields(strings.SplitN(string(out), "located at block ", 2)[1])
	var block int64
	for _, c := range strings.Trim(words[0], ",") {
		block = 10*block + int64(c-'0')
	}
	if _, err := f.WriteAt(make([]byte, 4096), block*4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := powerrig.Unpack(ctx, image, filepath.Join(t.TempDir(), "files")); err == nil || !strings.Contains(err.Error(), "e2fsck") {
		t.Errorf("a disk without its root folder was taken: %v", err)
	}
}

// TestUnpackLeavesATornCommitOut: what was committed before is there, and nothing of the commit that was torn.
func TestUnpackLeavesATornCommitOut(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	image := newImage(t, ctx)
	if err := powerrig.TearCommit(ctx, image); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, "/usr/sbin/debugfs", "-R", "logdump -a", image).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "(commit block) at block 3\n") {
		t.Fatalf("the journal has no commit: %v\n%s", err, out)
	}
	mended := filepath.Join(t.TempDir(), "mended")
	raw, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mended, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, "/usr/sbin/e2fsck", "-p", mended).CombinedOutput(); !strings.Contains(string(out), "was corrupt, replay was aborted") {
		t.Errorf("e2fsck sees no torn commit: %v\n%s", err, out)
	}
	if raw, err = os.ReadFile(mended); err != nil {
		t.Fatal(err)
	}
	if at := 40000 * 4096; strings.Contains(string(raw[at:at+4096]), "never committed") {
		t.Error("the torn commit was replayed")
	}
	dir := filepath.Join(t.TempDir(), "files")
	if err := powerrig.Unpack(ctx, image, dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || string(got) != "what was kept" {
		t.Errorf("%q, %v", got, err)
	}
}
