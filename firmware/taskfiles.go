package firmware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"phonerack/sync/wire"
)

// What a task brings from its phone lies with its trajectory.
const (
	keptPrefix    = "file-"
	keepingPrefix = ".keep-" // while a file is not whole
	keptLimit     = 64 << 20 // bytes of all files of a task
)

// keeper keeps files that a task brings. It is used by one goroutine.
type keeper struct {
	folder string
	room   int64
}

func newKeeper(folder string) *keeper { return &keeper{folder: folder, room: keptLimit} }

// keep stores a file and returns its name in the task's folder.
func (k *keeper) keep(name string, r io.Reader) (_ string, err error) {
	name = keptPrefix + plainName(name)
	f, err := os.CreateTemp(k.folder, keepingPrefix+"*")
	if err != nil {
		return "", fullOr(err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	size, err := io.Copy(f, io.LimitReader(r, k.room+1))
	if err == nil && size > k.room {
		err = wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": "what the task brings from its phone", "size": keptLimit - k.room + size, "limit": keptLimit})
	}
	if err == nil {
		err = f.Sync() // its name is synced with the rest of the trajectory, before the task's result is written down
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fullOr(err)
	}
	for n, whole := 2, name; ; n++ {
		switch err := os.Link(f.Name(), filepath.Join(k.folder, name)); {
		case err == nil:
			k.room -= size
			return name, os.Remove(f.Name())
		case !errors.Is(err, os.ErrExist) || n > 100:
			return "", fullOr(err)
		}
		ext := filepath.Ext(whole)
		name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(whole, ext), n, ext)
	}
}

// plainName makes a file name of a phone's words.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, filepath.Base(name))
	if len(name) > 64 {
		name = name[len(name)-64:]
	}
	return strings.TrimLeft(name, ".")
}

// input opens a file that came with the task.
func (t *task) input(_ context.Context, name string) (io.ReadCloser, int64, error) {
	sum, ok := t.files[name]
	if !ok {
		return nil, 0, wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf("no file %.80q came with the task", name)})
	}
	f, size, err := t.rack.inputs.open(sum)
	if err != nil {
		return nil, 0, err
	}
	return f, size, nil
}
