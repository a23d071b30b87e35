package placeholder_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"phonerack/agent/skill/model/placeholder"
)

func TestParse(t *testing.T) {
	lit := func(s string) placeholder.Part { return placeholder.Part{Literal: s} }
	param := func(s string) placeholder.Part { return placeholder.Part{Param: s} }
	for text, want := range map[string]placeholder.Text{
		"":                    nil,
		"plain":               {lit("plain")},
		"{query}":             {param("query")},
		"a {b} c{d}{e}":       {lit("a "), param("b"), lit(" c"), param("d"), param("e")},
		"{{query}}":           {lit("{query}")},
		"{{{query}}}":         {lit("{"), param("query"), lit("}")},
		"{{}}{{":              {lit("{}{")},
		"$1 %s {10}x"[0:6]:    {lit("$1 %s ")},
		"{_A9} 茶":             {param("_A9"), lit(" 茶")},
		`{{"a":{{"b":{c}}}}}`: {lit(`{"a":{"b":`), param("c"), lit("}}")},
	} {
		got, err := placeholder.Parse(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

func TestMalformedPlaceholders(t *testing.T) {
	for text, want := range map[string]string{
		"{": `"{" is no placeholder`, "a{b": `"{b" is no placeholder`, "{}": "is no placeholder", "{ a }": "without blanks", "{a b}": "is no placeholder",
		"{1}": "is no placeholder", "{a{b}}": "is no placeholder", "}": "a single } belongs", "a}b": "a single } belongs", "{a}}": "a single } belongs",
		"{é}": "is no placeholder", "{" + strings.Repeat("a", 65) + "}": "is no placeholder", "{a.b}": "is no placeholder", "{a:-b}": "is no placeholder",
	} {
		if got, err := placeholder.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestEscapedTextIsALiteral: whatever a person writes, there is a text for it.
func TestEscapedTextIsALiteral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a{}$%\\"茶 ]{1,20}`).Draw(t, "text")
		got, err := placeholder.Parse(placeholder.Escape(s))
		if diff := cmp.Diff(placeholder.Text{{Literal: s}}, got); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a {b} c", "{{x}}", "{{{x}}}", "}", "{ x }"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := placeholder.Parse(s)
		if err != nil {
			return
		}
		again, err := placeholder.Parse(text.String())
		if diff := cmp.Diff(text, again); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
	})
}
