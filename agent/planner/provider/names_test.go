package provider

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

var allowed = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestNamesThatFitGoOutAsTheyAre(t *testing.T) {
	for name, want := range map[string]string{
		"tap": "tap", "scroll_to": "scroll_to", "a-b": "a-b", strings.Repeat("a", 64): strings.Repeat("a", 64),
		"mcp:server/tool": "x--mcp-3aserver-2ftool", "x/_anon_0": "x--x-2f_anon_0", "x--tap": "x--x-2d-2dtap", "x-l-": "x--x-2dl-2d",
		"Größe": "x--Gr-c3-b6-c3-9fe", "": "x--",
	} {
		if got := outgoingName(name); got != want {
			t.Errorf("%q goes out as %q, want %q", name, got, want)
		}
	}
}

// restored undoes an outgoing name without the table, where that can be done.
func restored(t interface{ Fatalf(string, ...any) }, out string) (string, bool) {
	if strings.HasPrefix(out, hashedMark) {
		return "", false
	}
	rest, escaped := strings.CutPrefix(out, escapedMark)
	if !escaped {
		return out, true
	}
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		if rest[i] != '-' {
			b.WriteByte(rest[i])
			continue
		}
		v, err := strconv.ParseUint(rest[i+1:i+3], 16, 8)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		b.WriteByte(byte(v))
		i += 2
	}
	return b.String(), true
}

// anyName draws what tools may be called, with a taste for the scheme's own marks.
func anyName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z_]{1,12}`),
		rapid.StringMatching(`(x--|x-l-|x-|-)?[a-f0-9-]{0,70}`),
		rapid.StringMatching(`(mcp|x):?[a-z]{1,8}/[a-z_0-9]{1,60}`),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 80), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.StringMatching(`[a-z/]{1,70}`), outgoingName), // what itself looks like an outgoing name
	)
}

func TestNamesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(anyName().Filter(func(s string) bool { return s != "" }), 1, 12, rapid.ID[string]).Draw(t, "names")
		tools := make([]planner.Tool, len(list))
		for i, name := range list {
			tools[i].Name = name
		}
		n, err := namesOf(tools)
		if err != nil {
			t.Fatal(err)
		}
		if len(n) != len(list) {
			t.Fatalf("%d names went out as %d", len(list), len(n))
		}
		for _, name := range list {
			out := outgoingName(name)
			if !allowed.MatchString(out) {
				t.Fatalf("%q goes out as %q", name, out)
			}
			if n[out] != name {
				t.Fatalf("%q came back as %q", name, n[out])
			}
			if back, ok := restored(t, out); ok && back != name {
				t.Fatalf("%q goes out as %q, which reads %q", name, out, back)
			}
		}
	})
}

// TestNamesThatCannotBeToldApartAreRefused: were two names ever to share an
// outgoing one, nothing would be asked. Only the same name twice can show it.
func TestNamesThatCannotBeToldApartAreRefused(t *testing.T) {
	long := strings.Repeat("long/", 30)
	for _, c := range [][]planner.Tool{
		{{Name: "tap"}, {Name: "tap"}},
		{{Name: long}, {Name: long}},
		{{Name: ""}},
	} {
		if _, err := namesOf(c); !wire.Is(err, wire.BadRequest) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if n, err := namesOf([]planner.Tool{{Name: long + "a"}, {Name: long + "b"}}); err != nil || len(n) != 2 {
		t.Errorf("two long names that begin alike: %v, %v", n, err)
	}
	if out := outgoingName(long); len(out) != maxName || !strings.HasPrefix(out, hashedMark+"long-2flong") {
		t.Errorf("a long name goes out as %q", out)
	}
	if _, err := hex.DecodeString(outgoingName(long)[maxName-32:]); err != nil {
		t.Error(err)
	}
}
