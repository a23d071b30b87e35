package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Schema is a JSON Schema of the subset that tools use: type (one of object,
// array, string, integer, number, boolean), properties, required, enum,
// minimum, maximum, minLength, maxLength, additionalProperties (a boolean) and
// items. description is allowed and ignored. Any other keyword is refused, so
// that nothing is believed to be checked that is not.
type Schema struct {
	Type                 string
	Properties           map[string]*Schema
	Required             []string
	Enum                 []any
	Minimum, Maximum     *big.Rat
	MinLength, MaxLength *int // in characters
	AdditionalProperties bool // true unless switched off, as in JSON Schema
	Items                *Schema
}

// SchemaError says where a value does not fit, as a path such as $.list[2].
type SchemaError struct{ Path, Reason string }

func (e *SchemaError) Error() string { return e.Path + " " + e.Reason }

func mismatch(path, format string, args ...any) error {
	return &SchemaError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// keywordTypes says to which types a keyword belongs; nil means to all.
var keywordTypes = map[string][]string{
	"type": nil, "description": nil, "enum": nil,
	"properties": {"object"}, "required": {"object"}, "additionalProperties": {"object"},
	"items":   {"array"},
	"minimum": {"integer", "number"}, "maximum": {"integer", "number"},
	"minLength": {"string"}, "maxLength": {"string"},
}

// ParseSchema reads the schema of a tool's arguments. Its root must be an object.
func ParseSchema(raw json.RawMessage) (*Schema, error) {
	v, err := decodeStrict(raw)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s, err := schemaOf("$", v)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("schema: $ has the type %s, but arguments are an object", s.Type)
	}
	return s, nil
}

func schemaOf(path string, v any) (*Schema, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, mismatch(path, "must be an object")
	}
	s := &Schema{AdditionalProperties: true}
	if s.Type, ok = m["type"].(string); !ok {
		return nil, mismatch(path, "needs a type, given as one string")
	}
	if !slices.Contains([]string{"object", "array", "string", "integer", "number", "boolean"}, s.Type) {
		return nil, mismatch(path, "has the unknown type %q", s.Type)
	}
	for _, key := range sortedKeys(m) {
		types, known := keywordTypes[key]
		if !known {
			return nil, mismatch(path, "uses the keyword %q, which is not supported", key)
		}
		if types != nil && !slices.Contains(types, s.Type) {
			return nil, mismatch(path, "uses %q, which does not belong to the type %s", key, s.Type)
		}
		if err := s.keyword(path, key, m[key]); err != nil {
			return nil, err
		}
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			return nil, mismatch(path, "requires %q but does not describe it", name)
		}
	}
	return s, nil
}

func (s *Schema) keyword(path, key string, v any) (err error) {
	ok := true
	switch key {
	case "description":
		_, ok = v.(string)
	case "properties":
		var props map[string]any
		if props, ok = v.(map[string]any); !ok {
			break
		}
		s.Properties = make(map[string]*Schema, len(props))
		for _, name := range sortedKeys(props) {
			if s.Properties[name], err = schemaOf(path+"."+name, props[name]); err != nil {
				return err
			}
		}
	case "items":
		s.Items, err = schemaOf(path+"[]", v)
		return err
	case "required":
		var list []any
		list, ok = v.([]any)
		for _, e := range list {
			name, isString := e.(string)
			ok = ok && isString
			s.Required = append(s.Required, name)
		}
	case "enum":
		s.Enum, ok = v.([]any)
		ok = ok && len(s.Enum) > 0
		for _, e := range s.Enum {
			if typeError(path, s.Type, e) != nil {
				return mismatch(path, "has an enum value that is not of the type %s", s.Type)
			}
		}
	case "additionalProperties":
		s.AdditionalProperties, ok = v.(bool)
	case "minimum":
		s.Minimum, ok = ratOf(v)
	case "maximum":
		s.Maximum, ok = ratOf(v)
	case "minLength":
		s.MinLength, ok = lengthOf(v)
	case "maxLength":
		s.MaxLength, ok = lengthOf(v)
	}
	if !ok {
		return mismatch(path, "has a wrong value for %q", key)
	}
	return nil
}

// Check reads raw as one JSON value and holds it to the schema. The error is a
// *SchemaError, or says why raw is not JSON.
func (s *Schema) Check(raw json.RawMessage) error {
	v, err := decodeStrict(raw)
	if err != nil {
		return mismatch("$", "must be a JSON object, but %v", err)
	}
	return s.check("$", v)
}

func (s *Schema) check(path string, v any) error {
	if err := typeError(path, s.Type, v); err != nil {
		return err
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return mismatch(path, "must be one of %s", showEnum(s.Enum))
	}
	switch v := v.(type) {
	case string:
		n := utf8.RuneCountInString(v)
		if s.MinLength != nil && n < *s.MinLength {
			return mismatch(path, "must have at least %d characters", *s.MinLength)
		}
		if s.MaxLength != nil && n > *s.MaxLength {
			return mismatch(path, "must have at most %d characters", *s.MaxLength)
		}
	case json.Number:
		n, ok := ratOf(v)
		if !ok {
			return mismatch(path, "is a number out of range")
		}
		if s.Minimum != nil && n.Cmp(s.Minimum) < 0 {
			return mismatch(path, "must be at least %s", s.Minimum.RatString())
		}
		if s.Maximum != nil && n.Cmp(s.Maximum) > 0 {
			return mismatch(path, "must be at most %s", s.Maximum.RatString())
		}
	case []any:
		for i, e := range v {
			if s.Items == nil {
				break
			}
			if err := s.Items.check(fmt.Sprintf("%s[%d]", path, i), e); err != nil {
				return err
			}
		}
	case map[string]any:
		return s.checkObject(path, v)
	}
	return nil
}

func (s *Schema) checkObject(path string, m map[string]any) error {
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			return mismatch(path+"."+name, "is missing")
		}
	}
	for _, name := range sortedKeys(m) {
		p, ok := s.Properties[name]
		switch {
		case ok:
			if err := p.check(path+"."+name, m[name]); err != nil {
				return err
			}
		case !s.AdditionalProperties:
			return mismatch(path+"."+name, "is not an argument of this tool")
		}
	}
	return nil
}

// typeError tells why v is not of the type. An integer is written without
// fraction and exponent, so that it can be read into an int as it stands.
func typeError(path, typ string, v any) error {
	ok := false
	switch typ {
	case "object":
		_, ok = v.(map[string]any)
	case "array":
		_, ok = v.([]any)
	case "string":
		_, ok = v.(string)
	case "boolean":
		_, ok = v.(bool)
	case "number":
		_, ok = v.(json.Number)
	case "integer":
		var n json.Number
		if n, ok = v.(json.Number); ok {
			_, err := n.Int64()
			ok = err == nil
		}
	}
	if !ok {
		article := "a"
		if strings.ContainsAny(typ[:1], "aeiou") {
			article = "an"
		}
		return mismatch(path, "must be %s %s", article, typ)
	}
	return nil
}

// ratOf refuses numbers with a long exponent, which would cost memory to expand.
func ratOf(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 40 {
		return nil, false
	}
	if f, err := n.Float64(); err != nil || f > 1e30 || f < -1e30 || (f != 0 && f > -1e-30 && f < 1e-30) {
		return nil, false
	}
	if _, exp, ok := strings.Cut(strings.ToLower(n.String()), "e"); ok && len(exp) > 4 {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}

func lengthOf(v any) (*int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	i, err := n.Int64()
	if err != nil || i < 0 || i > 1<<30 {
		return nil, false
	}
	return new(int(i)), true
}

func showEnum(values []any) string {
	var b bytes.Buffer
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		j, err := json.Marshal(v)
		if err != nil {
			j = []byte("?")
		}
		b.Write(j)
	}
	return b.String()
}
