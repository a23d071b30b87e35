package provider

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is quoted of a provider's words, in bytes.
const (
	maxDetail = 240
	maxQuoted = 480 // looked at
	echoRun   = 16  // shortest part of a prompt that is left out
	keyRun    = 8   // shortest part of a key that is left out
)

// encoded finds what is likely a picture or a token: a long run of base64.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/_=-]{64,}`)

const echo = "[...]"

// quote makes a provider's or model's words fit for a refusal: one bounded line,
// without the key, even a part of it, and without what they repeat of the
// request: errors of providers quote whole messages, and those show somebody's screen.
func (q *asked) quote(s string) string {
	s = bounded(s, maxQuoted)
	s = without(s, keyRun, redacted, q.key)
	s = without(s, echoRun, echo, q.sources()...)
	return bounded(encoded.ReplaceAllString(s, echo), maxDetail)
}

// sources are the texts of the request, as they are and as JSON shows them.
func (q *asked) sources() []string {
	if q.texts == nil {
		for _, s := range []string{q.req.SystemPrompt, q.req.UserPrompt} {
			q.texts = append(q.texts, strings.Join(strings.FieldsFunc(s, unprintable), " "))
			if b, err := json.Marshal(s); err == nil {
				q.texts = append(q.texts, string(b))
			}
		}
	}
	return q.texts
}

// without puts mark for each run of at least shortest bytes of s that a source
// holds as well.
func without(s string, shortest int, mark string, sources ...string) string {
	held := func(part string) bool {
		for _, source := range sources {
			if strings.Contains(source, part) {
				return true
			}
		}
		return false
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		stop := i + shortest
		if stop > len(s) || !held(s[i:stop]) {
			b.WriteByte(s[i])
			i++
			continue
		}
		for stop < len(s) && held(s[i:stop+1]) {
			stop++
		}
		b.WriteString(mark)
		i = stop
	}
	return strings.ToValidUTF8(b.String(), "")
}

// bounded makes one line of at most limit bytes.
func bounded(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit]
	}
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), unprintable), " ")
	if len(s) <= limit {
		return s
	}
	cut := limit - len("...")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

func unprintable(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
