package toybox

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

func remove(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("firRv")
	if !ok {
		return 1
	}
	if len(args) == 0 && !has(opts, 'f') {
		return e.fail("Needs 1 argument")
	}
	status := 0
	deep := has(opts, 'r') || has(opts, 'R')
	for _, p := range args {
		if err := e.removeTree(ctx, e.abs(p), deep); err != nil {
			if has(opts, 'f') && os.IsNotExist(err) {
				continue
			}
			status = e.failPath(p, err)
		}
	}
	return status
}

func (e *Env) removeTree(ctx context.Context, p string, deep bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	info, err := e.Files.Lstat(strings.TrimRight(p, "/"))
	if err != nil {
		return err
	}
	if info.IsDir() {
		if !deep {
			return syscall.EISDIR
		}
		list, err := e.Files.ReadDir(p)
		if err != nil {
			return err
		}
		for _, c := range list {
			if err := e.removeTree(ctx, path.Join(p, c.Name()), true); err != nil {
				return err
			}
		}
	}
	return e.Files.Remove(p)
}

func rmdir(_ context.Context, e *Env) int {
	_, args, ok := e.options("p")
	if !ok {
		return 1
	}
	status := 0
	for _, p := range args {
		info, err := e.Files.Lstat(e.abs(p))
		if err == nil && !info.IsDir() {
			err = syscall.ENOTDIR
		}
		if err == nil {
			err = e.Files.Remove(e.abs(p))
		}
		if err != nil {
			status = e.failPath(p, err)
		}
	}
	return status
}

func mkdir(_ context.Context, e *Env) int {
	opts, args, ok := e.options("pm:v")
	if !ok {
		return 1
	}
	if len(args) == 0 {
		return e.fail("Needs 1 argument")
	}
	perm := fs.FileMode(0o777)
	if m, err := strconv.ParseUint(opts['m'], 8, 32); err == nil {
		perm = fs.FileMode(m).Perm()
	}
	status := 0
	for _, p := range args {
		var err error
		if has(opts, 'p') {
			err = e.Files.MkdirAll(e.abs(p), perm)
		} else {
			err = e.Files.Mkdir(e.abs(p), perm)
		}
		if err != nil {
			status = e.fail("'%s': %s", p, Reason(err))
		}
	}
	return status
}

func move(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("finv")
	if !ok {
		return 1
	}
	return e.toTarget(args, func(from, to string) error {
		if _, err := e.Files.Lstat(to); err == nil && has(opts, 'n') {
			return nil
		}
		return e.Files.Rename(from, to)
	})
}

// toTarget serves mv and cp: the last argument is a folder, or the new name of the
// only other one.
func (e *Env) toTarget(args []string, fn func(from, to string) error) int {
	if len(args) < 2 {
		return e.fail("Needs 2 arguments")
	}
	target := args[len(args)-1]
	info, err := e.Files.Stat(e.abs(target))
	dir := err == nil && info.IsDir()
	if !dir && len(args) > 2 {
		return e.fail("'%s' not directory", target)
	}
	status := 0
	for _, p := range args[:len(args)-1] {
		to := e.abs(target)
		if dir {
			to = path.Join(to, path.Base(p))
		}
		if _, err := e.Files.Lstat(strings.TrimRight(e.abs(p), "/")); err != nil {
			status = e.fail("bad '%s': %s", p, Reason(err))
			continue
		}
		if err := fn(e.abs(p), to); err != nil {
			status = e.fail("bad '%s': %s", p, Reason(err))
		}
	}
	return status
}

func copyFiles(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("rRpfaLPdvn")
	if !ok {
		return 1
	}
	deep := has(opts, 'r') || has(opts, 'R') || has(opts, 'a')
	keep := has(opts, 'p') || has(opts, 'a')
	return e.toTarget(args, func(from, to string) error { return e.copyTree(ctx, from, to, deep, keep) })
}

// maxTree bounds the depth of copies and listings.
const maxTree = 64

func (e *Env) copyTree(ctx context.Context, from, to string, deep, keep bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	info, err := e.Files.Stat(from)
	if err != nil {
		return err
	}
	if old, err := e.Files.Stat(to); err == nil && attr(old).Inode == attr(info).Inode {
		return syscall.EINVAL // to open it for writing would empty it
	}
	if !info.IsDir() {
		return e.copyFile(ctx, from, to, info, keep)
	}
	if !deep {
		return syscall.EISDIR
	}
	if strings.HasPrefix(to+"/", strings.TrimRight(from, "/")+"/") || strings.Count(to, "/") > maxTree {
		return syscall.EINVAL
	}
	list, err := e.Files.ReadDir(from)
	if err != nil {
		return err
	}
	if err := e.Files.MkdirAll(to, info.Mode().Perm()); err != nil {
		return err
	}
	for _, c := range list {
		if err := e.copyTree(ctx, path.Join(from, c.Name()), path.Join(to, c.Name()), true, keep); err != nil {
			return err
		}
	}
	return nil
}

func (e *Env) copyFile(ctx context.Context, from, to string, info fs.FileInfo, keep bool) error {
	r, err := e.Files.Open(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := e.Files.Open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := io.Copy(w, contextReader{ctx, r}); err != nil {
		return err
	}
	if keep {
		return e.Files.Chtimes(to, info.ModTime())
	}
	return nil
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func touch(_ context.Context, e *Env) int {
	opts, args, ok := e.options("acmt:d:r:h")
	if !ok {
		return 1
	}
	if len(args) == 0 {
		return e.fail("Needs 1 argument")
	}
	status := 0
	for _, p := range args {
		if _, err := e.Files.Stat(e.abs(p)); err == nil {
			if err := e.Files.Chtimes(e.abs(p), e.Now()); err != nil {
				status = e.fail("'%s': %s", p, Reason(err))
			}
			continue
		}
		if has(opts, 'c') {
			continue
		}
		w, err := e.create(p, 0)
		if err != nil {
			status = e.fail("'%s': %s", p, Reason(err))
			continue
		}
		w.Close()
	}
	return status
}

func chmod(_ context.Context, e *Env) int {
	_, args, ok := e.options("Rvf")
	if !ok {
		return 1
	}
	if len(args) < 2 {
		return e.fail("Needs 2 arguments")
	}
	status := 0
	for _, p := range args[1:] {
		info, err := e.Files.Stat(e.abs(p))
		if err == nil {
			perm, valid := parseMode(args[0], info.Mode().Perm())
			if !valid {
				return e.fail("bad mode '%s'", args[0])
			}
			err = e.Files.Chmod(e.abs(p), perm)
		}
		if err != nil {
			status = e.fail("'%s' to '%s': %s", p, args[0], Reason(err))
		}
	}
	return status
}

// parseMode reads 755 and forms such as +x, u+rw, go-w.
func parseMode(text string, old fs.FileMode) (fs.FileMode, bool) {
	if n, err := strconv.ParseUint(text, 8, 32); err == nil {
		return fs.FileMode(n).Perm(), n <= 0o7777
	}
	for part := range strings.SplitSeq(text, ",") {
		at := strings.IndexAny(part, "+-=")
		if at < 0 {
			return 0, false
		}
		var who, what fs.FileMode
		for _, c := range part[:at] {
			switch c {
			case 'u':
				who |= 0o700
			case 'g':
				who |= 0o070
			case 'o':
				who |= 0o007
			case 'a':
				who |= 0o777
			default:
				return 0, false
			}
		}
		if at == 0 {
			who = 0o777
		}
		for _, c := range part[at+1:] {
			switch c {
			case 'r':
				what |= 0o444
			case 'w':
				what |= 0o222
			case 'x', 'X':
				what |= 0o111
			default:
				return 0, false
			}
		}
		switch part[at] {
		case '+':
			old |= who & what
		case '-':
			old &^= who & what
		default:
			old = old&^who | who&what
		}
	}
	return old, true
}
