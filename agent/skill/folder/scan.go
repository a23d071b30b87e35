package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// FileName is the one name that a skill's file may have.
const FileName = "SKILL.md"

// Bounds of a scan.
const (
	maxFile    = 512 << 10 // bytes of SKILL.md; the largest honest one seen had 294 KB
	maxFolders = 2000      // below one path
	maxKept    = 32 << 20  // bytes of all files that are taken: their texts stay in memory
)

// Mode says what becomes of files that depart from the standard.
type Mode string

// Modes.
const (
	Lenient Mode = "lenient" // taken, with findings; the default
	Strict  Mode = "strict"  // left out
)

// Options of a scan.
type Options struct {
	Paths Paths
	Mode  Mode // "" is Lenient
}

// Origin says where a skill's text comes from.
type Origin struct {
	Path   string `json:"path"`   // of the skill's folder
	File   string `json:"file"`   // of SKILL.md
	Root   string `json:"root"`   // the searched folder
	SHA256 string `json:"sha256"` // of the file's bytes, in hex
	Size   int    `json:"size"`   // of the file, in bytes
}

// Found is a skill with the place where it was found.
type Found struct {
	Skill
	Origin Origin `json:"origin"`
}

// Result is what a scan found, in the order of the paths and, below each, of the
// folders' names. Two skills may have the same name: which of them counts is the
// caller's to decide.
type Result struct {
	Skills  []Found `json:"skills"`
	Skipped []Skip  `json:"skipped"`
}

// Scan looks at the folders directly below each path. The error is that of ctx;
// everything else is in the result.
func Scan(ctx context.Context, o Options) (Result, error) {
	r := Result{Skipped: slices.Clone(o.Paths.Skipped)}
	for _, path := range o.Paths.Folders {
		if err := scanPath(ctx, &r, path, o); err != nil {
			return Result{}, err
		}
	}
	return r, nil
}

func scanPath(ctx context.Context, r *Result, path string, o Options) error {
	skip := func(at string, f Finding) { r.Skipped = append(r.Skipped, Skip{at, f}) }
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		if !o.Paths.Default {
			skip(path, finding(PathMissing, 0, "there is no such folder"))
		}
		return nil
	}
	if err != nil {
		skip(path, finding(PathUnread, 0, "it cannot be searched: %v", reason(err)))
		return nil
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		skip(path, finding(PathUnread, 0, "it cannot be listed: %v", reason(err)))
		return nil
	}
	looked, kept := 0, 0
	for _, s := range r.Skills {
		kept += s.Origin.Size
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if looked++; looked > maxFolders {
			skip(path, finding(TooMany, 0, "only its first %d folders were looked at", maxFolders))
			return nil
		}
		at := filepath.Join(path, e.Name())
		found, f := look(root, e.Name(), o.Mode)
		switch {
		case f != nil:
			skip(at, *f)
		case found != nil && kept+found.Origin.Size > maxKept:
			skip(at, finding(TooMany, 0, "the files that come before it have %d bytes, and %d are taken in all", kept, maxKept))
		case found != nil:
			kept += found.Origin.Size
			found.Origin.Path, found.Origin.File, found.Origin.Root = at, filepath.Join(at, FileName), path
			r.Skills = append(r.Skills, *found)
		}
	}
	return nil
}

// look reads the skill of one folder. Both results are nil where there is no
// sign of a skill.
func look(root *os.Root, name string, mode Mode) (*Found, *Finding) {
	no := func(code Code, format string, args ...any) (*Found, *Finding) {
		f := finding(code, 0, format, args...)
		return nil, &f
	}
	info, err := root.Stat(name)
	switch {
	case leadsOut(err):
		return no(Outside, "it is a link that leads out of the searched folder")
	case err != nil:
		return no(Unreadable, "it cannot be looked at: %v", reason(err))
	case !info.IsDir():
		return nil, nil // a link to a file
	}
	own, err := root.OpenRoot(name)
	if err != nil {
		return no(Unreadable, "it cannot be opened: %v", reason(err))
	}
	defer own.Close()
	// The list has the file's name as it is written, also where the file system
	// would find it under another case.
	entries, err := fs.ReadDir(own.FS(), ".")
	if err != nil {
		return no(Unreadable, "it cannot be listed: %v", reason(err))
	}
	near := ""
	for _, e := range entries {
		if e.Name() == FileName {
			return read(own, name, mode)
		}
		if strings.EqualFold(e.Name(), FileName) {
			near = e.Name()
		}
	}
	if near != "" {
		return no(WrongCase, "its file is called %s: rename it to %s", near, FileName)
	}
	return nil, nil
}

func read(own *os.Root, name string, mode Mode) (*Found, *Finding) {
	data, f := readFile(own)
	if f != nil {
		return nil, f
	}
	skill, err := Parse(data, name, mode)
	if err != nil {
		f, _ := errors.AsType[Finding](err)
		return nil, &f
	}
	sum := sha256.Sum256(data)
	return &Found{Skill: *skill, Origin: Origin{SHA256: hex.EncodeToString(sum[:]), Size: len(data)}}, nil
}

// readFile reads SKILL.md without following a link out of the skill's folder and
// without waiting for the other end of a pipe.
func readFile(own *os.Root) ([]byte, *Finding) {
	no := func(code Code, format string, args ...any) ([]byte, *Finding) {
		f := finding(code, 0, format, args...)
		return nil, &f
	}
	file, err := own.OpenFile(FileName, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if leadsOut(err) {
		return no(Outside, "%s is a link that leads out of the skill's folder", FileName)
	}
	if err != nil {
		return no(Unreadable, "%s cannot be opened: %v", FileName, reason(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return no(Unreadable, "%s cannot be looked at: %v", FileName, reason(err))
	}
	if !info.Mode().IsRegular() {
		return no(Unreadable, "%s is no plain file", FileName)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return no(Unreadable, "%s cannot be read: %v", FileName, reason(err))
	}
	if len(data) > maxFile {
		return no(TooLarge, "%s is larger than %d bytes", FileName, maxFile)
	}
	return data, nil
}

// leadsOut recognises os.Root's refusal, for which the standard library has no
// name (os/root.go: errPathEscapes).
func leadsOut(err error) bool {
	pathErr, ok := errors.AsType[*fs.PathError](err)
	return ok && pathErr.Err.Error() == "path escapes from parent"
}

// reason leaves out the path, which stands beside it.
func reason(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
