package firmware

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/store"
	"phonerack/sync/wire"
)

// Files for tasks lie in the state folder, named by their hash.
const (
	inputsFolder = "inputs"
	inputLimit   = 256 << 20 // bytes of one file
	inputsLimit  = 1 << 30   // bytes of all; the longest unused go first
	partPrefix   = ".part-"
)

// inputs keeps the files that people leave for tasks.
type inputs struct {
	folder string
	log    *slog.Logger
	sync   func(folder string) error // store.SyncFolder, unless a test looks on

	mu sync.Mutex // one file is put in place at a time, so that the bound holds
}

// newInputs removes what a crash has left half written.
func newInputs(state string, log *slog.Logger) (*inputs, error) {
	in := &inputs{folder: filepath.Join(state, inputsFolder), log: log, sync: store.SyncFolder}
	if err := os.MkdirAll(in.folder, 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of inputs: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(in.folder, partPrefix+"*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return nil, fmt.Errorf("clear the folder of inputs: %w", err)
	}
	return in, nil
}

// put keeps a file. It is on disk when put returns without an error.
func (in *inputs) put(ctx context.Context, r io.Reader) (action.Input, error) {
	return in.keep(ctx, r, "")
}

// errOtherBytes means that a file is not the one that its hash names.
var errOtherBytes = errors.New("its bytes are not those of its hash")

// keep is put for a file whose hash must be want, if that is not empty: another one is not kept.
func (in *inputs) keep(ctx context.Context, r io.Reader, want string) (_ action.Input, err error) {
	f, err := os.CreateTemp(in.folder, partPrefix+"*")
	if err != nil {
		return action.Input{}, fullOr(err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(&untilDone{ctx, r}, inputLimit+1))
	name := hex.EncodeToString(sum.Sum(nil))
	if err == nil && want != "" && name != want {
		err = errOtherBytes
	}
	if err == nil && size > inputLimit {
		err = wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": "the file", "size": size, "limit": inputLimit})
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return action.Input{}, fullOr(err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if err = os.Rename(f.Name(), filepath.Join(in.folder, name)); err != nil {
		return action.Input{}, fullOr(err)
	}
	if err = in.sync(in.folder); err != nil { // the name is of the folder
		return action.Input{}, fullOr(err)
	}
	in.prune(name)
	return action.Input{SHA256: name, Bytes: size}, nil
}

// fullOr names a full storage, and leaves other errors and refusals as they are.
func fullOr(err error) error {
	if _, ok := errors.AsType[*wire.Refusal](err); !ok && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		return wire.Refuse(wire.RackFull, nil).Because(err)
	}
	return err
}

// open opens a file by its hash and marks it as used.
func (in *inputs) open(sum string) (*os.File, int64, error) {
	name := filepath.Join(in.folder, filepath.Base(sum))
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, wire.Refuse(wire.BadRequest, map[string]any{"reason": "the task's file " + sum + " is not on this rack any longer: leave it again"})
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	now := time.Now()
	if err := os.Chtimes(name, now, now); err != nil {
		in.log.Warn("the use of an input could not be noted", "err", err)
	}
	return f, info.Size(), nil
}

// prune removes the longest unused files beyond the bound, never the one that is to be kept nor one that is still being
// written. in.mu is held.
func (in *inputs) prune(keep string) {
	entries, err := os.ReadDir(in.folder)
	if err != nil {
		in.log.Warn("old inputs could not be listed", "err", err)
		return
	}
	var files []fs.FileInfo
	var total int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		if total <= inputsLimit {
			return
		}
		if f.Name() == keep || strings.HasPrefix(f.Name(), partPrefix) {
			continue
		}
		if err := os.Remove(filepath.Join(in.folder, f.Name())); err != nil {
			in.log.Warn("an old input could not be removed", "err", err)
			continue
		}
		total -= f.Size()
	}
}

// untilDone is a reader that ends with its context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
