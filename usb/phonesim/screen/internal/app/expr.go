package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Expr is a parsed expression. The zero Expr is empty: Empty reports it, and it evaluates to "".
//
//	expr    = and { "or" and }
//	and     = not { "and" not }
//	not     = "not" not | compare
//	compare = sum [ ("==" | "!=" | "<=" | ">=" | "<" | ">") sum ]
//	sum     = term { ("+" | "-") term }
//	term    = factor { ("*" | "/" | "%") factor }
//	factor  = number | 'text' | "true" | "false" | "@" key | name { "." field }
//	        | function "(" [ expr { "," expr } ] ")" | "-" factor | "(" expr ")"
type Expr struct {
	src  string
	line int
	root *node
}

// Empty reports that nothing was written where the expression could stand.
func (e *Expr) Empty() bool { return e.src == "" }

// UnmarshalYAML keeps the source; it is parsed when the app is checked, where the screen and node are known.
func (e *Expr) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: an expression is one line of text", n.Line)
	}
	e.src, e.line = strings.TrimSpace(n.Value), n.Line
	return nil
}

type op uint8

const (
	opConst op = iota + 1 // value
	opText                // text: key of texts
	opName                // text: name
	opField               // args[0].text
	opCall                // text: function
	opNot
	opNeg
	opBinary // text: operator
)

type node struct {
	op    op
	text  string
	value any
	args  []*node
}

// functions by name with the least and greatest number of arguments.
var functions = map[string][2]int{
	"count":    {1, 2},
	"sum":      {2, 2},
	"join":     {2, 2},
	"contains": {2, 2},
	"en":       {1, 1},
	"if":       {3, 3},
	"money":    {1, 1},
	"trim":     {1, 1},
	"length":   {1, 1},
	"initial":  {1, 1},
}

// maxDepth bounds how deep expressions and widgets nest, so that hostile files cannot exhaust the stack.
const maxDepth = 60

type parser struct {
	tokens []string
	pos    int
	depth  int
}

func (e *Expr) parse() error {
	if e.root != nil || e.src == "" {
		return nil
	}
	root, err := parseExpr(e.src)
	if err != nil {
		return err
	}
	e.root = root
	return nil
}

func parseExpr(src string) (*node, error) {
	tokens, err := scan(src)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", src, err)
	}
	p := &parser{tokens: tokens}
	n, err := p.or()
	if err == nil && p.pos < len(p.tokens) {
		err = fmt.Errorf("unexpected %q", p.peek())
	}
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", src, err)
	}
	return n, nil
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func scan(src string) ([]string, error) {
	var out []string
	for i := 0; i < len(src); {
		c := src[i]
		start := i
		switch {
		case c == ' ':
			i++
			continue
		case c == '\'':
			end := strings.IndexByte(src[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("missing closing quote")
			}
			i += end + 2
		case c >= '0' && c <= '9':
			for i < len(src) && (src[i] >= '0' && src[i] <= '9' || src[i] == '.') {
				i++
			}
		case isNameByte(c) || c == '@':
			for i++; i < len(src) && isNameByte(src[i]); i++ {
			}
		case i+1 < len(src) && slices.Contains([]string{"==", "!=", "<=", ">="}, src[i:i+2]):
			i += 2
		case strings.IndexByte("<>+-*/%().,", c) >= 0:
			i++
		default:
			r, _ := utf8.DecodeRuneInString(src[i:])
			return nil, fmt.Errorf("unexpected character %q", r)
		}
		out = append(out, src[start:i])
	}
	return out, nil
}

func (p *parser) peek() string {
	if p.pos < len(p.tokens) {
		return p.tokens[p.pos]
	}
	return ""
}

func (p *parser) accept(tokens ...string) (string, bool) {
	if t := p.peek(); t != "" && slices.Contains(tokens, t) {
		p.pos++
		return t, true
	}
	return "", false
}

// binary parses left-associative operators of one level.
func (p *parser) binary(next func() (*node, error), tokens ...string) (*node, error) {
	left, err := next()
	for err == nil {
		t, ok := p.accept(tokens...)
		if !ok {
			return left, nil
		}
		var right *node
		if right, err = next(); err == nil {
			left = &node{op: opBinary, text: t, args: []*node{left, right}}
		}
	}
	return nil, err
}

func (p *parser) or() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("nested too deeply")
	}
	defer func() { p.depth-- }()
	return p.binary(p.and, "or")
}

func (p *parser) and() (*node, error) { return p.binary(p.not, "and") }

func (p *parser) not() (*node, error) {
	negate := false
	for {
		if _, ok := p.accept("not"); !ok {
			break
		}
		negate = !negate
	}
	n, err := p.compare()
	if err == nil && negate {
		n = &node{op: opNot, args: []*node{n}}
	}
	return n, err
}

func (p *parser) compare() (*node, error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	t, ok := p.accept("==", "!=", "<=", ">=", "<", ">")
	if !ok {
		return left, nil
	}
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	return &node{op: opBinary, text: t, args: []*node{left, right}}, nil
}

func (p *parser) sum() (*node, error)  { return p.binary(p.term, "+", "-") }
func (p *parser) term() (*node, error) { return p.binary(p.factor, "*", "/", "%") }

func (p *parser) factor() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("nested too deeply")
	}
	defer func() { p.depth-- }()
	t := p.peek()
	if t == "" {
		return nil, fmt.Errorf("ends too early")
	}
	p.pos++
	switch c := t[0]; {
	case t == "-":
		n, err := p.factor()
		return &node{op: opNeg, args: []*node{n}}, err
	case t == "(":
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		if _, ok := p.accept(")"); !ok {
			return nil, fmt.Errorf("missing )")
		}
		return n, nil
	case c == '\'':
		return &node{op: opConst, value: t[1 : len(t)-1]}, nil
	case c >= '0' && c <= '9':
		f, err := strconv.ParseFloat(t, 64)
		if err != nil {
			return nil, fmt.Errorf("bad number %q", t)
		}
		return &node{op: opConst, value: f}, nil
	case t == "true" || t == "false":
		return &node{op: opConst, value: t == "true"}, nil
	case c == '@':
		return &node{op: opText, text: t[1:]}, nil
	case unicode.IsLetter(rune(c)) || c == '_':
		if _, ok := p.accept("("); ok {
			return p.call(t)
		}
		return p.fields(&node{op: opName, text: t})
	}
	return nil, fmt.Errorf("unexpected %q", t)
}

func (p *parser) fields(n *node) (*node, error) {
	for {
		if _, ok := p.accept("."); !ok {
			return n, nil
		}
		f := p.peek()
		if f == "" || !isNameByte(f[0]) {
			return nil, fmt.Errorf("missing field name after the dot")
		}
		p.pos++
		n = &node{op: opField, text: f, args: []*node{n}}
	}
}

func (p *parser) call(name string) (*node, error) {
	limits, ok := functions[name]
	if !ok {
		return nil, fmt.Errorf("unknown function %q", name)
	}
	n := &node{op: opCall, text: name}
	if _, done := p.accept(")"); !done {
		for {
			arg, err := p.or()
			if err != nil {
				return nil, err
			}
			n.args = append(n.args, arg)
			if _, more := p.accept(","); more {
				continue
			}
			if _, done := p.accept(")"); done {
				break
			}
			return nil, fmt.Errorf("missing ) after the arguments of %s", name)
		}
	}
	if len(n.args) < limits[0] || len(n.args) > limits[1] {
		return nil, fmt.Errorf("%s takes %d to %d arguments, not %d", name, limits[0], limits[1], len(n.args))
	}
	return n, nil
}

// walk visits every node of the expression.
func (n *node) walk(visit func(*node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, a := range n.args {
		a.walk(visit)
	}
}
