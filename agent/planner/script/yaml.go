package script

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// Bounds of a rule file.
const (
	maxFileBytes = 1 << 20
	maxNodes     = 50_000 // visited, so that aliases cannot multiply
	maxDepth     = 32
	maxPattern   = 5000 // parts of a regular expression with its repetitions written out: each takes room and time
)

// LoadError says where a rule file is wrong.
type LoadError struct {
	File   string
	Line   int
	Reason string
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// loader walks the nodes of one file. Its first error is kept and ends the walk.
type loader struct {
	file  string
	nodes int
	depth int
	names map[string]bool // values that rules of the file may use
	err   *LoadError
}

func (l *loader) fail(n *yaml.Node, format string, args ...any) {
	if l.err == nil {
		l.err = &LoadError{File: l.file, Line: n.Line, Reason: fmt.Sprintf(format, args...)}
	}
}

// root reads the one document of a file.
func (l *loader) root(b []byte) *yaml.Node {
	var doc yaml.Node
	if len(b) > maxFileBytes {
		l.err = &LoadError{File: l.file, Line: 1, Reason: fmt.Sprintf("the file is larger than %d bytes: is it a rule file?", maxFileBytes)}
		return nil
	}
	if err := yaml.Load(b, &doc); err != nil {
		l.err = &LoadError{File: l.file, Line: lineOf(err), Reason: err.Error()}
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		l.err = &LoadError{File: l.file, Line: 1, Reason: "the file is empty"}
		return nil
	}
	return doc.Content[0]
}

// lineOf finds the line in an error of the YAML parser.
func lineOf(err error) int {
	if e, ok := errors.AsType[*yaml.LoadError](err); ok && e.Mark.Line > 0 {
		return e.Mark.Line
	}
	return 1
}

// enter resolves an alias and counts; it returns nil when the walk has ended.
// Each enter of a container is paired with a leave.
func (l *loader) enter(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	l.nodes++
	l.depth++
	switch {
	case l.nodes > maxNodes:
		l.fail(n, "the file has too many parts")
	case l.depth > maxDepth:
		l.fail(n, "nested too deep")
	}
	if l.err != nil {
		return nil
	}
	return n
}

func (l *loader) leave() { l.depth-- }

// fields reads a mapping; each known key has its reader.
func (l *loader) fields(n *yaml.Node, what string, readers map[string]func(*yaml.Node)) {
	defer l.leave()
	if n = l.enter(n); n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		l.fail(n, "%s must be a mapping", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content) && l.err == nil; i += 2 {
		key := n.Content[i]
		read := readers[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || read == nil:
			l.fail(key, "%s has no key %q", what, key.Value)
		case seen[key.Value]:
			l.fail(key, "%s has the key %q twice", what, key.Value)
		default:
			seen[key.Value] = true
			read(n.Content[i+1])
		}
	}
}

// each reads a list, or a single value as a list of one.
func (l *loader) each(n *yaml.Node, read func(*yaml.Node)) {
	defer l.leave()
	if n = l.enter(n); n == nil {
		return
	}
	if n.Kind != yaml.SequenceNode {
		read(n)
		return
	}
	if len(n.Content) == 0 {
		l.fail(n, "the list is empty")
	}
	for _, e := range n.Content {
		if l.err != nil {
			return
		}
		read(e)
	}
}

func (l *loader) scalar(n *yaml.Node) string {
	defer l.leave()
	if n = l.enter(n); n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		l.fail(n, "a plain value is expected")
		return ""
	}
	return n.Value
}

func (l *loader) words(n *yaml.Node) (list []string) {
	l.each(n, func(e *yaml.Node) { list = append(list, l.scalar(e)) })
	return list
}

// oneOf reads a word or a list of words out of a few.
func (l *loader) oneOf(n *yaml.Node, allowed ...string) (list []string) {
	l.each(n, func(e *yaml.Node) {
		w := l.scalar(e)
		if slices.Contains(allowed, w) {
			list = append(list, w)
			return
		}
		l.fail(e, "%q is none of %q", w, allowed)
	})
	return list
}

func (l *loader) number(n *yaml.Node) int {
	i, err := strconv.Atoi(l.scalar(n))
	if err != nil {
		l.fail(n, "a whole number is expected")
	}
	return i
}

func (l *loader) boolean(n *yaml.Node) bool {
	s := l.scalar(n)
	if s != "true" && s != "false" {
		l.fail(n, "true or false is expected")
	}
	return s == "true"
}

// template reads a string with {name} parts, each a value that the file has.
func (l *loader) template(n *yaml.Node) string {
	s := l.scalar(n)
	for _, m := range placeholder.FindAllStringSubmatch(s, -1) {
		if !l.names[m[1]] {
			l.fail(n, "{%s} is neither captured by the goals nor listed in params", m[1])
		}
	}
	return s
}

func (l *loader) regexp(n *yaml.Node) *regexp.Regexp {
	text := l.scalar(n)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err == nil && weight(parsed) > maxPattern {
		err = fmt.Errorf("the pattern %.40q is too large when its repetitions are written out: repeat less", text)
	}
	if err != nil {
		l.fail(n, "%v", err)
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		l.fail(n, "%v", err)
		return nil
	}
	return re
}

// weight is about how many instructions a regular expression compiles to.
func weight(re *syntax.Regexp) int {
	sum := max(1, len(re.Rune))
	for _, sub := range re.Sub {
		sum = min(sum+weight(sub), 2*maxPattern)
	}
	if re.Op == syntax.OpRepeat {
		sum = min(sum*max(re.Min, re.Max, 1), 2*maxPattern)
	}
	return sum
}
