package toybox

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func cat(ctx context.Context, e *Env) int {
	_, args, ok := e.options("uevt")
	if !ok {
		return 1
	}
	return e.each(ctx, args, func(_ string, r io.Reader) error {
		_, err := io.CopyBuffer(writeOnly{e.Stdout}, contextReader{ctx, r}, make([]byte, 64<<10))
		return err
	})
}

// writeOnly hides ReadFrom, so that a copy keeps to its buffer.
type writeOnly struct{ io.Writer }

func count(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("lwcmL")
	if !ok {
		return 1
	}
	all := len(opts) == 0
	var total [4]int64
	row := func(n [4]int64, name string) {
		var cols []string
		for i, letter := range []byte("lwmc") {
			if has(opts, letter) || all && letter != 'm' {
				cols = append(cols, strconv.FormatInt(n[i], 10))
			}
		}
		if name != "-" {
			cols = append(cols, name)
		}
		e.printf("%s\n", strings.Join(cols, " "))
	}
	status := e.each(ctx, args, func(name string, r io.Reader) error {
		var n [4]int64
		inWord := false
		buf := make([]byte, 32<<10)
		for {
			got, err := contextReader{ctx, r}.Read(buf)
			for _, c := range buf[:got] {
				if c == '\n' {
					n[0]++
				}
				space := c == ' ' || c >= '\t' && c <= '\r'
				if !space && !inWord {
					n[1]++
				}
				inWord = !space
				if utf8.RuneStart(c) {
					n[2]++
				}
			}
			n[3] += int64(got)
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		for i := range total {
			total[i] += n[i]
		}
		row(n, name)
		return nil
	})
	if len(args) > 1 {
		row(total, "total")
	}
	return status
}

// lineCount reads -5, -n 5 and -c 5 of head and tail.
func (e *Env) lineCount(letters string) (n int64, bytesToo, fromStart bool, files []string, ok bool) {
	args := e.Args
	if len(args) > 1 && len(args[1]) > 1 && args[1][0] == '-' && args[1][1] >= '0' && args[1][1] <= '9' {
		e.Args = append([]string{args[0], "-n", args[1][1:]}, args[2:]...)
	}
	opts, files, ok := e.options(letters)
	if !ok {
		return 0, false, false, nil, false
	}
	text := "10"
	if has(opts, 'n') {
		text = opts['n']
	}
	if has(opts, 'c') {
		text, bytesToo = opts['c'], true
	}
	fromStart = strings.HasPrefix(text, "+")
	n, err := strconv.ParseInt(strings.TrimLeft(text, "+-"), 10, 64)
	if err != nil || n < 0 {
		e.fail("not integer: %s", text)
		return 0, false, false, nil, false
	}
	return n, bytesToo, fromStart, files, true
}

func head(ctx context.Context, e *Env) int {
	n, inBytes, _, files, ok := e.lineCount("n:c:qv")
	if !ok {
		return 1
	}
	first := true
	return e.each(ctx, files, func(name string, r io.Reader) error {
		if len(files) > 1 {
			if !first {
				e.printf("\n")
			}
			first = false
			e.printf("==> %s <==\n", name)
		}
		if inBytes {
			_, err := io.Copy(e.Stdout, io.LimitReader(contextReader{ctx, r}, n))
			return err
		}
		if n == 0 {
			return nil
		}
		left := n
		return lines(ctx, r, func(line string) bool {
			_, err := io.WriteString(e.Stdout, line+"\n")
			left--
			return left == 0 || err != nil
		})
	})
}

// maxTail bounds what tail, sort and tee hold in memory.
const maxTail = 64 << 20

func tail(ctx context.Context, e *Env) int {
	n, inBytes, fromStart, files, ok := e.lineCount("n:c:fq")
	if !ok {
		return 1
	}
	return e.each(ctx, files, func(_ string, r io.Reader) error {
		all, err := io.ReadAll(io.LimitReader(contextReader{ctx, r}, maxTail))
		if err != nil {
			return err
		}
		_, err = e.Stdout.Write(lastPart(all, n, inBytes, fromStart))
		return err
	})
}

func lastPart(all []byte, n int64, inBytes, fromStart bool) []byte {
	if inBytes {
		if fromStart {
			return all[min(max(n-1, 0), int64(len(all))):]
		}
		return all[int64(len(all))-min(n, int64(len(all))):]
	}
	parts := bytes.SplitAfter(all, []byte("\n"))
	if len(parts[len(parts)-1]) == 0 {
		parts = parts[:len(parts)-1]
	}
	from := int64(len(parts)) - min(n, int64(len(parts)))
	if fromStart {
		from = min(max(n-1, 0), int64(len(parts)))
	}
	return bytes.Join(parts[from:], nil)
}

func tee(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("ai")
	if !ok {
		return 1
	}
	status := 0
	outs := []io.Writer{e.Stdout}
	flag := truncate
	if has(opts, 'a') {
		flag = appendTo
	}
	for _, p := range args {
		w, err := e.create(p, flag)
		if err != nil {
			status = e.failPath(p, err)
			continue
		}
		defer w.Close()
		outs = append(outs, w)
	}
	if _, err := io.Copy(io.MultiWriter(outs...), contextReader{ctx, e.Stdin}); err != nil {
		return e.fail("%s", Reason(err))
	}
	return status
}

func sortLines(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("nrufk:t:")
	if !ok {
		return 1
	}
	var all []string
	size := 0
	status := e.each(ctx, args, func(_ string, r io.Reader) error {
		return lines(ctx, r, func(line string) bool {
			all = append(all, line)
			size += len(line) + 16
			return size > maxTail
		})
	})
	slices.SortStableFunc(all, func(a, b string) int {
		if has(opts, 'n') {
			if d := leadingNumber(a) - leadingNumber(b); d != 0 {
				if d < 0 {
					return -1
				}
				return 1
			}
		}
		if has(opts, 'f') {
			return strings.Compare(strings.ToLower(a), strings.ToLower(b))
		}
		return strings.Compare(a, b)
	})
	if has(opts, 'u') {
		all = slices.Compact(all)
	}
	if has(opts, 'r') {
		slices.Reverse(all)
	}
	for _, line := range all {
		if _, err := io.WriteString(e.Stdout, line+"\n"); err != nil {
			return 1
		}
	}
	return status
}

func leadingNumber(text string) float64 {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.' || end == 0 && text[end] == '-') {
		end++
	}
	n, _ := strconv.ParseFloat(text[:end], 64)
	return n
}

func uniq(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("cdu")
	if !ok {
		return 1
	}
	var last string
	n := 0
	flush := func() {
		switch {
		case n == 0, has(opts, 'd') && n < 2, has(opts, 'u') && n > 1:
		case has(opts, 'c'):
			e.printf("%7d %s\n", n, last)
		default:
			e.printf("%s\n", last)
		}
	}
	status := e.each(ctx, args, func(_ string, r io.Reader) error {
		return lines(ctx, r, func(line string) bool {
			if n > 0 && line == last {
				n++
				return false
			}
			flush()
			last, n = line, 1
			return false
		})
	})
	flush()
	return status
}
