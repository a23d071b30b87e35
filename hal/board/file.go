package board

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// file is a board file as it is written.
type file struct {
	Name        string       `toml:"name"`
	Model       string       `toml:"model"`
	Controllers []Controller `toml:"controller"`
	Uplink      *fileUplink  `toml:"uplink"`
	Power       *filePower   `toml:"power"`
	Hubs        []fileHub    `toml:"hub"`
	LEDs        []fileLED    `toml:"led"`
	Button      *Button      `toml:"button"`
	Slots       []fileSlot   `toml:"slot"`
}

type fileUplink struct {
	Path string `toml:"path"`
}

type filePower struct {
	Stagger    *duration `toml:"stagger"`
	Concurrent *int      `toml:"concurrent"`
}

type fileHub struct {
	Name      string `toml:"name"`
	Path      string `toml:"path"`
	Companion string `toml:"companion"`
	Ports     int    `toml:"ports"`
	Feed      Feed   `toml:"power"`
	Line
	Default string    `toml:"default"`
	OffTime *duration `toml:"off_time"`
	Settle  *duration `toml:"settle"`

	OverCurrent *Line `toml:"over_current"`
}

type fileLED struct {
	Name  string     `toml:"name"`
	Slot  *int       `toml:"slot"`
	Light *fileLight `toml:"light"`
	Green *fileLight `toml:"green"`
	Red   *fileLight `toml:"red"`
}

type colouredLight struct {
	colour Colour
	light  *fileLight
}

// lights are those that the LED has.
func (l fileLED) lights() (have []colouredLight) {
	for _, c := range []colouredLight{{Plain, l.Light}, {Green, l.Green}, {Red, l.Red}} {
		if c.light != nil {
			have = append(have, c)
		}
	}
	return have
}

type fileLight struct {
	Sysfs []string `toml:"sysfs"`
	Line
}

type fileSlot struct {
	Number int    `toml:"number"`
	Path   string `toml:"path"`
	Hub    string `toml:"hub"`
	Port   any    `toml:"port"` // people write 3 and "4.2"
	Label  string `toml:"label"`
	Row    int    `toml:"row"`
	Column int    `toml:"column"`
}

// duration is written like "5s" or "500ms".
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf(`%q is no duration: write it like "5s" or "500ms"`, text)
	}
	*d = duration(v)
	return nil
}

// decode reads the TOML of a board file.
func decode(name string, data []byte) (*file, error) {
	var f file
	decoder := toml.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return nil, syntaxFaults(name, err)
	}
	return &f, nil
}

// parse checks the text of a board file; name names it in faults.
func parse(name string, data []byte) (*Board, error) {
	b, slots, err := parseParts(name, data)
	if err == nil && slots == 0 {
		return nil, Fault{File: name, Text: "the board has no slots: add a [[slot]] with number and path for each USB port that may hold a phone, or let rackctl board learn add them"}
	}
	return b, err
}

// parseParts is parse of a board that need not have slots yet; slots says how many it has.
func parseParts(name string, data []byte) (b *Board, slots int, err error) {
	f, err := decode(name, data)
	if err != nil {
		return nil, 0, err
	}
	c := checker{file: name, at: Positions(data)}
	if f.Model != "" {
		c.inherit(f)
	}
	b = c.board(f)
	if len(c.faults) > 0 {
		if len(f.Slots) == 0 {
			c.fault("slot", "the board has no slots: add a [[slot]] with number and path for each USB port that may hold a phone")
		}
		return nil, 0, errors.Join(c.faults...)
	}
	slices.SortFunc(b.Slots, func(x, y Slot) int { return cmp.Compare(x.Number, y.Number) })
	return b, len(b.Slots), nil
}

// inherit takes from the model each kind of table that the file does not have itself.
func (c *checker) inherit(f *file) {
	data, ok := Model(f.Model)
	if !ok {
		c.fault("model", "no model is called %q: choose one of %s, or remove the key and describe the board yourself", f.Model, strings.Join(Models(), ", "))
		return
	}
	m, err := decode(f.Model, data)
	if err != nil {
		c.fault("model", "the model %s cannot be read: %v", f.Model, err)
		return
	}
	take(&f.Controllers, m.Controllers)
	take(&f.Hubs, m.Hubs)
	take(&f.LEDs, m.LEDs)
	take(&f.Slots, m.Slots)
	f.Uplink = cmp.Or(f.Uplink, m.Uplink)
	f.Power = cmp.Or(f.Power, m.Power)
	f.Button = cmp.Or(f.Button, m.Button)
	f.Name = cmp.Or(f.Name, m.Name)
}

func take[T any](own *[]T, model []T) {
	if len(*own) == 0 {
		*own = model
	}
}

// portText is a port as text; ok is false when it is neither a whole number nor text.
func portText(port any) (text string, ok bool) {
	switch p := port.(type) {
	case nil:
		return "", true
	case int64:
		return strconv.FormatInt(p, 10), true
	case string:
		return p, true
	}
	return "", false
}

// syntaxFaults turns the decoder's errors into faults.
func syntaxFaults(name string, err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var faults []error
		for _, e := range strict.Errors {
			line, column := e.Position()
			faults = append(faults, Fault{name, line, column, fmt.Sprintf("unknown key %.80q: remove it or mend its spelling", strings.Join(e.Key(), "."))})
		}
		return errors.Join(faults...)
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := e.Position()
		return Fault{name, line, column, valueFault(e)}
	}
	return Fault{File: name, Text: strings.TrimPrefix(err.Error(), "toml: ")}
}

// valueFault is the decoder's message with the key that it is about, and without the names of Go types.
func valueFault(e *toml.DecodeError) string {
	text := strings.TrimPrefix(e.Error(), "toml: ")
	key := strings.Join(e.Key(), ".")
	switch last := key[strings.LastIndexByte(key, '.')+1:]; last {
	case "":
		return text + ": mend the TOML here"
	case "number", "row", "column", "offset", "ports", "devices", "concurrent":
		return key + " has a wrong value: give it a whole number"
	case "active_low":
		return key + " has a wrong value: give it true or false"
	case "buses":
		return key + " has a wrong value: give it the numbers of the buses, such as [1, 2]"
	}
	if !strings.Contains(text, "Go type") && !strings.Contains(text, "struct field") {
		return key + ": " + text
	}
	return key + " has a wrong value: give it " + kindOf(e.Key())
}

// kindOf says what a key takes whose values are mostly texts.
func kindOf(key []string) string {
	switch key[0] {
	case "hub", "slot", "led", "controller":
		if len(key) == 1 {
			return "tables, each begun by [[" + key[0] + "]]"
		}
	case "uplink", "power", "button":
		if len(key) == 1 {
			return "a table, begun by [" + key[0] + "]"
		}
	}
	switch key[len(key)-1] {
	case "light", "green", "red":
		return `a table such as { sysfs = ["ACT"] } or { line = "GPIO27" }`
	case "slot":
		return "a whole number"
	case "sysfs":
		return `a list of names such as ["ACT"]`
	case "over_current":
		return `a table such as { line = "GPIO22" }`
	}
	return "a text between quotes"
}
