package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"phonerack/sync/wire"
)

// exact is what Unmarshal holds a value to that no type describes, by the decoder's own tokens.
func exact(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value func(depth int) error
	value = func(depth int) error {
		if depth > 32 {
			return errors.New("too deep")
		}
		token, err := dec.Token()
		if err != nil {
			return err
		}
		if token != json.Delim('{') && token != json.Delim('[') {
			return nil
		}
		seen := map[string]bool{}
		for dec.More() {
			if token == json.Delim('{') {
				key, err := dec.Token()
				if err != nil {
					return err
				}
				if seen[key.(string)] {
					return errors.New("twice")
				}
				seen[key.(string)] = true
			}
			if err := value(depth + 1); err != nil {
				return err
			}
		}
		_, err = dec.Token()
		return err
	}
	if err := value(0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more")
	}
	return nil
}

// strange are texts at the edges of what is taken.
func strange() []string {
	list := []string{
		``, ` `, `1`, ` 1 `, `1 2`, `"a"`, `"\""`, `"\\"`, `"\\\""`, `{}`, `[]`, `{"a":{"a":1}}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a\"":1,"a\\\"":2}`,
		`[{"a":1},{"a":1}]`, `[1,"]",{"}":"{"}]`, `{"a" : [ 1 , 2 ] , "b" : null }`, `{"a":true}x`, `{"":1,"":2}`, `[1,]`, `{"a":-1.5e3,"b":false}`,
		strings.Repeat("[", 33) + strings.Repeat("]", 33), strings.Repeat("[", 34) + strings.Repeat("]", 34),
	}
	var many strings.Builder
	for i := range 40 {
		fmt.Fprintf(&many, `"k%d":%d,`, i, i)
	}
	return append(list, "{"+many.String()+`"last":0}`, "{"+many.String()+`"k3":0}`, "{"+many.String()+`"k39":0}`)
}

func TestWhatIsTakenIsWhatTheTokensSay(t *testing.T) {
	for _, s := range strange() {
		var v any
		if got, want := wire.Unmarshal([]byte(s), &v), exact([]byte(s)); (got == nil) != (want == nil) {
			t.Errorf("%.60s: %v, by its tokens %v", s, got, want)
		}
	}
}

func FuzzUnmarshalByTokens(f *testing.F) {
	for _, s := range strange() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v any
		err := wire.Unmarshal(raw, &v)
		if err != nil && (strings.Contains(err.Error(), "UTF-8") || strings.Contains(err.Error(), "surrogate")) {
			return // the decoder's tokens have them mended
		}
		if want := exact(raw); (err == nil) != (want == nil) {
			t.Errorf("%v, by its tokens %v", err, want)
		}
	})
}
