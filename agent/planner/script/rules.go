package script

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"
)

//go:embed rules/*.yaml
var shipped embed.FS

// Rules is a set of rule files, immutable once loaded and safe for concurrent
// use. It implements planner.Planner.
type Rules struct{ scripts []*script }

// script is one file.
type script struct {
	name  string
	goals []*regexp.Regexp
	rules []*rule
}

type rule struct {
	name string
	line int
	when condition
	tool string
	args *value // a mapping
}

// condition holds when every part that is set does.
type condition struct {
	goal            *regexp.Regexp
	screen          screenCondition
	exists, missing []*selector
	last, notLast   *callMatcher
	past, notPast   []*callMatcher
	answer, result  *textMatcher
	step            int
}

// screenCondition is about the screen line.
type screenCondition struct {
	app, notApp, activity []string
	keyboard, noTree      []string
	locked, secure        *bool
	dialog                *textMatcher
}

// value is an argument before its values are known.
type value struct {
	text    string // a string with {name} parts
	literal any    // bool, json.Number or nil
	isText  bool
	list    []*value
	fields  map[string]*value
	element *selector // becomes the arguments element and generation
}

// Load reads a rule file, or all *.yaml files of a folder in the order of their
// names. Its errors are a *LoadError, or from the file system.
func Load(name string) (*Rules, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	files := []string{name}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(name, "*.yaml")); err != nil || len(files) == 0 {
			return nil, cmp.Or(err, fmt.Errorf("rules: no *.yaml file in %s", name))
		}
	}
	return load(files, readFile)
}

// readFile reads no more than tells that a file is too large.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// Shipped returns the rules that come with phonerack.
func Shipped() (*Rules, error) {
	files, err := fs.Glob(shipped, "rules/*.yaml")
	if err != nil {
		return nil, err
	}
	return load(files, shipped.ReadFile)
}

func load(files []string, read func(string) ([]byte, error)) (*Rules, error) {
	slices.Sort(files)
	r := &Rules{}
	for _, f := range files {
		b, err := read(f)
		if err != nil {
			return nil, fmt.Errorf("rules: %w", err)
		}
		one, err := Parse(path.Base(filepath.ToSlash(f)), b)
		if err != nil {
			return nil, err
		}
		r.scripts = append(r.scripts, one.scripts...)
	}
	return r, nil
}

// Parse reads the text of one rule file; name stands in its errors.
func Parse(name string, text []byte) (*Rules, error) {
	l := &loader{file: name, names: map[string]bool{answerName: true}}
	s := &script{}
	if root := l.root(text); root != nil {
		l.script(root, s)
	}
	if l.err != nil {
		return nil, l.err
	}
	return &Rules{scripts: []*script{s}}, nil
}

func (l *loader) script(n *yaml.Node, s *script) {
	var rules *yaml.Node // read last, when all names are known
	l.fields(n, "a rule file", map[string]func(*yaml.Node){
		"name":  func(n *yaml.Node) { s.name = l.scalar(n) },
		"about": func(n *yaml.Node) { l.scalar(n) },
		"goals": func(n *yaml.Node) {
			l.each(n, func(e *yaml.Node) {
				if re := l.regexp(e); re != nil {
					s.goals = append(s.goals, re)
					for _, name := range re.SubexpNames() {
						l.names[name] = name != ""
					}
				}
			})
		},
		"params": func(n *yaml.Node) {
			for _, name := range l.words(n) {
				l.names[name] = true
			}
		},
		"shared": func(*yaml.Node) {}, // a place for anchors; its parts are read where they are used
		"rules":  func(n *yaml.Node) { rules = n },
	})
	switch {
	case l.err != nil:
	case s.name == "":
		l.fail(n, "a rule file needs a name")
	case len(s.goals) == 0:
		l.fail(n, "a rule file needs goals")
	case rules == nil:
		l.fail(n, "a rule file needs rules")
	default:
		l.each(rules, func(e *yaml.Node) { s.rules = append(s.rules, l.rule(e)) })
	}
}

func (l *loader) rule(n *yaml.Node) *rule {
	r := &rule{line: n.Line}
	l.fields(n, "a rule", map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) { r.name = l.scalar(n) },
		"when": func(n *yaml.Node) { l.condition(n, &r.when) },
		"do":   func(n *yaml.Node) { r.tool, r.args = l.do(n) },
	})
	if r.name == "" {
		l.fail(n, "a rule needs a name")
	}
	if r.tool == "" {
		l.fail(n, "a rule needs do with one tool")
	}
	return r
}

func (l *loader) condition(n *yaml.Node, c *condition) {
	calls := func(to *[]*callMatcher) func(*yaml.Node) {
		return func(n *yaml.Node) {
			l.each(n, func(e *yaml.Node) { *to = append(*to, l.call(e)) })
		}
	}
	selectors := func(to *[]*selector) func(*yaml.Node) {
		return func(n *yaml.Node) {
			l.each(n, func(e *yaml.Node) { *to = append(*to, l.selector(e)) })
		}
	}
	l.fields(n, "when", map[string]func(*yaml.Node){
		"goal":     func(n *yaml.Node) { c.goal = l.regexp(n) },
		"app":      func(n *yaml.Node) { c.screen.app = l.words(n) },
		"not_app":  func(n *yaml.Node) { c.screen.notApp = l.words(n) },
		"activity": func(n *yaml.Node) { c.screen.activity = l.words(n) },
		"keyboard": func(n *yaml.Node) { c.screen.keyboard = l.oneOf(n, "shown", "hidden") },
		"no_tree":  func(n *yaml.Node) { c.screen.noTree = l.oneOf(n, "unreadable", "drawn") },
		"locked":   func(n *yaml.Node) { c.screen.locked = new(l.boolean(n)) },
		"secure":   func(n *yaml.Node) { c.screen.secure = new(l.boolean(n)) },
		"dialog":   func(n *yaml.Node) { c.screen.dialog = l.text(n) },
		"answer":   func(n *yaml.Node) { c.answer = l.text(n) },
		"result":   func(n *yaml.Node) { c.result = l.text(n) },
		"exists":   selectors(&c.exists),
		"missing":  selectors(&c.missing),
		"last":     func(n *yaml.Node) { c.last = l.call(n) },
		"not_last": func(n *yaml.Node) { c.notLast = l.call(n) },
		"past":     calls(&c.past),
		"not_past": calls(&c.notPast),
		"step":     func(n *yaml.Node) { c.step = l.number(n) },
	})
}

// do reads {tool: {arguments}}.
func (l *loader) do(n *yaml.Node) (tool string, args *value) {
	defer l.leave()
	if n = l.enter(n); n == nil {
		return "", nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		l.fail(n, "do must be a mapping of one tool to its arguments")
		return "", nil
	}
	return l.scalar(n.Content[0]), l.arguments(n.Content[1])
}

// arguments reads a mapping in which element is a selector.
func (l *loader) arguments(n *yaml.Node) *value {
	defer l.leave()
	v := &value{fields: map[string]*value{}}
	if n = l.enter(n); n == nil {
		return v
	}
	if n.Kind != yaml.MappingNode {
		l.fail(n, "the arguments must be a mapping")
		return v
	}
	for i := 0; i+1 < len(n.Content) && l.err == nil; i += 2 {
		if name := l.scalar(n.Content[i]); name == "element" {
			v.fields[name] = &value{element: l.selector(n.Content[i+1])}
		} else {
			v.fields[name] = l.value(n.Content[i+1])
		}
	}
	return v
}

// value reads an argument of any form.
func (l *loader) value(n *yaml.Node) *value {
	defer l.leave()
	if n = l.enter(n); n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.SequenceNode:
		v := &value{list: []*value{}}
		for _, e := range n.Content {
			v.list = append(v.list, l.value(e))
		}
		return v
	case yaml.MappingNode:
		v := &value{fields: map[string]*value{}}
		for i := 0; i+1 < len(n.Content) && l.err == nil; i += 2 {
			v.fields[l.scalar(n.Content[i])] = l.value(n.Content[i+1])
		}
		return v
	}
	switch n.Tag {
	case "!!int":
		if _, err := strconv.ParseInt(n.Value, 10, 64); err != nil {
			l.fail(n, "the number is out of range or not decimal")
		}
		return &value{literal: json.Number(n.Value)}
	case "!!bool":
		return &value{literal: l.boolean(n)}
	case "!!str":
		return &value{isText: true, text: l.template(n)}
	}
	l.fail(n, "a string, whole number, true or false is expected")
	return nil
}

// errUnknown means that a value or an element of a rule is not there.
var errUnknown = errors.New("not known on this screen")

// fill makes the JSON form of v.
func (v *value) fill(s *scope) (any, error) {
	switch {
	case v.isText:
		return s.expand(v.text)
	case v.list != nil:
		list := make([]any, len(v.list))
		for i, e := range v.list {
			var err error
			if list[i], err = e.fill(s); err != nil {
				return nil, err
			}
		}
		return list, nil
	case v.fields != nil:
		m := map[string]any{}
		for name, f := range v.fields {
			if f.element != nil {
				e := f.element.find(s)
				if e == nil {
					return nil, errUnknown
				}
				m["element"], m["generation"] = e.index, s.prompt.screen.gen
				continue
			}
			var err error
			if m[name], err = f.fill(s); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return v.literal, nil
}
