package status

import (
	"bytes"
	"regexp"
	"slices"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// privateKey is one of PEM; one whose end is missing takes the rest with it.
var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)

// hide is what never leaves in a bundle, whatever file it stands in. It is looked for in lines that have one of its
// hints: expressions alone take seconds for a log.
type hide struct {
	hints []string // in lower case
	what  *regexp.Regexp
	with  string
}

const value = `(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;}]+)` // quoted, or to the end of the word

var hides = []hide{
	// User and password of an address, and what follows its question mark.
	{[]string{"://"}, regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'@]*@`), "${1}" + redacted + "@"},
	{[]string{"://"}, regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'?]*)\?[^\s"']+`), "${1}?" + redacted},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}`), "${1} " + redacted},
	// A name that says secret, then =, : or a JSON colon, then its value.
	{
		[]string{"pass", "secret", "token", "psk", "key", "credential", "authorization", "cookie"},
		regexp.MustCompile(`(?i)("?[a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|psk|api_?key|private_?key|access_?key|mac_?key|credential|authorization|cookie)[a-z0-9_.-]*"?\s*[=:]\s*)` + value),
		`${1}"` + redacted + `"`,
	},
	{[]string{"pin", "pw"}, regexp.MustCompile(`(?i)((?:^|[^a-z0-9])"?(?:pin|pw|pwd)"?\s*[=:]\s*)` + value), `${1}"` + redacted + `"`},
}

// redact takes secrets out of a text. What is known to be secret, the PIN above all, goes wherever it stands.
func redact(text []byte, secrets ...string) []byte {
	for _, s := range secrets {
		if len(s) >= 4 {
			text = bytes.ReplaceAll(text, []byte(s), []byte(redacted))
		}
	}
	if bytes.Contains(text, []byte("PRIVATE KEY")) {
		text = privateKey.ReplaceAll(text, []byte(redacted))
	}
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		lower := bytes.ToLower(line)
		for _, h := range hides {
			if h.near(lower) {
				line = h.what.ReplaceAll(line, []byte(h.with))
			}
		}
		out = withoutKeys(out, line)
	}
	return out
}

func (h hide) near(line []byte) bool {
	return slices.ContainsFunc(h.hints, func(hint string) bool { return bytes.Contains(line, []byte(hint)) })
}

const shortestKey = 40 // digits: 20 bytes as hexadecimal, 30 as base64

// withoutKeys appends a line without its long runs of hexadecimal or base64 digits: keys, and check sums that nobody
// misses. Long paths and words stay.
func withoutKeys(out, line []byte) []byte {
	from := 0 // what comes before is in out
	for at := 0; at < len(line); {
		n, secret := run(line[at:])
		if secret {
			out = append(append(out, line[from:at]...), redacted...)
			from = at + n
		}
		at += max(n, 1)
	}
	return append(out, line[from:]...)
}

// run is the length of the digits that a text begins with, and whether they look like a key.
func run(text []byte) (n int, key bool) {
	hex, digit, upper, lower := true, false, false, false
loop:
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'z':
			lower, hex = true, hex && c <= 'f'
		case c >= 'A' && c <= 'Z':
			upper, hex = true, hex && c <= 'F'
		case c == '+', c == '/', c == '_', c == '-':
			hex = false
		case c == '=' && n >= shortestKey:
		default:
			break loop
		}
		n++
	}
	return n, n >= shortestKey && (hex || digit && upper && lower)
}
