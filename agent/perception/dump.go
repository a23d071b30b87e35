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

// tree is a dump as a flat list: a node's ancestors and descendants are found
// without recursion.
type tree struct {
	rotation int    // of the root, -1 if it has none
	nodes    []node // in document order: a subtree is contiguous
	cut      bool   // nodes were left out
}

type node struct {
	parent int // index in nodes, -1 below the root
	end    int // index behind the last descendant
	depth  int
	order  int // drawing order among siblings, 0 if not known

	text, desc, hint, id, class, pkg string
	bounds                           image.Rectangle
	flags                            bits
}

type bits uint16

const (
	checkable bits = 1 << iota
	checked
	clickable
	disabled
	focused
	scrollable
	longClickable
	password
	selected
	editable
	invisible
)

func (n *node) has(f bits) bool { return n.flags&f != 0 }

// pkg returns the package of the first node that names one.
func (t *tree) pkg() string {
	for i := range t.nodes {
		if t.nodes[i].pkg != "" {
			return t.nodes[i].pkg
		}
	}
	return ""
}

// parser is a pull parser for what `uiautomator dump` writes: elements with
// attributes and nothing else that matters. It is more tolerant than XML where
// real dumps break its rules (text around the root, raw control characters,
// references to surrogate halves) and gives up at whatever else is wrong.
type parser struct {
	src []byte
	pos int
	t   tree

	open    int // index of the innermost open node that was kept, -1 for none
	depth   int // open elements below the root, also those left out
	skipped int // the innermost open elements that were left out
}

// parseDump parses a dump. The result does not refer to raw.
func parseDump(raw []byte) (*tree, error) {
	p := &parser{src: raw, open: -1, t: tree{rotation: -1}}
	if len(raw) > maxDump {
		return nil, p.fail(maxDump, ErrDumpTooLarge)
	}
	if err := p.root(); err != nil {
		return nil, err
	}
	return &p.t, nil
}

func (p *parser) fail(at int, err error) error {
	at = min(at, len(p.src))
	return &DumpError{Offset: at, Near: strings.ToValidUTF8(string(p.src[at:min(at+40, len(p.src))]), "?"), Err: err}
}

// root finds the hierarchy element and parses up to its end; what follows is
// not looked at.
func (p *parser) root() error {
	start := bytes.Index(p.src, []byte("<hierarchy"))
	if decl := bytes.Index(p.src, []byte("<?xml")); decl >= 0 && (start < 0 || decl < start) {
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
	name := p.name()
	if string(name) != "hierarchy" {
		return p.fail(start, ErrWrongRoot)
	}
	closed, err := p.attributes(func(name, value []byte) {
		if string(name) == "rotation" && len(value) == 1 && value[0] >= '0' && value[0] <= '3' {
			p.t.rotation = int(value[0] - '0')
		}
	})
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
	if len(p.name()) == 0 {
		return false, p.fail(start, ErrDumpSyntax)
	}
	return false, p.element()
}

// closing parses the rest of a closing tag.
func (p *parser) closing(start int) (done bool, err error) {
	name := string(p.name())
	p.space()
	switch {
	case p.pos >= len(p.src):
		return false, p.fail(len(p.src), ErrDumpTruncated)
	case p.src[p.pos] != '>':
		return false, p.fail(start, ErrDumpSyntax)
	}
	p.pos++
	switch {
	case p.depth == 0 && name == "hierarchy":
		return true, nil
	case p.depth == 0 || name == "hierarchy":
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
	n := &p.t.nodes[p.open]
	n.end = len(p.t.nodes)
	p.open = n.parent
}

// element parses the attributes of a node and appends it.
func (p *parser) element() error {
	n := node{parent: p.open, depth: p.depth + 1}
	closed, err := p.attributes(n.set)
	if err != nil {
		return err
	}
	p.depth++
	if p.skipped > 0 || len(p.t.nodes) >= maxNodes || p.depth > maxDepth {
		p.t.cut = true
		p.skipped++
	} else {
		p.t.nodes = append(p.t.nodes, n)
		p.open = len(p.t.nodes) - 1
	}
	if closed {
		p.pop()
	}
	return nil
}

// attributes parses up to and with the end of a start tag, and reports whether
// the element is closed by it.
func (p *parser) attributes(set func(name, value []byte)) (closed bool, err error) {
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
		set(name, value)
	}
}

// attribute parses one name="value".
func (p *parser) attribute() (name, value []byte, err error) {
	start := p.pos
	name = p.name()
	p.space()
	if p.pos >= len(p.src) {
		return nil, nil, p.fail(len(p.src), ErrDumpTruncated)
	}
	if len(name) == 0 || p.src[p.pos] != '=' {
		return nil, nil, p.fail(start, ErrDumpSyntax)
	}
	p.pos++
	p.space()
	if p.pos >= len(p.src) {
		return nil, nil, p.fail(len(p.src), ErrDumpTruncated)
	}
	mark := p.src[p.pos]
	if mark != '"' && mark != '\'' {
		return nil, nil, p.fail(p.pos, ErrDumpSyntax)
	}
	p.pos++
	end := bytes.IndexByte(p.src[p.pos:], mark)
	if end < 0 {
		return nil, nil, p.fail(len(p.src), ErrDumpTruncated)
	}
	value = p.src[p.pos : p.pos+end]
	p.pos += end + 1
	return name, value, nil
}

// name takes a name, which may be empty.
func (p *parser) name() []byte {
	start := p.pos
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		if c <= ' ' || c == '=' || c == '/' || c == '>' || c == '<' || c == '"' || c == '\'' {
			break
		}
		p.pos++
	}
	return p.src[start:p.pos]
}

// space skips white space, and the NULs that some dumpers leave.
func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\r', '\n', 0:
			p.pos++
		default:
			return
		}
	}
}
