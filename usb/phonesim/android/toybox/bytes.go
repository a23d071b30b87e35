package toybox

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
)

const (
	truncate = os.O_TRUNC
	appendTo = os.O_APPEND
)

func base64Command(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("diw:")
	if !ok {
		return 1
	}
	width := 76
	if has(opts, 'w') {
		n, err := strconv.Atoi(opts['w'])
		if err != nil || n < 0 {
			return e.fail("not integer: %s", opts['w'])
		}
		width = n
	}
	return e.each(ctx, args, func(_ string, r io.Reader) error {
		if has(opts, 'd') {
			_, err := io.Copy(e.Stdout, base64.NewDecoder(base64.StdEncoding, contextReader{ctx, r}))
			return err
		}
		w := &wrapper{w: bufio.NewWriter(e.Stdout), width: width}
		enc := base64.NewEncoder(base64.StdEncoding, w)
		if _, err := io.Copy(enc, contextReader{ctx, r}); err != nil {
			return err
		}
		enc.Close()
		return w.end()
	})
}

// wrapper breaks text into lines of a width; 0 is one line without an end.
type wrapper struct {
	w     *bufio.Writer
	width int
	col   int
}

func (w *wrapper) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := len(p)
		if w.width > 0 {
			n = min(n, w.width-w.col)
		}
		if _, err := w.w.Write(p[:n]); err != nil {
			return 0, err
		}
		p = p[n:]
		if w.col += n; w.width > 0 && w.col == w.width {
			w.w.WriteByte('\n')
			w.col = 0
		}
	}
	return total, nil
}

func (w *wrapper) end() error {
	if w.width > 0 && w.col > 0 {
		w.w.WriteByte('\n')
	}
	return w.w.Flush()
}

func sum(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("bc")
	if !ok {
		return 1
	}
	return e.each(ctx, args, func(name string, r io.Reader) error {
		var h hash.Hash
		switch e.name() {
		case "md5sum":
			h = md5.New()
		case "sha1sum":
			h = sha1.New()
		case "sha256sum":
			h = sha256.New()
		default:
			h = sha512.New()
		}
		if _, err := io.Copy(h, contextReader{ctx, r}); err != nil {
			return err
		}
		text := hex.EncodeToString(h.Sum(nil))
		if !has(opts, 'b') {
			text += "  " + name
		}
		e.printf("%s\n", text)
		return nil
	})
}

func gzipCommand(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("123456789cdfkn")
	if !ok {
		return 1
	}
	if has(opts, 'd') {
		return e.unzip(ctx, args, has(opts, 'c'), has(opts, 'k'))
	}
	level := gzip.DefaultCompression
	for l := byte('1'); l <= '9'; l++ {
		if has(opts, l) {
			level = int(l - '0')
		}
	}
	if len(args) == 0 {
		args = []string{"-"}
	}
	return e.each(ctx, args, func(name string, r io.Reader) error {
		var out io.Writer = e.Stdout
		if name != "-" && !has(opts, 'c') {
			w, err := e.create(name+".gz", truncate)
			if err != nil {
				return err
			}
			defer w.Close()
			out = w
		}
		zw, err := gzip.NewWriterLevel(out, level)
		if err != nil {
			return err
		}
		if _, err := io.Copy(zw, contextReader{ctx, r}); err != nil {
			return err
		}
		if err := zw.Close(); err != nil {
			return err
		}
		if name != "-" && !has(opts, 'c') && !has(opts, 'k') {
			return e.Files.Remove(e.abs(name))
		}
		return nil
	})
}

func gunzip(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("cdfk")
	if !ok {
		return 1
	}
	return e.unzip(ctx, args, has(opts, 'c') || e.name() == "zcat", has(opts, 'k'))
}

func (e *Env) unzip(ctx context.Context, args []string, toStdout, keep bool) int {
	return e.each(ctx, args, func(name string, r io.Reader) error {
		zr, err := gzip.NewReader(contextReader{ctx, r})
		if err != nil {
			return err
		}
		var out io.Writer = e.Stdout
		plain, zipped := strings.CutSuffix(name, ".gz")
		if name != "-" && !toStdout && zipped {
			w, err := e.create(plain, truncate)
			if err != nil {
				return err
			}
			defer w.Close()
			out = w
		}
		if _, err := io.Copy(out, zr); err != nil {
			return err
		}
		if name != "-" && !toStdout && zipped && !keep {
			return e.Files.Remove(e.abs(name))
		}
		return nil
	})
}

func compare(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("ls")
	if !ok {
		return 2
	}
	if len(args) != 2 {
		e.fail("Needs 2 arguments")
		return 2
	}
	var content [2][]byte
	for i, p := range args {
		r, err := e.open(p)
		if err == nil {
			content[i], err = io.ReadAll(io.LimitReader(contextReader{ctx, r}, maxTail))
			r.Close()
		}
		if err != nil {
			e.failPath(p, err)
			return 2
		}
	}
	a, b := content[0], content[1]
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			if !has(opts, 's') {
				line := bytes.Count(a[:i], []byte("\n")) + 1
				e.printf("%s %s differ: char %d, line %d\n", args[0], args[1], i+1, line)
			}
			return 1
		}
	}
	if len(a) != len(b) {
		short := args[0]
		if len(b) < len(a) {
			short = args[1]
		}
		if !has(opts, 's') {
			e.fail("EOF on %s after byte %d, line %d", short, min(len(a), len(b)), bytes.Count(a, []byte("\n")))
		}
		return 1
	}
	return 0
}

func dd(ctx context.Context, e *Env) int {
	in, out := "-", ""
	block, blocks, skip := int64(512), int64(-1), int64(0)
	quiet := false
	for _, a := range e.Args[1:] {
		key, value, _ := strings.Cut(a, "=")
		var err error
		switch key {
		case "if":
			in = value
		case "of":
			out = value
		case "bs", "ibs", "obs":
			block, err = size(value)
		case "count":
			blocks, err = size(value)
		case "skip":
			skip, err = size(value)
		case "status":
			quiet = value == "none"
		case "conv", "iflag", "oflag", "seek":
		default:
			return e.fail("bad arg %s", a)
		}
		if err != nil || block < 1 || block > 64<<20 {
			return e.fail("bad arg %s", a)
		}
	}
	r, err := e.open(in)
	if err != nil {
		return e.failPath(in, err)
	}
	defer r.Close()
	var w io.Writer = e.Stdout
	if out != "" {
		f, err := e.create(out, truncate)
		if err != nil {
			return e.failPath(out, err)
		}
		defer f.Close()
		w = f
	}
	var src io.Reader = contextReader{ctx, r}
	io.CopyN(io.Discard, src, skip*block)
	if blocks >= 0 {
		src = io.LimitReader(src, blocks*block)
	}
	n, err := io.Copy(writeOnly{w}, src)
	if err != nil {
		e.failPath(out, err)
	}
	if !quiet {
		part := 0
		if n%block != 0 {
			part = 1
		}
		fmt.Fprintf(e.Stderr, "%d+%d records in\n%d+%d records out\n%d bytes (%s) copied, 0.010 s, %s/s\n",
			n/block, part, n/block, part, n, human(n), human(n*100))
	}
	if err != nil {
		return 1
	}
	return 0
}

// size reads 512, 4k, 1M.
func size(text string) (int64, error) {
	unit := int64(1)
	switch {
	case strings.HasSuffix(text, "k") || strings.HasSuffix(text, "K"):
		unit = 1 << 10
	case strings.HasSuffix(text, "m") || strings.HasSuffix(text, "M"):
		unit = 1 << 20
	case strings.HasSuffix(text, "G"):
		unit = 1 << 30
	}
	if unit > 1 {
		text = text[:len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return n * unit, err
}
