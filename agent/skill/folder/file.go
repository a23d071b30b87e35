package folder

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds of a file, in characters where the standard gives them.
const (
	maxName          = 64
	maxLenientName   = 128
	maxDescription   = 1024
	maxLenientText   = 8 << 10 // bytes of any text but the body
	maxCompatibility = 500
	maxFrontMatter   = 64 << 10 // bytes
)

// Skill is what a SKILL.md says.
type Skill struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	Version       string            `json:"version,omitempty"` // metadata's, else the key's of files beside the standard
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	AllowedTools  []string          `json:"allowed_tools,omitempty"` // what the file asks for; grants nothing
	InputSchema   json.RawMessage   `json:"input_schema"`            // {"type":"object"} where the file has none
	OutputSchema  json.RawMessage   `json:"output_schema,omitempty"` // nil where the file has none
	Body          string            `json:"body"`                    // Markdown, with plain line ends

	Findings []Finding `json:"findings,omitempty"` // of a lenient reading
}

// Parse reads the bytes of a SKILL.md that lies in a folder of that name. An
// error is a [Finding]: the first that forbids the mode to take the file.
func Parse(data []byte, folderName string, mode Mode) (*Skill, error) {
	p := &parser{mode: mode, folder: folderName}
	head, body, ok := p.split(data)
	if !ok {
		return nil, *p.fault
	}
	p.skill.Body = p.clean(body, "the text below the front matter")
	if fields := p.yaml(head); fields != nil {
		p.fields(fields)
	}
	if p.fault != nil {
		return nil, *p.fault
	}
	return &p.skill, nil
}

// parser reads one file. The first fault is kept.
type parser struct {
	mode   Mode
	folder string
	line   int // number of the line before the front matter
	skill  Skill
	fault  *Finding
}

func (p *parser) refuse(code Code, line int, format string, args ...any) {
	if p.fault == nil {
		f := finding(code, line, format, args...)
		p.fault = &f
	}
}

// depart notes a departure from the standard, which a strict reading refuses.
func (p *parser) depart(code Code, line int, format string, args ...any) {
	if p.mode == Strict {
		p.refuse(code, line, format, args...)
		return
	}
	p.skill.Findings = append(p.skill.Findings, finding(code, line, format, args...))
}

const fence = "---"

// split finds the fences: whole lines of three hyphens, so that hyphens inside
// of a value are no end. A byte order mark and any kind of line end are fine.
func (p *parser) split(data []byte) (head, body string, ok bool) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(data) > maxFile {
		p.refuse(TooLarge, 0, "%s is larger than %d bytes", FileName, maxFile)
		return "", "", false
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		p.refuse(NotText, 0, "%s is no UTF-8 text", FileName)
		return "", "", false
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
	rest := strings.TrimLeft(text, " \t\n")
	if blank := strings.Count(text[:len(text)-len(rest)], "\n"); blank > 0 {
		p.line = blank
	}
	first, rest, _ := strings.Cut(text[lineStart(text, p.line):], "\n")
	if strings.TrimRight(first, " \t") != fence {
		p.refuse(NoFrontMatter, 1, "the file does not begin with the line %s", fence)
		return "", "", false
	}
	if p.line > 0 {
		p.depart(BlankBefore, 1, "there are blank lines before the line %s", fence)
	}
	p.line++
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\n") == fence {
			if at > maxFrontMatter {
				p.refuse(TooLarge, 0, "the front matter is larger than %d bytes", maxFrontMatter)
				return "", "", false
			}
			return rest[:at], rest[at+len(line):], p.fault == nil
		}
		at += len(line)
	}
	p.refuse(NotClosed, p.line, "the front matter is not closed by a line %s", fence)
	return "", "", false
}

// lineStart is where the line after the first n ones begins.
func lineStart(text string, n int) int {
	at := 0
	for range n {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	return at
}

// clean takes out what nobody sees.
func (p *parser) clean(s, what string) string {
	out, n := visible(s)
	if n > 0 {
		p.depart(InvisibleCharacter, 0, "%s holds characters that cannot be seen: %d", what, n)
	}
	return out
}

// name checks a name, in the form in which names are compared.
func (p *parser) name(name string, line int) string {
	name = norm.NFKC.String(name)
	if fault := nameFault(name); fault != "" {
		p.refuse(BadName, line, "the name %.80q %s", name, fault)
		return ""
	}
	if fault := formFault(name); fault != "" {
		p.depart(NameForm, line, "the name %s %s", name, fault)
	}
	if own := norm.NFKC.String(p.folder); name != own {
		p.depart(NameDiffers, line, "the name %s is not that of its folder, %.80q", name, own)
	}
	return name
}

// nameFault says why a name cannot stand in an id such as agent_skills/NAME;
// "" if it can.
func nameFault(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is empty"
	case utf8.RuneCountInString(name) > maxLenientName:
		return "is much too long"
	case strings.TrimSpace(name) != name:
		return "begins or ends with white space"
	case strings.HasPrefix(name, "."):
		return "begins with a dot"
	}
	if len(smuggled(name)) > 0 {
		return "has characters that cannot be seen"
	}
	for _, r := range name {
		if strings.ContainsRune(`/\:,`, r) || !unicode.IsPrint(r) { // the only space that IsPrint takes is U+0020
			return "has characters that a name cannot have"
		}
	}
	return ""
}

// formFault says where a name departs from the standard. As in the reference
// validator, letters and digits of any script count, if they are not upper case.
func formFault(name string) string {
	if utf8.RuneCountInString(name) > maxName {
		return "is longer than 64 characters"
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		return "has a hyphen at an end, or two in a row"
	}
	for _, r := range name {
		if r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) || unicode.IsUpper(r) {
			return "has other characters than lower-case letters, digits and hyphens"
		}
	}
	return ""
}
