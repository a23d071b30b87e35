package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// direct reads JSON into a value of a plain type in one pass, by the rules of [Unmarshal]. It takes less than Unmarshal
// does and says no reason: what it does not take, the decoder reads again and judges. Frames are of plain types but for few,
// and reading one by the decoder, which goes over each byte several times, was a fifth of what a planner request cost.
func direct(raw []byte, v any) bool {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return false
	}
	r := readerOf(to.Type().Elem())
	if r == nil {
		return false
	}
	p := scanner{raw: raw}
	return r(&p, to.Elem(), 0) && p.next() == 0 && p.at == len(raw)
}

// reader reads the next value into v. false: the decoder has to look at it.
type reader func(p *scanner, v reflect.Value, depth int) bool

var (
	readers    sync.Map // reflect.Type -> reader, nil for a type that is not plain
	rawMessage = reflect.TypeFor[json.RawMessage]()
	texter     = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
)

// readerOf gives nil for a type that is not plain. Plain types are texts, whole numbers, bools, JSON as it is, lists and
// structs of them, and bytes as base64.
func readerOf(t reflect.Type) reader {
	if r, ok := readers.Load(t); ok {
		return r.(reader)
	}
	r := newReader(t, nil)
	readers.Store(t, r)
	return r
}

// newReader makes the reader of a type within others; one within itself is not plain, so that plain types end before maxDepth.
func newReader(t reflect.Type, within []reflect.Type) reader {
	if slices.Contains(within, t) {
		return nil
	}
	within = append(within, t)
	if t == rawMessage {
		return readRaw
	}
	if t == reflect.TypeFor[[]byte]() {
		return readBytes
	}
	if t == reflect.TypeFor[json.Number]() {
		return nil
	}
	if p := reflect.PointerTo(t); p.Implements(unmarshaler) || p.Implements(texter) {
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		return readText
	case reflect.Bool:
		return readBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return readInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return readUint
	case reflect.Slice:
		return listReader(t, within)
	case reflect.Struct:
		return structReader(t, within)
	}
	return nil
}

func readText(p *scanner, v reflect.Value, _ int) bool {
	s, ok := p.text()
	if ok {
		v.SetString(string(s))
	}
	return ok
}

func readBool(p *scanner, v reflect.Value, _ int) bool {
	yes := p.word("true")
	if !yes && !p.word("false") {
		return false
	}
	v.SetBool(yes)
	return true
}

func readInt(p *scanner, v reflect.Value, _ int) bool {
	n, err := strconv.ParseInt(string(p.number()), 10, 64)
	if err != nil || v.OverflowInt(n) {
		return false
	}
	v.SetInt(n)
	return true
}

func readUint(p *scanner, v reflect.Value, _ int) bool {
	n, err := strconv.ParseUint(string(p.number()), 10, 64)
	if err != nil || v.OverflowUint(n) {
		return false
	}
	v.SetUint(n)
	return true
}

func readRaw(p *scanner, v reflect.Value, depth int) bool {
	p.next()
	start := p.at
	if !p.skip(depth) {
		return false
	}
	v.SetBytes(bytes.Clone(p.raw[start:p.at]))
	return true
}

func readBytes(p *scanner, v reflect.Value, _ int) bool {
	s, ok := p.text()
	if !ok || bytes.ContainsAny(s, "\r\n") {
		return false
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Decode(b, s)
	if err != nil {
		return false
	}
	v.SetBytes(b[:n])
	return true
}

func listReader(t reflect.Type, within []reflect.Type) reader {
	elem := newReader(t.Elem(), within)
	if elem == nil || t.Elem().Kind() == reflect.Uint8 {
		return nil
	}
	return func(p *scanner, v reflect.Value, depth int) bool {
		if !v.IsNil() || !p.byte('[') {
			return false
		}
		v.Set(reflect.MakeSlice(t, 0, 0))
		for n := 0; !p.byte(']'); n++ {
			if n > 0 && !p.byte(',') {
				return false
			}
			v.Grow(1)
			v.SetLen(n + 1)
			if !elem(p, v.Index(n), depth+1) {
				return false
			}
		}
		return true
	}
}

func structReader(t reflect.Type, within []reflect.Type) reader {
	s := shapeOf(t)
	type field struct {
		index []int
		read  reader
	}
	fields := map[string]field{}
	for _, f := range reflect.VisibleFields(t) {
		name, how, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && f.Type.Kind() == reflect.Struct && name == "" {
			continue
		}
		if name == "-" || !f.IsExported() {
			if f.Anonymous {
				return nil
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		r := newReader(f.Type, within)
		_, twice := fields[name]
		if r == nil || twice || f.Anonymous || strings.Contains(how, "string") {
			return nil
		}
		fields[name] = field{f.Index, r}
	}
	return func(p *scanner, v reflect.Value, depth int) bool {
		return p.object(func(key []byte) bool {
			if f, ok := fields[string(key)]; ok {
				return f.read(p, v.FieldByIndex(f.index), depth+1)
			}
			_, err := s.field(string(key)) // one in another case is refused
			return err == nil && p.skip(depth+1)
		})
	}
}
