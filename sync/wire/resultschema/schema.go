package resultschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"phonerack/sync/wire"
)

// Bounds of a schema, in bytes.
const (
	MaxSize = 16 << 10 // of its JSON as it travels, without spaces
	MaxFile = 64 << 10 // of a text that holds it
)

const (
	draft     = "https://json-schema.org/draft/2020-12/schema"
	maxReason = 300 // bytes of an [Error]
	maxPath   = 200
)

// Schema is that of a result.
type Schema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
}

// Error says where a result does not fit, as a path such as $.result.items[].price.
type Error struct{ Path, Reason string }

func (e *Error) Error() string { return e.Path + " " + e.Reason }

// holds says what a keyword's value is made of.
type holds int

const (
	plain holds = iota // no schema
	one                // a schema
	list               // of schemas
	named              // schemas by name
)

var keywords = map[string]holds{
	"$schema": plain, "$comment": plain, "title": plain, "description": plain, "default": plain, "examples": plain,
	"type": plain, "enum": plain, "const": plain,
	"multipleOf": plain, "minimum": plain, "maximum": plain, "exclusiveMinimum": plain, "exclusiveMaximum": plain,
	"minLength": plain, "maxLength": plain, "pattern": plain,
	"minItems": plain, "maxItems": plain, "uniqueItems": plain, "minContains": plain, "maxContains": plain,
	"minProperties": plain, "maxProperties": plain, "required": plain, "dependentRequired": plain,
	"items": one, "contains": one, "additionalProperties": one, "propertyNames": one, "not": one, "if": one, "then": one, "else": one,
	"prefixItems": list, "allOf": list, "anyOf": list, "oneOf": list,
	"properties": named, "patternProperties": named, "dependentSchemas": named,
}

// Parse reads a schema. None, which is nothing or null, is nil without an error.
func Parse(raw json.RawMessage) (*Schema, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	tooLarge := fmt.Errorf("the result's schema is larger than %d bytes", MaxSize)
	if len(raw) > MaxFile {
		return nil, tooLarge
	}
	var v map[string]any
	if err := wire.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("the result's schema cannot be read: %w", err)
	}
	if v["type"] != "object" {
		return nil, errors.New(`the result's schema must have "type":"object": a result is an object`)
	}
	if err := known("$", v); err != nil {
		return nil, fmt.Errorf("the result's schema: %w", err)
	}
	compact, err := json.Marshal(raw) // as it travels
	if err != nil {
		return nil, fmt.Errorf("the result's schema cannot be read: %w", err)
	}
	if len(compact) > MaxSize {
		return nil, tooLarge
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("the result's schema cannot be read: %s", oneLine(err.Error(), maxReason))
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the result's schema is wrong: %s", oneLine(err.Error(), maxReason))
	}
	return &Schema{raw: compact, resolved: resolved}, nil
}

// known refuses keywords that are not checked.
func known(path string, v any) error {
	if _, ok := v.(bool); ok {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s must be a schema", oneLine(path, maxPath))
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		kind, ok := keywords[key]
		switch {
		case strings.HasPrefix(key, "$") && strings.HasSuffix(strings.ToLower(key), "ref"):
			return fmt.Errorf("%s has a %.20s: write out what it refers to", oneLine(path, maxPath), key)
		case !ok:
			return fmt.Errorf("%s uses the keyword %.40q, which is not checked here", oneLine(path, maxPath), key)
		case key == "$schema" && m[key] != draft:
			return fmt.Errorf("%s may have no other $schema than %s", oneLine(path, maxPath), draft)
		}
		if err := below(path+"."+key, kind, m[key]); err != nil {
			return err
		}
	}
	return nil
}

func below(path string, kind holds, v any) error {
	switch kind {
	case one:
		return known(path, v)
	case list:
		all, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s must be a list of schemas", oneLine(path, maxPath))
		}
		for i, s := range all {
			if err := known(path+"["+strconv.Itoa(i)+"]", s); err != nil {
				return err
			}
		}
	case named:
		all, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s must have schemas by name", oneLine(path, maxPath))
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if err := known(path+"."+name, all[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// String is the schema as JSON without spaces; "" of none.
func (s *Schema) String() string {
	if s == nil {
		return ""
	}
	return string(s.raw)
}

// Check holds a result to the schema; anything fits none. What does not fit is an
// *[Error].
func (s *Schema) Check(result json.RawMessage) error {
	if s == nil {
		return nil
	}
	if len(bytes.TrimSpace(result)) == 0 {
		return &Error{Path: "$.result", Reason: "must be there, and match the schema of the result"}
	}
	var v any
	if err := wire.Unmarshal(result, new(any)); err != nil {
		return &Error{Path: "$.result", Reason: oneLine("cannot be read: "+err.Error(), maxReason)}
	}
	if err := json.Unmarshal(result, &v); err != nil { // numbers as the checker knows them
		return &Error{Path: "$.result", Reason: oneLine("cannot be read: "+err.Error(), maxReason)}
	}
	if err := s.resolved.Validate(v); err != nil {
		return mismatch(err.Error())
	}
	return nil
}

// mismatch makes an [Error] of what the checker says: "validating root: validating
// /properties/n: type: ...".
func mismatch(said string) *Error {
	const word = "validating "
	where := "root"
	for strings.HasPrefix(said, word) {
		pointer, rest, ok := strings.Cut(said[len(word):], ": ")
		if !ok {
			break
		}
		where, said = pointer, rest
	}
	return &Error{Path: oneLine("$.result"+instance(where), maxPath), Reason: oneLine("does not match the schema of the result: "+said, maxReason)}
}

// instance tells what part of a value the schema at a JSON pointer is about.
func instance(pointer string) string {
	var b strings.Builder
	for tokens := strings.Split(pointer, "/")[1:]; len(tokens) > 0; {
		next := ""
		if len(tokens) > 1 {
			next = strings.NewReplacer("~1", "/", "~0", "~").Replace(tokens[1])
		}
		n := 1
		switch key := tokens[0]; key {
		case "properties":
			b.WriteString("." + next)
			n = 2
		case "patternProperties":
			b.WriteString(".*")
			n = 2
		case "additionalProperties":
			b.WriteString(".*")
		case "items", "contains":
			b.WriteString("[]")
		case "prefixItems":
			b.WriteString("[" + next + "]")
			n = 2
		case "allOf", "anyOf", "oneOf", "dependentSchemas":
			n = 2
		}
		tokens = tokens[min(n, len(tokens)):]
	}
	return b.String()
}

// oneLine makes a text of at most n bytes, on one line, of s.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
