package config

import (
	"errors"
	"fmt"
	"reflect"
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
				Text: fmt.Sprintf("unknown key %.80q: remove it or correct its spelling", strings.Join(e.Key(), ".")),
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
		wanted, ok = kindOf(reflect.TypeFor[Config](), e.Key())
	}
	if !ok {
		return fmt.Sprintf("%s: %s", key, text)
	}
	return fmt.Sprintf("%s has a wrong value: give it %s", key, wanted)
}

// kinds names what keys take that is narrower than their type.
var kinds = map[string]string{
	"stream.slot": "a number from 1 to 999",
	"log.level":   `one of "debug", "info", "warn" and "error"`,
}

// kindOf says what a key below a table takes, by the type of its field; false if there is none.
func kindOf(t reflect.Type, key []string) (string, bool) {
	for t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct { // an array of tables
		t = t.Elem()
	}
	if len(key) > 0 && t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ","); name == key[0] {
				return kindOf(t.Field(i).Type, key[1:])
			}
		}
		return "", false
	}
	switch {
	case t == reflect.TypeFor[Duration]():
		return `a duration such as "90s", "15m" or "1h30m"`, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return `a list of texts such as ["one", "two"]`, true
	case t.Kind() == reflect.Map || t.Kind() == reflect.Struct || t.Kind() == reflect.Slice:
		return "a table", true
	case t.Kind() == reflect.Bool:
		return "true or false", true
	case t.Kind() == reflect.Float64:
		return "a number", true
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64, t.Kind() == reflect.Uint16:
		return "a whole number", true
	case t.Kind() == reflect.String:
		return "a text between quotes", true
	}
	return "", false
}
