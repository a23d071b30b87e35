package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON on the wire.
const maxDepth = 32

// Unmarshal reads exactly one JSON value into v, as the wire has it: valid
// UTF-8 without half surrogates, no key twice in an object, keys of structs in
// the exact case, nesting of at most 32 levels, nothing after the value. Numbers
// that land in an interface stay [json.Number]; an integer is written without
// fraction and exponent. Keys that v does not know are ignored, so that a newer
// sender can be read. The caller bounds the size. After an error v may hold a part.
func Unmarshal(raw []byte, v any) error {
	if direct(raw, v) {
		return nil
	}
	return decode(raw, v)
}

// decode is Unmarshal by the decoder of encoding/json, for every type and with a reason for what is not taken.
func decode(raw []byte, v any) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not valid UTF-8")
	}
	if err := checkSurrogates(raw); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("it ends too early")
		}
		return err
	}
	end := dec.InputOffset()
	if len(bytes.TrimLeft(raw[end:], " \t\r\n")) > 0 {
		return errors.New("something follows the value")
	}
	w := walk{raw: raw[:end]}
	return w.value(reflect.TypeOf(v), 0)
}

// walk goes over a value that is well-formed, and holds it to what the decoder lets pass. Decoder.Token would do, at ten
// times the cost.
type walk struct {
	raw []byte
	at  int
}

// next gives the next byte that is no white space; 0 at the end.
func (w *walk) next() byte {
	for ; w.at < len(w.raw); w.at++ {
		switch c := w.raw[w.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// value passes one value that is decoded into t.
func (w *walk) value(t reflect.Type, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	switch w.next() {
	case '{':
		return w.object(shapeOf(t), depth)
	case '[':
		inner := shapeOf(t).elem
		for w.at++; w.next() != ']'; {
			if w.raw[w.at] == ',' {
				w.at++
				continue
			}
			if err := w.value(inner, depth+1); err != nil {
				return err
			}
		}
		w.at++
	case '"':
		w.text()
	default: // a number or a word
		if n := bytes.IndexAny(w.raw[w.at:], ",]} \t\r\n"); n >= 0 {
			w.at += n
		} else {
			w.at = len(w.raw)
		}
	}
	return nil
}

func (w *walk) object(s *shape, depth int) error {
	var seen keys
	for w.at++; w.next() != '}'; {
		if w.raw[w.at] == ',' {
			w.at++
			continue
		}
		key, err := w.key()
		if err != nil {
			return err
		}
		if !seen.add([]byte(key)) {
			return fmt.Errorf("the key %.40q is there twice", key)
		}
		inner, err := s.field(key)
		if err != nil {
			return err
		}
		w.next()
		w.at++ // the colon
		if err := w.value(inner, depth+1); err != nil {
			return err
		}
	}
	w.at++
	return nil
}

// key passes an object's key.
func (w *walk) key() (string, error) {
	quoted := w.text()
	plain := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(plain, '\\') < 0 {
		return string(plain), nil
	}
	var key string
	err := json.Unmarshal(quoted, &key)
	return key, err
}

// text passes a string and gives it with its quotes.
func (w *walk) text() []byte {
	start := w.at
	for w.at++; ; w.at++ {
		w.at += bytes.IndexByte(w.raw[w.at:], '"')
		n := w.at
		for w.raw[n-1] == '\\' {
			n--
		}
		if (w.at-n)%2 == 0 { // else the quote itself is escaped
			break
		}
	}
	w.at++
	return w.raw[start:w.at]
}

// shape is what a type tells of the JSON that is decoded into it.
type shape struct {
	elem   reflect.Type            // of a list or map
	fields map[string]reflect.Type // of a struct
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	unknown     = new(shape) // of what nobody knows, or what reads its JSON by itself
	shapes      sync.Map     // reflect.Type -> *shape
)

// shapeOf follows pointers.
func shapeOf(t reflect.Type) *shape {
	if t == nil {
		return unknown
	}
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := newShape(t)
	shapes.Store(t, s)
	return s
}

func newShape(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer && !t.Implements(unmarshaler) {
		t = t.Elem()
	}
	if t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return unknown
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return &shape{elem: t.Elem()}
	case reflect.Struct:
	default:
		return unknown
	}
	s := &shape{fields: map[string]reflect.Type{}}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if _, there := s.fields[name]; !there {
			s.fields[name] = f.Type
		}
	}
	return s
}

// field gives the type of what a key holds, nil if nobody knows. The decoder would take a key in another case for the
// field.
func (s *shape) field(key string) (reflect.Type, error) {
	if s.fields == nil {
		return s.elem, nil
	}
	if t, ok := s.fields[key]; ok {
		return t, nil
	}
	for name := range s.fields {
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
		next := bytes.IndexByte(raw[i:], '\\')
		if next < 0 {
			return nil
		}
		i += next + 1 // what is escaped
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

// hex4 reads a u and four hexadecimal digits at i.
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
