package status

import (
	"bytes"
	"regexp"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// hides are what never leaves in a bundle, whatever file it stands in.
var hides = []struct {
	what *regexp.Regexp
	with string
}{
	// Private keys; one whose end is missing takes the rest with it.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), redacted},
	// User and password of an address, and what follows its question mark.
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'@]*@`), "${1}" + redacted + "@"},
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'?]*)\?[^\s"']+`), "${1}?" + redacted},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}`), "${1} " + redacted},
	// A name that says secret, then =, : or a JSON colon, then its value: quoted, or to the end of the word.
	{regexp.MustCompile(`(?i)("?[a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|psk|api_?key|private_?key|access_?key|credential|authorization|cookie)[a-z0-9_.-]*"?\s*[=:]\s*)(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;}]+)`), "${1}\"" + redacted + "\""},
	{regexp.MustCompile(`(?i)((?:^|[^a-z0-9])"?(?:pin|pw|pwd|mac_key)"?\s*[=:]\s*)(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;}]+)`), "${1}\"" + redacted + "\""},
	// Long runs of hexadecimal or base64 digits: keys, and check sums that nobody misses.
	{regexp.MustCompile(`\b[A-Za-z0-9+/_-]{40,}={0,2}`), redacted},
}

// redact takes secrets out of a text. What is known to be secret, the PIN above all, goes wherever it stands.
func redact(text []byte, secrets ...string) []byte {
	for _, s := range secrets {
		if len(s) >= 4 {
			text = bytes.ReplaceAll(text, []byte(s), []byte(redacted))
		}
	}
	for _, h := range hides {
		text = h.what.ReplaceAll(text, []byte(h.with))
	}
	return text
}
