package powerrig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// imageSize is the size of the disk in bytes: the databases of a test have a few megabytes, trajectories some tens.
const imageSize = 192 << 20

// toolLimit bounds a run of a tool of e2fsprogs; they take a fraction of a second.
const toolLimit = time.Minute

// MakeImage makes a file with an empty ext4 of Debian's defaults, with the blocks of 4 KiB of larger disks. All of it is initialised here, so that the guest's
// kernel does not do so in the background.
func MakeImage(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(imageSize), f.Close()); err != nil {
		return err
	}
	_, err = e2(ctx, "mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", path)
	return err
}

// TearCommit leaves a disk as a power cut does that tears the last commit of its journal: the commit's first sector has been
// written, its last one has what an earlier round of the journal left there. The kernel refuses to mount that.
func TearCommit(ctx context.Context, path string) (err error) {
	const block, commit, logged = 4096, 3, 40000 // blocks of the journal: superblock, descriptor, one block, commit
	content, orders := path+".block", path+".orders"
	defer func() { err = errors.Join(err, os.Remove(content), os.Remove(orders)) }()
	err = errors.Join(os.WriteFile(content, bytes.Repeat([]byte("never committed\n"), block/16), 0o600),
		os.WriteFile(orders, fmt.Appendf(nil, "journal_open -c -v 3\njournal_write -b %d %s\njournal_close\n", logged, content), 0o600))
	if err != nil {
		return err
	}
	if _, err = e2(ctx, "debugfs", "-w", "-f", orders, path); err != nil {
		return err
	}
	out, err := e2(ctx, "debugfs", "-R", fmt.Sprintf("bmap <8> %d", commit), path)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	at, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	if err != nil {
		return fmt.Errorf("the journal's commit on %s: %w: %s", path, err, out)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	const sector = 512
	_, err = f.WriteAt(bytes.Repeat([]byte("an older round \n"), sector/16), (at+1)*block-sector)
	return errors.Join(err, f.Close())
}

// e2 runs a tool of e2fsprogs, which Debian has in a folder for root.
func e2(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	path, err := exec.LookPath(name)
	if err != nil {
		path = filepath.Join("/usr/sbin", name)
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Unpack judges a disk as it was left and copies all its files into the folder dir, which it makes. The disk itself stays
// as it is: on a copy e2fsck replays the journal, without a last commit that was torn, and lets go what was deleted while open, as on the
// board before it mounts; after that it must find nothing.
func Unpack(ctx context.Context, image, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	replayed := dir + ".img"
	defer os.Remove(replayed)
	if err := copySparse(image, replayed); err != nil {
		return err
	}
	if out, err := e2(ctx, "e2fsck", "-p", replayed); err != nil {
		const corrected = 1 // exit code: journal replayed, orphans released
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != corrected {
			return fmt.Errorf("replay of the journal: %w: %s", err, out)
		}
	}
	if out, err := e2(ctx, "e2fsck", "-fn", replayed); err != nil {
		return fmt.Errorf("after the replay of the journal: %w: %s", err, out)
	}
	out, err := e2(ctx, "debugfs", "-R", fmt.Sprintf("rdump / %q", dir), replayed)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) { // debugfs ends with 0 whatever happens
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "debugfs 1.") {
			return fmt.Errorf("debugfs: %s", line)
		}
	}
	return nil
}

// copySparse copies a file and leaves holes where it has nothing but zeroes.
func copySparse(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer dst.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if err := dst.Truncate(info.Size()); err != nil {
		return err
	}
	piece, zero := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; at += int64(len(piece)) {
		n, err := src.ReadAt(piece, at)
		if string(piece[:n]) != string(zero[:n]) {
			if _, err := dst.WriteAt(piece[:n], at); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
