package perception

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"strings"
)

// Bounds of a dump. A real one has 50 to 500 nodes and at most about 60 levels.
const (
	maxDump  = 16 << 20 // bytes
	maxNodes = 20000    // nodes beyond are left out
	maxDepth = 16000    // levels beyond are left out
	maxAttr  = 4096     // bytes of one string
	maxCoord = 1 << 20  // pixels
)

// Causes of a DumpError.
var (
	ErrNoHierarchy   = errors.New("no hierarchy element")
	ErrWrongRoot     = errors.New("the root is not a hierarchy element")
	ErrDumpTruncated = errors.New("the dump ends before </hierarchy>")
	ErrDumpSyntax    = errors.New("not well formed")
	ErrDumpTooLarge  = errors.New("the dump is too large")
)

// DumpError says what is wrong with a dump of the element tree, and where.
type DumpError struct {
	Offset int    // byte in the dump
	Near   string // what stands there, at most 40 bytes
	Err    error
}

// Error implements error.
func (e *DumpError) Error() string {
	return fmt.Sprintf("element tree, byte %d (%q): %v", e.Offset, e.Near, e.Err)
}

// Unwrap returns the cause.
func (e *DumpError) Unwrap() error { return e.Err }

// parser is a pull parser for what `uiautomator dump` writes: elements with
// attributes and nothing else that matters. It is more tolerant than XML where
// real dumps break its rules (text around the root, raw control characters,
// references to surrogate halves) and gives up at whatever else is wrong.
type parser struct {
	*tree
	pos int

	open    int32 // index of the innermost open node that was kept, -1 for none
	depth   int32 // open elements below the root, also those left out
	skipped int32 // the innermost open elements that were left out
	spare   node  // takes the attributes of a node that is left out
}

// parseDump parses a dump. The tree refers to raw until it is released.
func parseDump(raw []byte) (*tree, error) {
	t := trees.Get().(*tree)
	t.src, t.side, t.nodes, t.rotation, t.size, t.cut, t.hints = raw, t.side[:0], t.nodes[:0], -1, image.Point{}, false, false
	t.names.reset()
	p := parser{tree: t, open: -1}
	err := p.root()
	if err != nil {
		t.release()
		return nil, err
	}
	t.parsed = len(t.side)
	return t, nil
}

func (p *parser) fail(at int, err error) error {
	at = min(at, len(p.src))
	return &DumpError{Offset: at, Near: strings.ToValidUTF8(string(p.src[at:min(at+40, len(p.src))]), "?"), Err: err}
}

// root finds the hierarchy element and parses up to its end; what follows is
// not looked at.
func (p *parser) root() error {
	if len(p.src) > maxDump {
		return p.fail(maxDump, ErrDumpTooLarge)
	}
	start := bytes.Index(p.src, []byte("<hierarchy"))
	before := p.src
	if start >= 0 {
		before = p.src[:start]
	}
	if decl := bytes.Index(before, []byte("<?xml")); decl >= 0 {
		end := bytes.Index(p.src[decl:], []byte("?>"))
		if end < 0 {
			return p.fail(len(p.src), ErrDumpTruncated)
		}
		first := bytes.IndexByte(p.src[decl+end:], '<')
		switch {
		case first < 0 && start < 0:
			return p.fail(len(p.src), ErrDumpTruncated)
		case decl+end+first != start:
			return p.fail(decl+end+first, ErrWrongRoot)
		}
	}
	if start < 0 {
		return p.fail(0, ErrNoHierarchy)
	}
	p.pos = start + 1
	name := p.word()
	if string(name) != "hierarchy" {
		return p.fail(start, ErrWrongRoot)
	}
	closed, err := p.attributes(nil)
	if err != nil || closed {
		return err
	}
	for {
		next := bytes.IndexByte(p.src[p.pos:], '<')
		if next < 0 {
			return p.fail(len(p.src), ErrDumpTruncated)
		}
		p.pos += next + 1
		done, err := p.markup()
		if done || err != nil {
			return err
		}
	}
}

// markup parses what follows a '<'. It reports whether the root has ended.
func (p *parser) markup() (done bool, err error) {
	start := p.pos - 1
	rest := p.src[p.pos:]
	switch {
	case len(rest) == 0:
		return false, p.fail(len(p.src), ErrDumpTruncated)
	case bytes.HasPrefix(rest, []byte("!--")):
		end := bytes.Index(rest, []byte("-->"))
		if end < 0 {
			return false, p.fail(len(p.src), ErrDumpTruncated)
		}
		p.pos += end + len("-->")
		return false, nil
	case rest[0] == '/':
		p.pos++
		return p.closing(start)
	}
	tag := p.word()
	if len(tag) == 0 {
		return false, p.fail(start, ErrDumpSyntax)
	}
	return false, p.element(span{int32(start + 1), int32(len(tag))})
}

// closing parses the rest of a closing tag.
func (p *parser) closing(start int) (done bool, err error) {
	root := string(p.word()) == "hierarchy"
	p.space()
	switch {
	case p.pos >= len(p.src):
		return false, p.fail(len(p.src), ErrDumpTruncated)
	case p.src[p.pos] != '>':
		return false, p.fail(start, ErrDumpSyntax)
	}
	p.pos++
	switch {
	case p.depth == 0 && root:
		return true, nil
	case p.depth == 0 || root:
		return false, p.fail(start, ErrDumpSyntax)
	}
	p.pop()
	return false, nil
}

// pop closes the innermost open element.
func (p *parser) pop() {
	p.depth--
	if p.skipped > 0 {
		p.skipped--
		return
	}
	n := &p.nodes[p.open]
	n.end = int32(len(p.nodes))
	p.open = n.parent
}

// element parses the attributes of a node and appends it. A node that names no
// class is of the one that its tag names.
func (p *parser) element(tag span) error {
	skip := p.skipped > 0 || len(p.nodes) >= maxNodes || p.depth >= maxDepth
	n := &p.spare
	if !skip {
		p.nodes = append(p.nodes, node{})
		n = &p.nodes[len(p.nodes)-1]
	}
	*n = node{parent: p.open, depth: p.depth + 1}
	closed, err := p.attributes(n)
	if err != nil {
		return err
	}
	if n.class == 0 && string(p.src[tag.at:tag.at+tag.n]) != "node" {
		n.class = p.name(p.decoded(tag))
	}
	p.depth++
	if skip {
		p.cut = true
		p.skipped++
	} else {
		p.open = int32(len(p.nodes) - 1)
	}
	if closed {
		p.pop()
	}
	return nil
}

// attributes parses up to and with the end of a start tag, and reports whether
// the element is closed by it. Without a node the attributes are the root's.
func (p *parser) attributes(n *node) (closed bool, err error) {
	for {
		p.space()
		if p.pos >= len(p.src) {
			return false, p.fail(len(p.src), ErrDumpTruncated)
		}
		switch p.src[p.pos] {
		case '>':
			p.pos++
			return false, nil
		case '/':
			if p.pos++; p.pos >= len(p.src) {
				return false, p.fail(len(p.src), ErrDumpTruncated)
			}
			if p.src[p.pos] != '>' {
				return false, p.fail(p.pos, ErrDumpSyntax)
			}
			p.pos++
			return true, nil
		}
		name, value, err := p.attribute()
		if err != nil {
			return false, err
		}
		if n != nil {
			p.set(n, name, value)
		} else {
			p.setRoot(name, value)
		}
	}
}

// attribute parses one name="value".
func (p *parser) attribute() (name []byte, value span, err error) {
	start := p.pos
	name = p.word()
	p.space()
	if p.pos >= len(p.src) {
		return nil, span{}, p.fail(len(p.src), ErrDumpTruncated)
	}
	if len(name) == 0 || p.src[p.pos] != '=' {
		return nil, span{}, p.fail(start, ErrDumpSyntax)
	}
	p.pos++
	p.space()
	if p.pos >= len(p.src) {
		return nil, span{}, p.fail(len(p.src), ErrDumpTruncated)
	}
	mark := p.src[p.pos]
	if mark != '"' && mark != '\'' {
		return nil, span{}, p.fail(p.pos, ErrDumpSyntax)
	}
	p.pos++
	end := bytes.IndexByte(p.src[p.pos:], mark)
	if end < 0 {
		return nil, span{}, p.fail(len(p.src), ErrDumpTruncated)
	}
	value = span{int32(p.pos), int32(end)}
	p.pos += end + 1
	return name, value, nil
}

// endsWord tells the bytes that no name of an element or attribute holds.
var endsWord = func() (t [256]bool) {
	for c := range byte(' ') + 1 {
		t[c] = true
	}
	for _, c := range []byte(`=/><"'`) {
		t[c] = true
	}
	return t
}()

// word takes a name, which may be empty.
func (p *parser) word() []byte {
	rest := p.src[p.pos:]
	for i, c := range rest {
		if endsWord[c] {
			p.pos += i
			return rest[:i]
		}
	}
	p.pos = len(p.src)
	return rest
}

// space skips white space, and the NULs that some dumpers leave.
func (p *parser) space() {
	for i, c := range p.src[p.pos:] {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != 0 {
			p.pos += i
			return
		}
	}
	p.pos = len(p.src)
}
