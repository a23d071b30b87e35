package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// Providers take names of [a-zA-Z0-9_-]{1,64}; tools of skills and registries
// are called mcp:server/tool or x/_anon_0, and may be longer. A name goes out
//
//   - as it is, if it fits and does not begin with x-- or x-l-;
//   - else as x-- and its bytes, where letters, digits and _ stand for
//     themselves and any other byte, - included, is - and two hex digits:
//     mcp:server/tool becomes x--mcp-3aserver-2ftool;
//   - else, where that is longer than 64, as x-l-, 27 characters to read, - and
//     the first half of the name's SHA-256.
//
// The first two can be undone by anybody; the third by whoever has the list of
// what was offered. As no request offers two tools under one outgoing name (that
// is refused, not resolved), what comes back means one tool or none.
const (
	maxName     = 64
	escapedMark = "x--"
	hashedMark  = "x-l-"
	readable    = 27 // 64 - 4 of the mark - 1 - 32 hex digits
)

func outgoingName(name string) string {
	if fits(name) && !strings.HasPrefix(name, escapedMark) && !strings.HasPrefix(name, hashedMark) {
		return name
	}
	var b strings.Builder
	b.WriteString(escapedMark)
	for _, c := range []byte(name) {
		if plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "-%02x", c)
		}
	}
	if b.Len() <= maxName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return hashedMark + b.String()[len(escapedMark):][:readable] + "-" + hex.EncodeToString(sum[:16])
}

// plain tells whether a byte stands for itself in an escaped name.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func fits(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		if !plain(c) && c != '-' {
			return false
		}
	}
	return true
}

// names are the offered tools by their outgoing names.
type names map[string]string

// namesOf refuses tools that cannot be told apart.
func namesOf(tools []planner.Tool) (names, error) {
	n := make(names, len(tools))
	for _, t := range tools {
		if t.Name == "" {
			return nil, badRequest("a tool has no name")
		}
		out := outgoingName(t.Name)
		if _, twice := n[out]; twice {
			return nil, badRequest(fmt.Sprintf("two tools are called %.80q", t.Name))
		}
		n[out] = t.Name
	}
	return n, nil
}

func badRequest(reason string) *wire.Refusal {
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": reason})
}
