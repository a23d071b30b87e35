package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of a prompt.
const (
	maxPromptBytes = 1 << 20
	maxElements    = 4000
)

// prompt is what a rule sees: the lines that package planner describes.
type prompt struct {
	goal     string
	params   map[string]string
	step     int
	past     []call
	answers  []string // of people, the oldest first
	results  []string // of reading tools, the oldest first
	screen   screen
	elements []element
}

// screen is the screen line. Its zero value means that there was none.
type screen struct {
	there    bool
	gen      uint64
	app      string
	activity string
	keyboard string // "shown", "hidden" or "" if not known
	noTree   string // "unreadable", "drawn" or "" if there are elements
	dialog   string // its title
	inDialog bool   // a dialog is in front, whatever its title
	locked   bool
	secure   bool
}

// call is a past line.
type call struct {
	line    string // as it stands, for conditions on any part of it
	tool    string // "" if there was no decision
	args    string // JSON
	on      *element
	outcome string // done, refused, failed, unknown
	code    string // of a refusal
	effect  string // "no change" and so on
	text    string // verified, unverified, failed, or ""
}

// element is an element line.
type element struct {
	index                  int
	role, text, desc, hint string
	id                     string
	states                 []string
}

// parsePrompt reads the lines that rules can see. Other lines are passed over; a
// line that begins like one of them and is broken is an error.
func parsePrompt(s string) (prompt, error) {
	p := prompt{params: map[string]string{}}
	if len(s) > maxPromptBytes {
		return p, fmt.Errorf("the prompt has %d bytes where %d are allowed", len(s), maxPromptBytes)
	}
	n := 0
	for line := range strings.SplitSeq(s, "\n") {
		n++
		if err := p.line(strings.TrimSuffix(line, "\r")); err != nil {
			return p, fmt.Errorf("line %d of the prompt: %w", n, err)
		}
	}
	if !p.screen.there {
		return p, errors.New("the prompt shows no screen")
	}
	return p, nil
}

func (p *prompt) line(line string) error {
	word, _, _ := strings.Cut(line, " ")
	c := &cursor{rest: strings.TrimPrefix(line, word)}
	var err error
	switch {
	case word == "goal:":
		p.goal, err = c.spaced()
	case word == "param":
		name := c.word()
		var value string
		if value, err = c.spaced(); err == nil {
			p.params[strings.TrimSuffix(name, ":")] = value
		}
	case word == "step":
		p.step, err = strconv.Atoi(c.word())
	case word == "past":
		var past call
		if past, err = parseCall(line, c); err == nil {
			p.past = append(p.past, past)
		}
	case word == "answer":
		err = textLine(c, &p.answers)
	case word == "result":
		err = textLine(c, &p.results)
	case word == "screen":
		p.elements = nil
		p.screen, err = screenLine(c)
	case strings.HasPrefix(word, "[") && strings.HasSuffix(word, "]"):
		var e element
		if e.index, err = strconv.Atoi(word[1 : len(word)-1]); err != nil {
			return err
		}
		if len(p.elements) == maxElements {
			return fmt.Errorf("more than %d elements", maxElements)
		}
		if err = e.parse(c); err == nil {
			e.states = strings.Fields(c.rest)
			p.elements = append(p.elements, e)
		}
	}
	return err
}

// textLine reads `answer 3: "..."` and `result 3: "..."`.
func textLine(c *cursor, to *[]string) error {
	if n := c.word(); !strings.HasSuffix(n, ":") {
		return errors.New("an answer or result without a number")
	}
	text, err := c.spaced()
	if err == nil {
		*to = append(*to, text)
	}
	return err
}

// screenLine reads "screen 7: app A activity B size 1x2 keyboard hidden locked",
// of which everything but the number may be absent. Words that it does not know
// are passed over, with the string after them if there is one.
func screenLine(c *cursor) (screen, error) {
	gen, err := strconv.ParseUint(strings.TrimSuffix(c.word(), ":"), 10, 64)
	if err != nil {
		return screen{}, err
	}
	s := screen{there: true, gen: gen}
	for {
		key := c.word()
		value := ""
		switch key {
		case "":
			return s, nil
		case "app", "activity", "size", "keyboard", "picture", "no-tree", "dialog":
			value, err = c.value()
		default:
			if strings.HasPrefix(c.rest, ` "`) {
				_, err = c.spaced()
			}
		}
		if err != nil {
			return s, err
		}
		switch key {
		case "app":
			s.app = value
		case "activity":
			s.activity = value
		case "keyboard":
			s.keyboard = value
		case "no-tree":
			s.noTree = value
		case "dialog":
			s.dialog, s.inDialog = value, true
		case "locked":
			s.locked = true
		case "secure":
			s.secure = true
		}
	}
}

// parse reads the role and the strings of an element and leaves what follows.
func (e *element) parse(c *cursor) (err error) {
	if e.role = c.word(); e.role == "" {
		return errors.New("an element without a role")
	}
	if strings.HasPrefix(c.rest, ` "`) {
		if e.text, err = c.spaced(); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		key string
		to  *string
	}{{" desc=", &e.desc}, {" hint=", &e.hint}, {" id=", &e.id}} {
		if rest, ok := strings.CutPrefix(c.rest, part.key); ok {
			c.rest = rest
			if *part.to, err = c.quoted(); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseCall reads "past N: CALL -> OUTCOME; EFFECT".
func parseCall(line string, c *cursor) (call, error) {
	past := call{line: line}
	if n := c.word(); !strings.HasSuffix(n, ":") {
		return past, errors.New("a past line without a number")
	}
	if rest, ok := strings.CutPrefix(c.rest, " no decision"); ok {
		c.rest = rest
	} else {
		past.tool = c.word()
		var err error
		if past.args, err = c.object(); err != nil {
			return past, err
		}
		if rest, ok := strings.CutPrefix(c.rest, " on"); ok {
			c.rest, past.on = rest, &element{}
			if err := past.on.parse(c); err != nil {
				return past, err
			}
		}
	}
	rest, ok := strings.CutPrefix(c.rest, " -> ")
	if !ok {
		return past, errors.New("a past line without an outcome")
	}
	c.rest = " " + rest
	if past.outcome = strings.TrimSuffix(c.word(), ";"); past.outcome != "done" {
		past.code = c.word()
		if _, err := c.spaced(); err != nil {
			return past, err
		}
	}
	for part := range strings.SplitSeq(c.rest, ";") {
		part = strings.TrimSpace(part)
		if verdict, ok := strings.CutPrefix(part, "text "); ok {
			past.text = verdict
		} else if past.effect == "" {
			past.effect = part // what follows it, such as "still moving", is not asked for by rules
		}
	}
	return past, nil
}

// cursor reads a line from its front.
type cursor struct{ rest string }

// word takes one bare word with the spaces before it, "" at the end.
func (c *cursor) word() string {
	c.rest = strings.TrimLeft(c.rest, " ")
	w, _, _ := strings.Cut(c.rest, " ")
	c.rest = c.rest[len(w):]
	return w
}

// value takes a bare word or a JSON string.
func (c *cursor) value() (string, error) {
	if strings.HasPrefix(c.rest, ` "`) {
		return c.spaced()
	}
	return c.word(), nil
}

// spaced takes a space and a JSON string.
func (c *cursor) spaced() (string, error) {
	c.rest = strings.TrimPrefix(c.rest, " ")
	return c.quoted()
}

// quoted takes a JSON string.
func (c *cursor) quoted() (string, error) {
	if !strings.HasPrefix(c.rest, `"`) {
		return "", errors.New("a JSON string is missing")
	}
	for i := 1; i < len(c.rest); i++ {
		switch c.rest[i] {
		case '\\':
			i++
		case '"':
			var s string
			if err := json.Unmarshal([]byte(c.rest[:i+1]), &s); err != nil {
				return "", err
			}
			c.rest = c.rest[i+1:]
			return s, nil
		}
	}
	return "", errors.New("a JSON string does not end")
}

// object takes a space and a JSON value, as it stands.
func (c *cursor) object() (string, error) {
	c.rest = strings.TrimPrefix(c.rest, " ")
	dec := json.NewDecoder(strings.NewReader(c.rest))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return "", err
	}
	if !bytes.HasPrefix(raw, []byte("{")) {
		return "", errors.New("arguments are not an object")
	}
	c.rest = c.rest[dec.InputOffset():]
	return string(raw), nil
}
