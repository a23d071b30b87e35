package phone

import (
	"maps"
	"regexp"
	"slices"
	"time"
)

// Strategies are the ways that work on a phone, as a phone record keeps them.
// The zero value knows none. They spare [Attach] the time of trying; each is
// given up for another as soon as it fails.
type Strategies struct {
	Screenshot []string          `json:"screenshot,omitempty"` // ways to take one, the best first
	Header     int               `json:"header,omitempty"`     // bytes before the pixels of a raw screenshot, 12 or 16; 0 if not known
	Tree       string            `json:"tree,omitempty"`       // how the stock dumper gives its tree: TreeFile or TreeTerminal
	Parts      map[string]string `json:"parts,omitempty"`      // parts of State and other readings to the way that is understood
	Typing     string            `json:"typing,omitempty"`     // pace of typing: TypeWords, TypeCharacters or TypeHelper
	Clearing   string            `json:"clearing,omitempty"`   // how a field is emptied: ClearSelection or ClearCharacters
	Keyboard   string            `json:"keyboard,omitempty"`   // the phone's own input method, "package/class"
}

// Ways of the stock dumper.
const (
	TreeFile     = "file"     // it writes a file
	TreeTerminal = "terminal" // it prints the tree
)

// Paces of typing, the quickest first.
const (
	TypeWords      = "words"      // a command types some words
	TypeCharacters = "characters" // one after the other, with a pause
	TypeHelper     = "helper"     // the helper's input method types
)

// Ways to empty a field.
const (
	ClearSelection  = "selection"  // select all, delete
	ClearCharacters = "characters" // delete each character
)

// Bounds of Strategies that come from a record.
const (
	maxParts   = 32
	maxWayName = 40 // bytes
)

var (
	wayName  = regexp.MustCompile(`^[a-z][a-z0-9_+-]*$`)
	imeName  = regexp.MustCompile(`^[a-zA-Z]\w*(\.\w+)+/[\w.$]+$`)
	rawHeads = []int{0, shortHeader, longHeader}
)

// checked returns what of s can be meant. What is left out is chosen anew.
func (s Strategies) checked() Strategies {
	known := Strategies{Parts: map[string]string{}}
	for _, name := range s.Screenshot {
		if slices.ContainsFunc(methods(), func(m method) bool { return m.name == name }) && !slices.Contains(known.Screenshot, name) {
			known.Screenshot = append(known.Screenshot, name)
		}
	}
	if slices.Contains(rawHeads, s.Header) {
		known.Header = s.Header
	}
	for part, way := range s.Parts {
		if len(known.Parts) < maxParts && isWayName(part) && isWayName(way) {
			known.Parts[part] = way
		}
	}
	known.Tree = oneOf(s.Tree, TreeFile, TreeTerminal)
	known.Typing = oneOf(s.Typing, TypeWords, TypeCharacters, TypeHelper)
	known.Clearing = oneOf(s.Clearing, ClearSelection, ClearCharacters)
	if len(s.Keyboard) <= maxComponent && imeName.MatchString(s.Keyboard) {
		known.Keyboard = s.Keyboard
	}
	return known
}

func isWayName(s string) bool { return len(s) <= maxWayName && wayName.MatchString(s) }

func oneOf(s string, known ...string) string {
	if slices.Contains(known, s) {
		return s
	}
	return ""
}

// Strategies returns the ways that have worked so far.
func (p *Phone) Strategies() Strategies {
	var shots []string
	if p.screenshotWay() != "" {
		for _, m := range p.inTurn(time.Now()) {
			shots = append(shots, m.name)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.ways
	s.Parts, s.Screenshot = maps.Clone(s.Parts), shots
	return s
}

// wayLife is for how long a way goes first that is not the quickest: what a
// phone tells in an odd form may have been odd only for a moment.
const wayLife = 10 * time.Minute

// way returns the way that goes first for a part, "" if none has worked lately.
func (p *Phone) way(part string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.learnt[part]) >= wayLife {
		return ""
	}
	return p.ways.Parts[part]
}

// learn keeps the way that worked for a part.
func (p *Phone) learn(part, way string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ways.Parts[part] != way || time.Since(p.learnt[part]) >= wayLife {
		p.ways.Parts[part], p.learnt[part] = way, time.Now()
	}
}

// remember takes ways from a record.
func (p *Phone) remember(s Strategies) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ways, p.learnt = s.checked(), map[string]time.Time{}
	for part := range p.ways.Parts {
		p.learnt[part] = time.Now()
	}
}

// choose lets change see and change the ways.
func (p *Phone) choose(change func(*Strategies)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.ways)
}
