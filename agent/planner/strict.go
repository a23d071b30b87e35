package planner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// Bounds of JSON from a planner.
const (
	maxJSONBytes = 64 << 10
	maxJSONDepth = 16
)

// decodeStrict reads exactly one JSON value: valid UTF-8, no key twice in an
// object, bounded depth and size. Numbers stay json.Number.
func decodeStrict(raw []byte) (any, error) {
	if len(raw) > maxJSONBytes {
		return nil, fmt.Errorf("it has %d bytes where %d are allowed", len(raw), maxJSONBytes)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("it is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("it ends too early")
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

func decodeValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxJSONDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := decodeValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	case json.Delim('{'):
		m := map[string]any{}
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return nil, err
			}
			key, ok := k.(string)
			if !ok {
				return nil, errors.New("an object's key is not a string")
			}
			if _, twice := m[key]; twice {
				return nil, fmt.Errorf("the key %.40q is there twice", key)
			}
			if m[key], err = decodeValue(dec, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := dec.Token()
		return m, err
	}
	return t, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
