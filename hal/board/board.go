package board

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

const (
	maxFile  = 1 << 20 // bytes of a board file
	maxSlots = 512
	maxSlot  = 999 // largest slot number: three digits fit every label and page
	maxLabel = 32  // runes
	maxPorts = 6   // ports in a path: the root port and one for each of five hubs, USB's limit
)

// Board is a board file that has passed every check.
type Board struct {
	Name  string `toml:"name"`
	Slots []Slot `toml:"slot"` // ordered by number
}

// Slot is a physical place for one phone: one USB port.
type Slot struct {
	Number int    `toml:"number"` // 1 to 999, unique
	Path   string `toml:"path"`   // USB port path such as "1-1.2", unique
	Label  string `toml:"label"`  // what is written on the rack; "" for none
	Row    int    `toml:"row"`    // place in the rack, from 1; 0 when not given
	Column int    `toml:"column"` // place in the rack, from 1; 0 when not given
}

// String names the slot as people do.
func (s Slot) String() string {
	if s.Label == "" {
		return fmt.Sprintf("slot %d", s.Number)
	}
	return fmt.Sprintf("slot %d (%s)", s.Number, s.Label)
}

// SlotAt gives the slot whose port path is path.
func (b *Board) SlotAt(path string) (Slot, bool) {
	return b.find(func(s Slot) bool { return s.Path == path })
}

// Slot gives the slot with the number n.
func (b *Board) Slot(n int) (Slot, bool) {
	return b.find(func(s Slot) bool { return s.Number == n })
}

func (b *Board) find(is func(Slot) bool) (Slot, bool) {
	if i := slices.IndexFunc(b.Slots, is); i >= 0 {
		return b.Slots[i], true
	}
	return Slot{}, false
}

// Load reads and checks a board file. The error joins every fault found, each a Fault or a fault
// of reading the file.
func Load(path string) (*Board, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read board file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read board file: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("board file %s is larger than %d bytes: is it a board file?", path, maxFile)
	}
	return parse(path, data)
}

// Fault is one thing wrong in a board file.
type Fault struct {
	File         string
	Line, Column int    // from 1; 0 when the fault has no place in the file
	Text         string // what is wrong and what to do
}

// Error implements error.
func (f Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.File, f.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Text)
}

// parse checks the text of a board file; file names it in faults.
func parse(file string, data []byte) (*Board, error) {
	var b Board
	decoder := toml.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&b); err != nil {
		return nil, syntaxFaults(file, err)
	}
	c := checker{file: file, at: Positions(data)}
	c.board(&b)
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	slices.SortFunc(b.Slots, func(x, y Slot) int { return cmp.Compare(x.Number, y.Number) })
	return &b, nil
}

// syntaxFaults turns the decoder's errors into faults.
func syntaxFaults(file string, err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var faults []error
		for _, e := range strict.Errors {
			line, column := e.Position()
			faults = append(faults, Fault{file, line, column, fmt.Sprintf("unknown key %q: remove it or mend its spelling", strings.Join(e.Key(), "."))})
		}
		return errors.Join(faults...)
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := e.Position()
		return Fault{file, line, column, strings.TrimPrefix(e.Error(), "toml: ")}
	}
	return Fault{File: file, Text: strings.TrimPrefix(err.Error(), "toml: ")}
}

// port matches 1 to 255 without leading zeros.
const port = `(?:[1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])`

// validPath is a bus and one to maxPorts ports.
var validPath = regexp.MustCompile(fmt.Sprintf(`^%[1]s-%[1]s(\.%[1]s){0,%[2]d}$`, port, maxPorts-1))

// checker collects the faults of a board file.
type checker struct {
	file   string
	at     map[string]Position
	faults []error
}

func (c *checker) fault(key, format string, args ...any) {
	p := c.at[key]
	c.faults = append(c.faults, Fault{c.file, p.Line, p.Column, fmt.Sprintf(format, args...)})
}

// slotFault reports a fault at a slot's key, or at the slot's heading when the key is absent.
func (c *checker) slotFault(i int, key, format string, args ...any) {
	at := fmt.Sprintf("slot[%d].%s", i, key)
	if _, ok := c.at[at]; !ok {
		at = fmt.Sprintf("slot[%d]", i)
	}
	c.fault(at, format, args...)
}

func (c *checker) board(b *Board) {
	if b.Name == "" {
		c.fault("name", `the board has no name: add name = "..." at the top`)
	}
	c.text("name", b.Name, func(text string) { c.fault("name", "%s", text) })
	if len(b.Slots) == 0 {
		c.fault("slot", "the board has no slots: add a [[slot]] with number and path for each USB port that may hold a phone")
	}
	if len(b.Slots) > maxSlots {
		c.fault("slot", "the board has %d slots, more than %d", len(b.Slots), maxSlots)
		return
	}
	for i, s := range b.Slots {
		c.slot(i, s)
	}
	c.unique(b.Slots)
}

func (c *checker) slot(i int, s Slot) {
	if s.Number < 1 || s.Number > maxSlot {
		c.slotFault(i, "number", "slot number %d: give each slot a number from 1 to %d", s.Number, maxSlot)
	}
	if !validPath.MatchString(s.Path) {
		c.slotFault(i, "path", `port path %q of slot %d is not of the form "1-2.3" (bus, root port, then a port for each hub, at most %d)`, s.Path, s.Number, maxPorts-1)
	}
	c.text("label", s.Label, func(text string) { c.slotFault(i, "label", "slot %d: %s", s.Number, text) })
	if s.Row < 0 || s.Column < 0 || s.Row > maxSlot || s.Column > maxSlot {
		c.slotFault(i, "row", "slot %d: row and column count from 1 to %d", s.Number, maxSlot)
	}
}

// text checks a text that is shown to people.
func (c *checker) text(key, s string, fault func(text string)) {
	switch {
	case utf8.RuneCountInString(s) > maxLabel:
		fault(fmt.Sprintf("%s is longer than %d characters: shorten it", key, maxLabel))
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		fault(key + " holds characters that cannot be shown: remove them")
	}
}

// unique refuses two slots with one number or port, and a slot at a port where another slot's hub must be.
func (c *checker) unique(slots []Slot) {
	numbers, paths := map[int]int{}, map[string]int{}
	for i, s := range slots {
		if j, ok := numbers[s.Number]; ok {
			c.slotFault(i, "number", "slot number %d is used twice: the other is at port %s", s.Number, slots[j].Path)
		} else {
			numbers[s.Number] = i
		}
		if j, ok := paths[s.Path]; ok {
			c.slotFault(i, "path", "port %s is given to slot %d and to slot %d: a port is one slot", s.Path, slots[j].Number, s.Number)
		} else {
			paths[s.Path] = i
		}
	}
	for i, s := range slots {
		for hub := parent(s.Path); hub != ""; hub = parent(hub) {
			if j, ok := paths[hub]; ok {
				c.slotFault(i, "path", "port %s of slot %d lies behind port %s, which is slot %d: a port holds a hub or a phone, not both", s.Path, s.Number, hub, slots[j].Number)
			}
		}
	}
}

// parent gives the port of the hub that a port belongs to, "" for a root port.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i]
	}
	return ""
}
