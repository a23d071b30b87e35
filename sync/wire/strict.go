package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON on the wire.
const maxDepth = 32

// Unmarshal reads exactly one JSON value into v, as the wire has it: valid
// UTF-8 without half surrogates, no key twice in an object, keys of structs in
// the exact case, nesting of at most 32 levels, nothing after the value. Numbers
// that land in an interface stay [json.Number]; an integer is written without
// fraction and exponent. Keys that v does not know are ignored, so that a newer
// sender can be read. The caller bounds the size.
func Unmarshal(raw []byte, v any) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not valid UTF-8")
	}
	if err := checkSurrogates(raw); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := checkValue(dec, reflect.TypeOf(v), 0); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("it ends too early")
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	dec = json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(v)
}

// checkValue walks over one value that will be decoded into t.
func checkValue(dec *json.Decoder, t reflect.Type, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	token, err := dec.Token()
	if err != nil {
		return err
	}
	t = shapeOf(t)
	switch token {
	case json.Delim('['):
		var inner reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			inner = t.Elem()
		}
		for dec.More() {
			if err := checkValue(dec, inner, depth+1); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		seen := map[string]bool{}
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return err
			}
			key, ok := k.(string)
			if !ok {
				return errors.New("an object's key is not a string")
			}
			if seen[key] {
				return fmt.Errorf("the key %.40q is there twice", key)
			}
			seen[key] = true
			inner, err := fieldOf(t, key)
			if err != nil {
				return err
			}
			if err := checkValue(dec, inner, depth+1); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = dec.Token()
	return err
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// shapeOf follows pointers, and gives nil for what reads its JSON by itself.
func shapeOf(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		if t.Implements(unmarshaler) {
			return nil
		}
		t = t.Elem()
	}
	if t == nil || t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return nil
	}
	return t
}

// fieldOf gives the type of what a key holds, nil if nobody knows. The decoder
// would take a key in another case for the field.
func fieldOf(t reflect.Type, key string) (reflect.Type, error) {
	switch {
	case t == nil:
		return nil, nil
	case t.Kind() == reflect.Map:
		return t.Elem(), nil
	case t.Kind() != reflect.Struct:
		return nil, nil
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if name == key {
			return f.Type, nil
		}
		if strings.EqualFold(name, key) {
			return nil, fmt.Errorf("the key %.40q is written %q", key, name)
		}
	}
	return nil, nil
}

// checkSurrogates refuses \ud800 and the like without its other half, which the
// decoder would turn into another character.
func checkSurrogates(raw []byte) error {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // what is escaped
		high, ok := hex4(raw, i)
		if !ok || high < 0xd800 || high > 0xdfff {
			continue
		}
		low, ok := uint16(0), false
		if i+5 < len(raw) && raw[i+5] == '\\' {
			low, ok = hex4(raw, i+6)
		}
		if high > 0xdbff || !ok || low < 0xdc00 || low > 0xdfff {
			return errors.New("it has half of a surrogate pair")
		}
		i += 10
	}
	return nil
}

// hex4 reads the uXXXX at i.
func hex4(raw []byte, i int) (n uint16, ok bool) {
	if i+4 >= len(raw) || raw[i] != 'u' {
		return 0, false
	}
	for _, c := range raw[i+1 : i+5] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint16(c)
	}
	return n, true
}
