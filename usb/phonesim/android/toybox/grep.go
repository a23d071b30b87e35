package toybox

import (
	"context"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// grep exits with 0 for a match, 1 for none, 2 for trouble.
func grep(ctx context.Context, e *Env) int {
	opts, args, ok := e.options("ivcnqEFoe:wlLhHsxm:rRaA:B:C:")
	if !ok {
		return 2
	}
	pattern := opts['e']
	if !has(opts, 'e') {
		if len(args) == 0 {
			e.fail("bad -e")
			return 2
		}
		pattern, args = args[0], args[1:]
	}
	expression := grepPattern(pattern, e.name(), opts)
	rx, err := regexp.Compile(expression)
	if err != nil {
		e.fail("bad REGEX '%s'", pattern)
		return 2
	}
	g := &matcher{e: e, opts: opts, rx: rx, ways: waysOf(expression, rx)}
	if has(opts, 'r') || has(opts, 'R') {
		args = e.expandDirs(args)
	}
	g.named = (len(args) > 1 || has(opts, 'H') || has(opts, 'r')) && !has(opts, 'h')
	status := e.each(ctx, args, func(name string, r io.Reader) error { return g.file(ctx, name, r) })
	switch {
	case g.found:
		return 0
	case status != 0:
		return 2
	}
	return 1
}

// expandDirs replaces folders by the files below them.
func (e *Env) expandDirs(args []string) []string {
	if len(args) == 0 {
		args = []string{"."}
	}
	var files []string
	var visit func(p string, depth int)
	visit = func(p string, depth int) {
		info, err := e.Files.Lstat(e.abs(p))
		if err != nil || !info.IsDir() || depth > maxTree {
			files = append(files, p)
			return
		}
		list, _ := e.Files.ReadDir(e.abs(p))
		for _, c := range list {
			if c.Mode()&fs.ModeSymlink == 0 {
				visit(below(p, c.Name()), depth+1)
			}
		}
	}
	for _, p := range args {
		visit(p, 0)
	}
	return files
}

// grepPattern turns a pattern of grep into Go's syntax.
func grepPattern(p, name string, opts map[byte]string) string {
	switch {
	case has(opts, 'F') || name == "fgrep":
		parts := strings.Split(p, "\n")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		p = strings.Join(parts, "|")
	case !has(opts, 'E') && name != "egrep":
		p = basicPattern(p)
	}
	if has(opts, 'w') {
		p = `\b(?:` + p + `)\b`
	}
	if has(opts, 'x') {
		p = "^(?:" + p + ")$"
	}
	if has(opts, 'i') {
		p = "(?i)" + p
	}
	return p
}

// basicPattern swaps the meaning of \( and (, as POSIX basic expressions want it.
func basicPattern(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\' && i+1 < len(p):
			i++
			if strings.IndexByte("(){}|+?", p[i]) >= 0 {
				b.WriteByte(p[i])
				continue
			}
			b.WriteByte('\\')
			b.WriteByte(p[i])
		case strings.IndexByte("(){}|+?", c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '*' && b.Len() == 0:
			b.WriteString(`\*`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// matcher is one run of grep.
type matcher struct {
	e     *Env
	opts  map[byte]string
	rx    *regexp.Regexp
	ways  []way // a line matches rx if it matches one of them
	named bool
	found bool
}

// way is a regular expression and the text that each of its matches begins with. What is read is mostly dumps of
// thousands of lines by patterns of many such texts, and to look for a text is far quicker than to match.
type way struct {
	begins string
	rx     *regexp.Regexp // nil: the text is all of it
}

// waysOf splits a pattern where it has alternatives at its top level, as far as that is seen without parsing it.
func waysOf(expression string, rx *regexp.Regexp) []way {
	parts := []string{expression}
	if !strings.ContainsAny(expression, `()\`) {
		parts = splitAlternatives(expression)
	}
	var ways []way
	for _, part := range parts {
		one, err := regexp.Compile(part)
		if err != nil {
			return []way{{rx: rx}}
		}
		begins, _ := one.LiteralPrefix()
		if begins == part {
			one = nil
		}
		ways = append(ways, way{begins, one})
	}
	return ways
}

// splitAlternatives splits at each | outside of brackets.
func splitAlternatives(expression string) (parts []string) {
	begin, bracket := 0, false
	for i := range len(expression) {
		switch c := expression[i]; {
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == '|' && !bracket:
			parts = append(parts, expression[begin:i])
			begin = i + 1
		}
	}
	return append(parts, expression[begin:])
}

func (g *matcher) matches(text string) bool {
	return slices.ContainsFunc(g.ways, func(w way) bool {
		return strings.Contains(text, w.begins) && (w.rx == nil || w.rx.MatchString(text))
	})
}

func (g *matcher) file(ctx context.Context, name string, r io.Reader) error {
	limit := -1
	if n, err := strconv.Atoi(g.opts['m']); err == nil {
		limit = n
	}
	after, before := context3(g.opts)
	var held []string
	pending, matches, number := 0, 0, 0
	prefix := ""
	if g.named {
		prefix = name + ":"
	}
	line := func(n int, sep, text string) {
		if has(g.opts, 'n') {
			text = strconv.Itoa(n) + sep + text
		}
		g.e.printf("%s%s\n", prefix, text)
	}
	err := lines(ctx, r, func(text string) bool {
		number++
		if g.matches(text) == has(g.opts, 'v') {
			if pending > 0 {
				pending--
				line(number, "-", text)
				return false
			}
			if held = append(held, text); len(held) > before {
				held = held[1:]
			}
			return false
		}
		matches++
		g.found = true
		switch {
		case has(g.opts, 'q') || has(g.opts, 'l'):
			return true
		case has(g.opts, 'c'):
		case has(g.opts, 'o') && !has(g.opts, 'v'):
			for _, m := range g.rx.FindAllString(text, -1) {
				line(number, ":", m)
			}
		default:
			for i, h := range held {
				line(number-len(held)+i, "-", h)
			}
			held, pending = nil, after
			line(number, ":", text)
		}
		return matches == limit
	})
	switch {
	case has(g.opts, 'q'):
	case has(g.opts, 'c'):
		g.e.printf("%s%d\n", prefix, matches)
	case has(g.opts, 'l') && matches > 0:
		g.e.printf("%s\n", name)
	}
	return err
}

// context3 reads -A, -B and -C.
func context3(opts map[byte]string) (after, before int) {
	both, _ := strconv.Atoi(opts['C'])
	after, before = both, both
	if n, err := strconv.Atoi(opts['A']); err == nil {
		after = n
	}
	if n, err := strconv.Atoi(opts['B']); err == nil {
		before = n
	}
	return min(max(after, 0), 10000), min(max(before, 0), 10000)
}

func find(ctx context.Context, e *Env) int {
	var roots []string
	args := e.Args[1:]
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var name, kind string
	depth := maxTree
	for len(args) > 0 {
		if len(args) < 2 && args[0] != "-print" {
			return e.fail("'%s' needs 1 arg", args[0])
		}
		switch args[0] {
		case "-name":
			name, args = args[1], args[2:]
		case "-type":
			kind, args = args[1], args[2:]
		case "-maxdepth":
			depth, _ = strconv.Atoi(args[1])
			args = args[2:]
		case "-print":
			args = args[1:]
		default:
			return e.fail("bad arg '%s'", args[0])
		}
	}
	status := 0
	var visit func(p string, level int)
	visit = func(p string, level int) {
		info, err := e.Files.Lstat(e.abs(p))
		if err != nil {
			status = e.failPath("'"+p+"'", err)
			return
		}
		matched, _ := path.Match(name, path.Base(p))
		k := modeString(info.Mode())[:1]
		if k == "-" {
			k = "f"
		}
		if (name == "" || matched) && (kind == "" || kind == k) {
			e.printf("%s\n", p)
		}
		if !info.IsDir() || level >= min(depth, maxTree) || ctx.Err() != nil {
			return
		}
		list, err := e.Files.ReadDir(e.abs(p))
		if err != nil {
			status = e.failPath("'"+p+"'", err)
		}
		for _, c := range list {
			visit(below(p, c.Name()), level+1)
		}
	}
	for _, r := range roots {
		visit(r, 0)
	}
	return status
}
