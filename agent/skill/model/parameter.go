package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Accepts tells why a value is not for the parameter, nil if it is. An integer
// is written without fraction and exponent, "true" is no boolean, null is not a
// value; texts of an enum are compared byte for byte, numbers by their value.
func (p Parameter) Accepts(raw json.RawMessage) error {
	n, err := parseJSON(raw)
	if err != nil {
		return err
	}
	if !p.Type.has(n) {
		if p.Type == Integer && n.shape == numberShape {
			return fmt.Errorf("must be a whole number without fraction and exponent, and is %.40s", n.text)
		}
		return fmt.Errorf("must be %s, and is %s", p.Type.phrase(), n.shape)
	}
	if n.shape == textShape {
		if bad, ok := control(n.text, true); ok {
			return fmt.Errorf("has the control character %U", bad)
		}
	}
	if len(raw) > MaxArgsBytes {
		return fmt.Errorf("has %d bytes, at most %d are accepted", len(raw), MaxArgsBytes)
	}
	if len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(e json.RawMessage) bool { return sameScalar(e, raw) }) {
		var choice []string
		for _, e := range p.Enum {
			choice = append(choice, string(e))
		}
		return errors.New("must be one of " + strings.Join(choice, ", "))
	}
	return nil
}

func (t ParameterType) has(n *node) bool {
	switch t {
	case String:
		return n.shape == textShape
	case Integer:
		return n.shape == numberShape && !strings.ContainsAny(n.text, ".eE")
	case Number:
		return n.shape == numberShape
	case Boolean:
		return n.shape == boolShape
	case Array:
		return n.shape == listShape
	case Object:
		return n.shape == objectShape
	}
	return false
}

func (t ParameterType) phrase() string {
	switch t {
	case String:
		return textShape.String()
	case Integer:
		return "a whole number"
	case Number:
		return numberShape.String()
	case Boolean:
		return boolShape.String()
	case Array:
		return listShape.String()
	}
	return objectShape.String()
}

// sameScalar compares two scalars: numbers by value, the rest by its JSON.
func sameScalar(a, b json.RawMessage) bool {
	if string(a) == string(b) {
		return true
	}
	if !jsonNumber(string(a)) || !jsonNumber(string(b)) {
		return false
	}
	// Both are bounded in length and size, see checkNumber.
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	return okX && okY && x.Cmp(y) == 0
}
