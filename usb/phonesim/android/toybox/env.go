package toybox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"phonerack/usb/phonesim/android/memfs"
	"phonerack/usb/phonesim/android/mksh"
)

// Env is what a command works with.
type Env struct {
	*mksh.Process
	Files *memfs.View
	Now   func() time.Time
	Zone  *time.Location
	// Sleep waits or returns the error of ctx.
	Sleep func(ctx context.Context, d time.Duration) error
	// Which finds commands for "which" and "xargs".
	Which func(name string) (string, bool)
}

// Func is a command. It returns soon after ctx ends.
type Func func(ctx context.Context, e *Env) int

// Commands are the commands by name.
var Commands = map[string]Func{
	"base64": base64Command, "basename": basename, "cat": cat, "chmod": chmod, "cmp": compare, "cp": copyFiles,
	"cut": cut, "date": date, "dd": dd, "dirname": dirname, "du": du, "env": env, "false": no, "find": find,
	"grep": grep, "egrep": grep, "fgrep": grep, "gunzip": gunzip, "gzip": gzipCommand, "head": head, "ln": link,
	"ls": list, "md5sum": sum, "mkdir": mkdir, "mktemp": mktemp, "mv": move, "nohup": nohup, "readlink": readlink,
	"realpath": readlink, "rm": remove, "rmdir": rmdir, "seq": seq, "sha1sum": sum, "sha256sum": sum, "sha512sum": sum,
	"sleep": sleep, "sort": sortLines, "stat": stat, "sync": yes0, "tail": tail, "tee": tee, "timeout": timeout,
	"touch": touch, "tr": translate, "true": yes0, "uniq": uniq, "wc": count, "which": which, "xargs": xargs,
	"zcat": gunzip,
}

func yes0(context.Context, *Env) int { return 0 }
func no(context.Context, *Env) int   { return 1 }

// abs makes a path of the command line absolute.
func (e *Env) abs(p string) string {
	if strings.HasPrefix(p, "/") || p == "" {
		return p
	}
	slash := ""
	if strings.HasSuffix(p, "/") {
		slash = "/"
	}
	return path.Join(e.Dir, p) + slash
}

// below is the path of a file in a folder as it is shown: "./x" stays so.
func below(dir, name string) string { return strings.TrimRight(dir, "/") + "/" + name }

// name is how the command was called.
func (e *Env) name() string { return path.Base(e.Args[0]) }

func (e *Env) printf(format string, a ...any) { fmt.Fprintf(e.Stdout, format, a...) }

// fail writes "name: message" and returns 1.
func (e *Env) fail(format string, a ...any) int {
	fmt.Fprintf(e.Stderr, e.name()+": "+format+"\n", a...)
	return 1
}

// failPath writes "name: path: reason" and returns 1.
func (e *Env) failPath(p string, err error) int {
	return e.fail("%s: %s", p, Reason(err))
}

// Reason is strerror of an error.
func Reason(err error) string {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return err.Error()
	}
	text := no.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// open opens a file to read; "-" is standard input.
func (e *Env) open(p string) (io.ReadCloser, error) {
	if p == "-" {
		return io.NopCloser(e.Stdin), nil
	}
	info, err := e.Files.Stat(e.abs(p))
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, syscall.EISDIR
	}
	return e.Files.Open(e.abs(p), os.O_RDONLY, 0)
}

func (e *Env) create(p string, flag int) (io.WriteCloser, error) {
	return e.Files.Open(e.abs(p), os.O_WRONLY|os.O_CREATE|flag, 0o666)
}

// each opens the files of the arguments, or standard input, one after another.
func (e *Env) each(ctx context.Context, files []string, fn func(name string, r io.Reader) error) int {
	if len(files) == 0 {
		files = []string{"-"}
	}
	status := 0
	for _, p := range files {
		if ctx.Err() != nil {
			return 137
		}
		r, err := e.open(p)
		if err != nil {
			status = e.failPath(p, err)
			continue
		}
		err = fn(p, r)
		r.Close()
		if err != nil {
			status = e.failPath(p, err)
		}
	}
	return status
}

// maxLine bounds a line of text.
const maxLine = 16 << 20

// lines gives each line without its newline; stop ends the reading early.
func lines(ctx context.Context, r io.Reader, fn func(line string) (stop bool)) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxLine)
	for sc.Scan() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fn(sc.Text()) {
			return nil
		}
	}
	return sc.Err()
}

// options splits arguments as getopt does: letters followed by ":" take a value.
func (e *Env) options(letters string) (opts map[byte]string, rest []string, ok bool) {
	opts = map[byte]string{}
	args := e.Args[1:]
	for len(args) > 0 {
		a := args[0]
		if a == "--" {
			return opts, append(rest, args[1:]...), true
		}
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			args = args[1:]
			continue
		}
		args = args[1:]
		for i := 1; i < len(a); i++ {
			at := strings.IndexByte(letters, a[i])
			if at < 0 || a[i] == ':' {
				e.fail("Unknown option '%s'", a[i:i+1])
				return nil, nil, false
			}
			if at+1 == len(letters) || letters[at+1] != ':' {
				opts[a[i]] = ""
				continue
			}
			value := a[i+1:]
			if value == "" {
				if len(args) == 0 {
					e.fail("Missing argument to -%s", a[i:i+1])
					return nil, nil, false
				}
				value, args = args[0], args[1:]
			}
			opts[a[i]] = value
			break
		}
	}
	return opts, rest, true
}

func has(opts map[byte]string, letter byte) bool {
	_, ok := opts[letter]
	return ok
}
