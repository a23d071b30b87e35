package toybox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"
)

func basename(_ context.Context, e *Env) int {
	if len(e.Args) < 2 {
		return e.fail("Needs 1 argument")
	}
	name := path.Base(e.Args[1])
	if len(e.Args) > 2 && name != e.Args[2] {
		name = strings.TrimSuffix(name, e.Args[2])
	}
	e.printf("%s\n", name)
	return 0
}

func dirname(_ context.Context, e *Env) int {
	if len(e.Args) < 2 {
		return e.fail("Needs 1 argument")
	}
	e.printf("%s\n", path.Dir(e.Args[1]))
	return 0
}

func sleep(ctx context.Context, e *Env) int {
	if len(e.Args) < 2 {
		return e.fail("Needs 1 argument")
	}
	d, err := duration(e.Args[1])
	if err != nil {
		return e.fail("bad time '%s'", e.Args[1])
	}
	if e.Sleep(ctx, d) != nil {
		return 137
	}
	return 0
}

// duration reads 5, 0.5, 5s, 2m, 1h, 1d.
func duration(text string) (time.Duration, error) {
	unit := time.Second
	if n := len(text); n > 1 {
		switch text[n-1] {
		case 's':
			text = text[:n-1]
		case 'm':
			unit, text = time.Minute, text[:n-1]
		case 'h':
			unit, text = time.Hour, text[:n-1]
		case 'd':
			unit, text = 24*time.Hour, text[:n-1]
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || f > 1e6 {
		return 0, errors.New("bad time")
	}
	return time.Duration(f * float64(unit)), nil
}

func timeout(ctx context.Context, e *Env) int {
	args := e.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-s" || args[0] == "-k" {
			args = args[min(2, len(args)):]
			continue
		}
		args = args[1:]
	}
	if len(args) < 2 {
		return e.fail("Needs 2 arguments")
	}
	d, err := duration(args[0])
	if err != nil {
		return e.fail("bad time '%s'", args[0])
	}
	limited, cancel := context.WithCancel(ctx)
	expired := make(chan bool, 1) // gets whether the time was up
	go func() {
		up := e.Sleep(limited, d) == nil
		cancel()
		expired <- up
	}()
	status := e.Run(limited, args[1:])
	cancel()
	if <-expired && ctx.Err() == nil {
		return 124
	}
	return status
}

func nohup(ctx context.Context, e *Env) int {
	if len(e.Args) < 2 {
		return e.fail("Needs 1 argument")
	}
	return e.Run(ctx, e.Args[1:])
}

func env(ctx context.Context, e *Env) int {
	args := e.Args[1:]
	list := e.Environ()
	var added []string
	for len(args) > 0 {
		if args[0] == "-i" {
			list, args = nil, args[1:]
			continue
		}
		if !strings.Contains(args[0], "=") {
			break
		}
		added, args = append(added, args[0]), args[1:]
	}
	if len(args) > 0 {
		return e.Run(ctx, args, added...)
	}
	list = append(list, added...)
	for _, kv := range list {
		e.printf("%s\n", kv)
	}
	return 0
}

func which(_ context.Context, e *Env) int {
	status := 0
	for _, n := range e.Args[1:] {
		p, ok := e.Which(n)
		if !ok {
			status = 1
			continue
		}
		e.printf("%s\n", p)
	}
	return status
}

// maxSeq bounds what seq prints.
const maxSeq = 1_000_000

func seq(ctx context.Context, e *Env) int {
	var n []float64
	for _, a := range e.Args[1:] {
		f, err := strconv.ParseFloat(a, 64)
		if err != nil {
			return e.fail("bad '%s'", a)
		}
		n = append(n, f)
	}
	first, step, last := 1.0, 1.0, 0.0
	switch len(n) {
	case 1:
		last = n[0]
	case 2:
		first, last = n[0], n[1]
	case 3:
		first, step, last = n[0], n[1], n[2]
	default:
		return e.fail("Needs 1 argument")
	}
	for i := 0; i < maxSeq && step != 0 && ctx.Err() == nil; i++ {
		v := first + float64(i)*step
		if step > 0 && v > last || step < 0 && v < last {
			break
		}
		if _, err := io.WriteString(e.Stdout, strconv.FormatFloat(v, 'f', -1, 64)+"\n"); err != nil {
			return 1
		}
	}
	return 0
}

func xargs(ctx context.Context, e *Env) int {
	opts, command, ok := e.flagsBefore("n:I:0rt")
	if !ok {
		return 1
	}
	if len(command) == 0 {
		command = []string{"echo"}
	}
	text, err := io.ReadAll(io.LimitReader(contextReader{ctx, e.Stdin}, maxLine))
	if err != nil {
		return 1
	}
	words := strings.Fields(string(text))
	if has(opts, '0') {
		words = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	batch := len(words)
	if n, err := strconv.Atoi(opts['n']); err == nil && n > 0 {
		batch = n
	}
	if batch == 0 {
		if has(opts, 'r') {
			return 0
		}
		return e.Run(ctx, command)
	}
	status := 0
	for len(words) > 0 && ctx.Err() == nil {
		n := min(batch, len(words))
		if got := e.Run(ctx, append(append([]string{}, command...), words[:n]...)); got != 0 {
			status = 123
		}
		words = words[n:]
	}
	return status
}

// flagsBefore reads the options that come before another command.
func (e *Env) flagsBefore(letters string) (opts map[byte]string, command []string, ok bool) {
	end := 1
	for end < len(e.Args) && len(e.Args[end]) > 1 && e.Args[end][0] == '-' {
		at := strings.IndexByte(letters, e.Args[end][1])
		if at >= 0 && at+1 < len(letters) && letters[at+1] == ':' && len(e.Args[end]) == 2 {
			end++
		}
		end++
	}
	end = min(end, len(e.Args))
	p := *e.Process
	p.Args = e.Args[:end]
	opts, _, ok = (&Env{Process: &p}).options(letters)
	return opts, e.Args[end:], ok
}

func date(_ context.Context, e *Env) int {
	opts, args, ok := e.options("ud:r:D:")
	if !ok {
		return 1
	}
	now := e.Now().In(e.Zone)
	if has(opts, 'u') {
		now = now.UTC()
	}
	if has(opts, 'd') {
		unix, err := strconv.ParseInt(strings.TrimPrefix(opts['d'], "@"), 10, 64)
		if err != nil {
			return e.fail("bad date '%s'", opts['d'])
		}
		now = time.Unix(unix, 0).In(now.Location())
	}
	if has(opts, 'r') {
		info, err := e.Files.Stat(e.abs(opts['r']))
		if err != nil {
			return e.failPath(opts['r'], err)
		}
		now = info.ModTime().In(now.Location())
	}
	format := "%a %b %e %H:%M:%S %Z %Y"
	if len(args) > 0 {
		if args[0] == "" || args[0][0] != '+' {
			return e.fail("cannot set date: Operation not permitted")
		}
		format = args[0][1:]
	}
	e.printf("%s\n", strftime(format, now))
	return 0
}

func strftime(format string, t time.Time) string {
	layouts := map[byte]string{
		'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'a': "Mon", 'A': "Monday",
		'b': "Jan", 'B': "January", 'e': "_2", 'Z': "MST", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05",
		'D': "01/02/06", 'I': "03", 'p': "PM", 'R': "15:04", 'j': "002",
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; {
		case layouts[c] != "":
			b.WriteString(t.Format(layouts[c]))
		case c == 's':
			fmt.Fprint(&b, t.Unix())
		case c == 'N':
			fmt.Fprintf(&b, "%09d", t.Nanosecond())
		case c == 'n':
			b.WriteByte('\n')
		case c == '%':
			b.WriteByte('%')
		default:
			b.WriteString("%" + string(c))
		}
	}
	return b.String()
}
