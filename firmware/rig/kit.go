package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrNotSetUp says that tools or downloads of the rig are missing; the error's text names them.
var ErrNotSetUp = errors.New("the emulated board is not set up: run make setup")

// module is the first line of the go.mod at the root of the repository.
const module = "module phonerack"

// Kit is everything boards are made of. It may be used by several goroutines.
type Kit struct {
	cache        string
	qemu, dtc    string // paths of tools
	qemuIdentity string // changes when another QEMU is installed
	modules      *moduleTree
}

// Prepare checks that everything setup.sh provides is there and returns it. cacheDir is the folder setup.sh has filled;
// "" means .cache/rig at the root of the repository that holds the working folder. The error is [ErrNotSetUp] when
// something is missing; nothing is downloaded or installed here.
func Prepare(ctx context.Context, cacheDir string) (*Kit, error) {
	if cacheDir == "" {
		var err error
		if cacheDir, err = CacheDir(); err != nil {
			return nil, err
		}
	}
	cacheDir, err := filepath.Abs(cacheDir)
	if err != nil {
		return nil, err
	}
	k := &Kit{cache: cacheDir}
	var missing []string
	for name, path := range map[string]*string{"qemu-system-aarch64": &k.qemu, "dtc": &k.dtc} {
		if *path, err = exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	for _, path := range []string{k.kernel(), k.modulesDir(), k.guestDir(), k.rootfs(), k.adbDir()} {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, path)
		}
	}
	if missing != nil {
		slices.Sort(missing)
		return nil, fmt.Errorf("%w (missing: %s)", ErrNotSetUp, strings.Join(missing, ", "))
	}
	if k.modules, err = readModuleTree(k.modulesDir()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var version bytes.Buffer
	if err := runTool(ctx, "", nil, &version, k.qemu, "-version"); err != nil {
		return nil, err
	}
	k.qemuIdentity = version.String()
	return k, nil
}

// CacheDir is the folder that setup.sh fills: rig in PHONERACK_CACHE, else in .cache at the root of the repository.
func CacheDir() (string, error) {
	if dir := os.Getenv("PHONERACK_CACHE"); dir != "" {
		return filepath.Join(dir, "rig"), nil
	}
	root, err := repository()
	return filepath.Join(root, ".cache", "rig"), err
}

// repository finds the root of the repository from the working folder upwards.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(mod), module+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working folder is not inside the phonerack repository")
		}
		dir = parent
	}
}

// AdbPath returns the real adb client (34) for this host: PHONERACK_ADB, else the one in [CacheDir]. The error is
// [ErrNotSetUp] when there is none.
func AdbPath() (string, error) {
	path := os.Getenv("PHONERACK_ADB")
	if path == "" {
		dir, err := CacheDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, "bin", "adb")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w (missing: %s)", ErrNotSetUp, path)
	}
	return path, nil
}

func (k *Kit) kernel() string     { return filepath.Join(k.cache, "kernel", "vmlinuz") }
func (k *Kit) modulesDir() string { return filepath.Join(k.cache, "kernel", "modules") }
func (k *Kit) guestDir() string   { return filepath.Join(k.cache, "guest") }
func (k *Kit) rootfs() string     { return filepath.Join(k.cache, "rootfs", "rootfs.img") }
func (k *Kit) adbDir() string     { return filepath.Join(k.cache, "adb") }

// Fsck is e2fsck for the board, a program of this machine's cache that needs no library.
func (k *Kit) Fsck() string { return filepath.Join(k.guestDir(), "sbin", "e2fsck.static") }
