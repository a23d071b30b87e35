package store

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// How Go's values stand in columns, and what is refused before it gets there.

// ms is a time as a column holds it.
func ms(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

func fromMS(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// timeIn scans milliseconds.
type timeIn struct{ to *time.Time }

func (c timeIn) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*c.to = fromMS(n)
	return nil
}

// jsonIn scans JSON text; ” is nil.
type jsonIn struct{ to *json.RawMessage }

func (c jsonIn) Scan(v any) error {
	switch v := v.(type) {
	case string:
		*c.to = nil
		if v != "" {
			*c.to = json.RawMessage(v)
		}
		return nil
	case []byte:
		return jsonIn{c.to}.Scan(string(v))
	}
	return fmt.Errorf("JSON is stored as %T", v)
}

// listIn scans a JSON list of strings.
type listIn struct{ to *[]string }

func (c listIn) Scan(v any) error {
	var raw json.RawMessage
	if err := (jsonIn{&raw}).Scan(v); err != nil {
		return err
	}
	*c.to = nil
	return json.Unmarshal(raw, c.to)
}

// hashIn scans 32 bytes.
type hashIn struct{ to *[32]byte }

func (c hashIn) Scan(v any) error {
	b, ok := v.([]byte)
	if !ok || len(b) != len(c.to) {
		return errors.New("a hash is stored that is none")
	}
	copy(c.to[:], b)
	return nil
}

// truth scans NULL, 0 or 1.
type truth struct{ to **bool }

func (c truth) Scan(v any) error {
	*c.to = nil
	if n, ok := v.(int64); ok {
		yes := n != 0
		*c.to = &yes
	}
	return nil
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// jsonOf marshals what cannot fail: maps and lists of plain values.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if string(b) == "null" {
		return ""
	}
	return string(b)
}

func tagsOf(tags []string) string {
	if len(tags) == 0 {
		return "[]"
	}
	return jsonOf(tags)
}

// Bounds of what is stored, in bytes.
const (
	maxName   = 200
	maxText   = 1 << 20 // a prompt, a certificate
	maxJSON   = 256 << 10
	maxTags   = 100
	maxApps   = 1000
	maxSealed = 64 << 10
	maxSlot   = 999
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// check gives the first error.
func check(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (sc Scope) check() error {
	return check(idOK("tenant", sc.Tenant), textOK("actor", sc.Actor, 1, maxName))
}

func idOK(what, id string) error {
	if id == "" || len(id) > 63 || !plainID(id) {
		return invalid("%s %.80q is not 1 to 63 of a-z, 0-9 and dash", what, id)
	}
	return nil
}

func plainID(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// textOK refuses what PostgreSQL cannot store as text, so that both databases hold the same.
func textOK(what, s string, low, high int) error {
	switch {
	case len(s) < low:
		return invalid("%s is missing", what)
	case len(s) > high:
		return invalid("%s has %d bytes, at most %d are allowed", what, len(s), high)
	case !utf8.ValidString(s), strings.ContainsRune(s, 0):
		return invalid("%s is not text", what)
	}
	return nil
}

func listOK(what string, all []string, high int) error {
	if len(all) > high {
		return invalid("%d %s, at most %d are allowed", len(all), what, high)
	}
	for _, s := range all {
		if err := textOK(what, s, 1, maxName); err != nil {
			return err
		}
	}
	return nil
}

// jsonOK allows nothing at all, too.
func jsonOK(what string, raw json.RawMessage) error {
	switch {
	case len(raw) > maxJSON:
		return invalid("%s has %d bytes, at most %d are allowed", what, len(raw), maxJSON)
	case len(raw) > 0 && (!json.Valid(raw) || !utf8.Valid(raw)):
		return invalid("%s is not JSON", what)
	}
	return nil
}

func inRange(what string, n, low, high int64) error {
	if n < low || n > high {
		return invalid("%s %d is not in %d to %d", what, n, low, high)
	}
	return nil
}

// text makes storable what came from a rack and is kept for people: a prompt may hold anything.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func (p Page) size() (int, error) {
	if p.Limit == 0 {
		return 100, nil
	}
	return p.Limit, inRange("page size", int64(p.Limit), 1, 1000)
}

// cut gives a page of a list that was read with one record more than the page holds, and the key of its last record.
func cut[T any](all []T, size int, key func(T) string) ([]T, string) {
	if len(all) <= size {
		return all, ""
	}
	return all[:size], key(all[size-1])
}

// before gives the number that a page of numbers, newest first, ends before.
func (p Page) before() (int64, error) {
	if p.After == "" {
		return 1 << 62, nil
	}
	n, err := strconv.ParseInt(p.After, 10, 64)
	if err != nil {
		return 0, invalid("page mark %.40q", p.After)
	}
	return n, nil
}

// newest is above every id of NewID, which begin with a digit, in any collation.
const newest = "z"

func sum(v any) []byte {
	h := sha256.Sum256([]byte(jsonOf(v)))
	return h[:]
}
