package wire

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/pelletier/go-toml/v2"
)

//go:embed catalogue/en.toml catalogue/zh.toml
var catalogueFiles embed.FS

// Bounds of a value inside a sentence.
const (
	maxValueRunes = 160
	maxListItems  = 8
)

// catalogue holds the sentences of one language.
type catalogue struct {
	Missing  string            `toml:"missing"`  // stands for an argument that was not given
	Unknown  string            `toml:"unknown"`  // the sentence for a code of another version
	Sentence map[string]string `toml:"sentence"` // by code
}

var catalogues = sync.OnceValue(func() map[string]catalogue { return ReadCatalogues[catalogue](catalogueFiles) })

// ReadCatalogues reads catalogue/LANGUAGE.toml of each of Languages from the files that a package embeds. It panics if one
// cannot be read: they are part of the program.
func ReadCatalogues[T any](files embed.FS) map[string]T {
	all := map[string]T{}
	for _, lang := range Languages() {
		b, err := files.ReadFile("catalogue/" + lang + ".toml")
		if err != nil {
			panic(err)
		}
		var c T
		if err := toml.Unmarshal(b, &c); err != nil {
			panic(fmt.Sprintf("catalogue of %s: %v", lang, err))
		}
		all[lang] = c
	}
	return all
}

// Languages returns the languages that have a catalogue.
func Languages() []string { return []string{"en", "zh"} }

// Sentence returns the refusal in the language, given as a BCP 47 tag of which
// the first part counts ("zh-Hans-CN"); English for a language that has no
// catalogue. It is one line of plain text: argument values are bounded, and
// control and formatting characters in them are shown as escapes.
func (r Refusal) Sentence(lang string) string {
	c := catalogues()[pickLanguage(lang)]
	text, ok := c.Sentence[string(r.Code)]
	if ok {
		return Fill(text, c.Missing, r.Args)
	}
	return Fill(c.Unknown, c.Missing, map[string]any{"code": string(r.Code)})
}

func pickLanguage(tag string) string {
	base, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(tag), "_", "-"), "-")
	if slices.Contains(Languages(), base) {
		return base
	}
	return "en"
}

// Fill replaces each {name} of a text with the argument of that name, or with missing, as Sentence does: once, bounded and
// with control and formatting characters as escapes. What a value brings is never filled.
func Fill(text, missing string, args map[string]any) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			b.WriteString("{" + rest)
			return b.String()
		}
		if v, ok := args[name]; ok && v != nil && v != "" {
			b.WriteString(showValue(v))
		} else {
			b.WriteString(missing)
		}
		text = after
	}
}

func showValue(v any) string {
	switch v := v.(type) {
	case string:
		return plain(v)
	case Code:
		return plain(string(v))
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Time:
		return v.Format(time.RFC3339)
	case time.Duration:
		return length(v)
	case error:
		return plain(v.Error())
	case fmt.Stringer:
		return plain(v.String())
	case []string:
		return showList(v)
	case []any:
		return showList(v)
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	return plain(string(b))
}

// length is a length of time without units of which there is none: 8h, and not 8h0m0s.
func length(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return s
}

func showList[T any](list []T) string {
	var parts []string
	for i, v := range list {
		if i == maxListItems {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, showValue(v))
	}
	return strings.Join(parts, ", ")
}

// plain bounds s and escapes what could break a line, hide text or turn its
// direction.
func plain(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == maxValueRunes {
			b.WriteString("…")
			break
		}
		n++
		switch {
		case r == unicode.ReplacementChar, unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
