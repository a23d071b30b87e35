package toybox

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
)

func link(_ context.Context, e *Env) int {
	opts, args, ok := e.options("sfnv")
	if !ok {
		return 1
	}
	if len(args) != 2 {
		return e.fail("Needs 2 arguments")
	}
	if !has(opts, 's') {
		return e.fail("cannot create hard link from '%s' to '%s': Permission denied", args[0], args[1])
	}
	to := e.abs(args[1])
	if has(opts, 'f') {
		e.Files.Remove(to)
	}
	if err := e.Files.Symlink(args[0], to); err != nil {
		return e.fail("cannot create symlink from '%s' to '%s': %s", args[0], args[1], Reason(err))
	}
	return 0
}

func mktemp(_ context.Context, e *Env) int {
	opts, _, ok := e.options("dp:tuq")
	if !ok {
		return 1
	}
	dir := "/data/local/tmp"
	if has(opts, 'p') {
		dir = opts['p']
	}
	for i := range 1000 {
		p := path.Join(e.abs(dir), "tmp."+strconv.FormatInt(e.Now().UnixNano()%1e9+int64(i), 36))
		var err error
		if has(opts, 'd') {
			err = e.Files.Mkdir(p, 0o700)
		} else {
			var f io.Closer
			if f, err = e.Files.Open(p, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
				f.Close()
			}
		}
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return e.failPath(p, err)
		}
		e.printf("%s\n", p)
		return 0
	}
	return 1
}

func readlink(_ context.Context, e *Env) int {
	opts, args, ok := e.options("fenqm")
	if !ok {
		return 1
	}
	status := 0
	for _, p := range args {
		if !has(opts, 'f') && e.name() == "readlink" {
			info, err := e.Files.Lstat(e.abs(p))
			if err != nil || info.Mode()&fs.ModeSymlink == 0 {
				status = 1
				continue
			}
			e.printf("%s\n", attr(info).Target)
			continue
		}
		real, err := e.Files.Resolve(e.abs(p))
		if err != nil {
			status = 1
			if e.name() == "realpath" {
				e.failPath(p, err)
			}
			continue
		}
		e.printf("%s\n", real)
	}
	return status
}
