package folder

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// yaml reads the front matter as a mapping; nil after a refusal. A lenient
// reading quotes values with an unquoted ": " if the text is no YAML otherwise.
func (p *parser) yaml(head string) *yaml.Node {
	doc, err := document(head)
	if err != nil && p.mode != Strict {
		if quoted, line := quoteColons(head); line > 0 {
			if again, stillBad := document(quoted); stillBad == nil {
				p.depart(UnquotedColon, p.line+line, "a value holds a colon and needs quotes")
				doc, err = again, nil
			}
		}
	}
	if err != nil {
		line, why := yamlFault(err)
		p.refuse(BadYAML, p.line+line, "the front matter is no YAML: %s", why)
		return nil
	}
	if doc == nil || doc.Kind != yaml.MappingNode {
		p.refuse(BadYAML, p.line, "the front matter must be keys with values")
		return nil
	}
	return doc
}

func document(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// yamlFault finds the line and the words in an error of the YAML parser.
func yamlFault(err error) (line int, why string) {
	if e, ok := errors.AsType[*yaml.LoadError](err); ok && e.Message != "" {
		return max(0, e.Mark.Line), e.Message
	}
	why, _, _ = strings.Cut(err.Error(), "\n")
	return 0, why
}

// plainPair is a key at the margin with a value that begins with a letter or a
// digit, so neither quoted nor a block, a list or a mapping.
var plainPair = regexp.MustCompile(`^([A-Za-z_-]+): +([\p{L}\p{N}].*)$`)

// quoteColons quotes the plain values of top-level keys that hold ": "; line is
// the first of them, 0 if there is none.
func quoteColons(head string) (quoted string, line int) {
	lines := strings.Split(head, "\n")
	for i, l := range lines {
		m := plainPair.FindStringSubmatch(l)
		if m == nil || !strings.Contains(m[2], ": ") && !strings.HasSuffix(m[2], ":") {
			continue
		}
		lines[i] = m[1] + ": '" + strings.ReplaceAll(m[2], "'", "''") + "'"
		if line == 0 {
			line = i + 1
		}
	}
	return strings.Join(lines, "\n"), line
}

// reader takes one key of the front matter.
type reader func(p *parser, v value)

// keys of the standard, and the two of the extension.
var keys = map[string]reader{
	"name":          func(p *parser, v value) { p.skill.Name = p.text(v) },
	"description":   func(p *parser, v value) { p.skill.Description = p.limited(v, maxDescription, LongDescription) },
	"license":       func(p *parser, v value) { p.skill.License = p.text(v) },
	"compatibility": func(p *parser, v value) { p.skill.Compatibility = p.limited(v, maxCompatibility, LongCompatibility) },
	"metadata":      (*parser).metadata,
	"allowed-tools": (*parser).allowedTools,
	"input_schema":  func(p *parser, v value) { p.skill.InputSchema = p.schema(v) },
	"output_schema": func(p *parser, v value) { p.skill.OutputSchema = p.schema(v) },
}

func (p *parser) fields(m *yaml.Node) {
	walk := &walk{}
	lines := map[string]int{}
	for i := 0; i+1 < len(m.Content) && p.fault == nil; i += 2 {
		key, v := m.Content[i], value{node: m.Content[i+1], walk: walk}
		v.key, v.line = key.Value, p.line+key.Line
		if _, twice := lines[v.key]; twice {
			p.refuse(BadYAML, v.line, "the key %.80q is there twice", v.key)
			return
		}
		lines[v.key] = v.line
		read := keys[v.key]
		switch {
		case key.Kind != yaml.ScalarNode || v.key == "<<":
			p.refuse(BadYAML, v.line, "a key must be a word")
		case read != nil:
			read(p, v)
		default:
			p.depart(UnknownField, v.line, "the key %.80q is not known", v.key)
			if v.key == "version" && p.skill.Version == "" {
				p.skill.Version, _ = v.scalar()
			}
		}
	}
	p.finish(lines)
}

// finish checks what needs the whole of the front matter.
func (p *parser) finish(lines map[string]int) {
	s := &p.skill
	if strings.TrimSpace(s.Description) == "" {
		p.refuse(NoDescription, lines["description"], "the key description is missing or empty")
	}
	if s.Name == "" {
		p.depart(NoName, lines["name"], "the key name is missing or empty, and only the folder says what it is called")
		s.Name = p.folder
	}
	if p.fault != nil {
		return
	}
	s.Name = p.name(s.Name, lines["name"])
	if v := s.Metadata["version"]; v != "" {
		s.Version = v
	}
	if s.InputSchema == nil {
		s.InputSchema = []byte(`{"type":"object"}`)
	}
}

// text reads a plain value, whatever YAML takes it for: 1.10 stays 1.10.
func (p *parser) text(v value) string {
	s, ok := v.scalar()
	if !ok {
		p.depart(FieldType, v.line, "the key %s must be a text", v.key)
		return ""
	}
	if len(s) > maxLenientText {
		p.refuse(TooLarge, v.line, "the key %s is larger than %d bytes", v.key, maxLenientText)
	}
	return p.clean(s, "the key "+v.key)
}

func (p *parser) limited(v value, most int, code Code) string {
	s := strings.TrimSpace(p.text(v))
	if n := utf8.RuneCountInString(s); n > most {
		p.depart(code, v.line, "the key %s has %d characters, and %d are allowed", v.key, n, most)
	}
	return s
}

// metadata keeps nested values as their JSON.
func (p *parser) metadata(v value) {
	n := v.resolved()
	if n.Kind != yaml.MappingNode {
		if n.ShortTag() != "!!null" {
			p.depart(FieldType, v.line, "the key metadata must be keys with texts")
		}
		return
	}
	m := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		at := value{node: n.Content[i+1], walk: v.walk, key: "metadata." + key, line: p.line + n.Content[i].Line}
		if _, twice := m[key]; twice || n.Content[i].Kind != yaml.ScalarNode || key == "<<" {
			p.refuse(BadYAML, at.line, "a key of metadata must be a word that is there once")
			return
		}
		text, ok := at.scalar()
		if !ok {
			raw, err := at.json()
			if err != nil {
				p.refuse(BadYAML, at.line, "the key %.80s cannot be kept: %v", at.key, err)
				return
			}
			p.depart(FieldType, at.line, "the key %.80s must be a text", at.key)
			text = string(raw)
		}
		m[p.clean(key, "a key of metadata")] = p.clean(text, "the key "+at.key)
	}
	p.skill.Metadata = m
}

// allowedTools reads names that are separated by spaces; those in parentheses
// belong to the name. Lists and commas are what other clients write.
func (p *parser) allowedTools(v value) {
	if text, ok := v.scalar(); ok {
		p.skill.AllowedTools = toolNames(text)
		return
	}
	n := v.resolved()
	p.depart(FieldType, v.line, "the key allowed-tools must be one text with names between spaces")
	for _, e := range n.Content {
		if text, ok := (value{node: e}).scalar(); ok && n.Kind == yaml.SequenceNode {
			p.skill.AllowedTools = append(p.skill.AllowedTools, text)
		}
	}
}

func toolNames(text string) []string {
	depth := 0
	names := strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && strings.ContainsRune(" \t\n,", r)
	})
	return slices.DeleteFunc(names, func(s string) bool { return s == "" })
}

// schema reads a JSON Schema of an object. It may not point elsewhere.
func (p *parser) schema(v value) []byte {
	n := v.resolved()
	if n.Kind != yaml.MappingNode {
		p.refuse(BadSchema, v.line, "the key %s must be the JSON Schema of an object", v.key)
		return nil
	}
	raw, err := v.schema()
	if err != nil {
		p.refuse(BadSchema, v.line, "the key %s is no JSON Schema: %v", v.key, err)
	}
	return raw
}
