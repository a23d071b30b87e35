package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"phonerack/hal/board"
)

// syntaxFaults turns the decoder's errors into faults.
func syntaxFaults(file string, err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var faults []error
		for _, e := range strict.Errors {
			line, column := e.Position()
			faults = append(faults, board.Fault{
				File: file, Line: line, Column: column,
				Text: fmt.Sprintf("unknown key %q: remove it or correct its spelling", strings.Join(e.Key(), ".")),
			})
		}
		return errors.Join(faults...)
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := e.Position()
		return board.Fault{File: file, Line: line, Column: column, Text: valueFault(e)}
	}
	return board.Fault{File: file, Text: strings.TrimPrefix(err.Error(), "toml: ")}
}

// valueFault is the decoder's message with the key that it is about, and without the names of Go types.
func valueFault(e *toml.DecodeError) string {
	text := strings.TrimPrefix(e.Error(), "toml: ")
	key := strings.Join(e.Key(), ".")
	if key == "" {
		return text + ": correct the TOML here"
	}
	wanted, ok := kinds[key]
	if !ok {
		return fmt.Sprintf("%s: %s", key, text)
	}
	return fmt.Sprintf("%s has a wrong value: give it %s", key, wanted)
}

// kinds names what each key takes that is not any text.
var kinds = map[string]string{
	"usb.enabled":      "true or false",
	"stream.slot":      "a number from 1 to 999",
	"log.level":        `one of "debug", "info", "warn" and "error"`,
	"control.max_hold": `a duration such as "90s", "15m" or "1h30m"`,
}
