package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Bounds of a refusal that comes from outside.
const (
	maxCodeBytes = 64
	maxArgs      = 32
)

// Refusal is a no with its reason. As JSON it is exactly
//
//	{"code":"slot_busy","args":{"slot":7},"retryable":true,"retry_after_ms":0}
//
// A *Refusal is an error; errors.AsType[*wire.Refusal] finds it under wrapping.
type Refusal struct {
	Code         Code
	Args         map[string]any // numbers, strings, booleans, lists of them; documented in catalogue/args.toml
	Retryable    bool           // the same request may succeed later
	RetryAfterMS int64          // earliest useful retry in milliseconds, 0 if not known

	cause error // for logs and errors.Is on this side only, never serialised
}

// Refuse returns a refusal with the retryability that is usual for the code.
func Refuse(code Code, args map[string]any) *Refusal {
	return &Refusal{Code: code, Args: args, Retryable: passing[code]}
}

// Because returns a copy that unwraps to cause.
func (r *Refusal) Because(cause error) *Refusal {
	c := *r
	c.cause = cause
	return &c
}

// With returns a copy that has the arguments too, where it has none of that name.
func (r *Refusal) With(args map[string]any) *Refusal {
	c := *r
	c.Args = maps.Clone(args)
	maps.Copy(c.Args, r.Args)
	return &c
}

// After returns a retryable copy whose earliest useful retry is d from now.
func (r *Refusal) After(d time.Duration) *Refusal {
	c := *r
	c.Retryable, c.RetryAfterMS = true, max(0, d.Milliseconds())
	return &c
}

// RetryAfter is RetryAfterMS as a duration.
func (r *Refusal) RetryAfter() time.Duration {
	return time.Duration(r.RetryAfterMS) * time.Millisecond
}

// Error returns the English sentence.
func (r *Refusal) Error() string { return r.Sentence("en") }

// Unwrap returns the cause given to Because, or nil.
func (r *Refusal) Unwrap() error { return r.cause }

// Is makes [Is] see every refusal of a chain or a join.
func (r *Refusal) Is(target error) bool {
	m, ok := target.(codeMatcher)
	return ok && r.Code == Code(m)
}

// codeMatcher is the target that Is hands to errors.Is.
type codeMatcher Code

func (m codeMatcher) Error() string { return string(m) }

// Is reports whether err is or wraps a refusal with the code.
func Is(err error, code Code) bool { return errors.Is(err, codeMatcher(code)) }

// From returns the outermost refusal in err, or an Internal one that unwraps to
// err; nil for nil.
func From(err error) *Refusal {
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return Refuse(Internal, nil).Because(err)
}

// refusalJSON is the form on the wire.
type refusalJSON struct {
	Code         Code           `json:"code"`
	Args         map[string]any `json:"args"`
	Retryable    bool           `json:"retryable"`
	RetryAfterMS int64          `json:"retry_after_ms"`
}

// MarshalJSON implements json.Marshaler.
func (r Refusal) MarshalJSON() ([]byte, error) {
	args := r.Args
	if args == nil {
		args = map[string]any{}
	}
	return Marshal(refusalJSON{r.Code, args, r.Retryable, r.RetryAfterMS})
}

// UnmarshalJSON implements json.Unmarshaler. Whole numbers among the arguments
// become int64, others float64.
func (r *Refusal) UnmarshalJSON(b []byte) error {
	var w refusalJSON
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&w); err != nil {
		return err
	}
	if !validCode(w.Code) {
		return fmt.Errorf("refusal: code %.80q is not of the form a_b_c", string(w.Code))
	}
	if len(w.Args) > maxArgs {
		return fmt.Errorf("refusal %s: %d arguments, at most %d are accepted", w.Code, len(w.Args), maxArgs)
	}
	for name, v := range w.Args {
		w.Args[name] = plainNumbers(v)
	}
	*r = Refusal{Code: w.Code, Args: w.Args, Retryable: w.Retryable, RetryAfterMS: max(0, w.RetryAfterMS)}
	return nil
}

func validCode(c Code) bool {
	if c == "" || len(c) > maxCodeBytes {
		return false
	}
	for _, b := range []byte(c) {
		if (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '_' {
			return false
		}
	}
	return true
}

// plainNumbers turns the json.Numbers in v into int64 or float64.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}
