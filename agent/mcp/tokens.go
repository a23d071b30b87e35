package mcp

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Tokens are what callers over HTTP prove themselves with, by the caller's name.
type Tokens struct {
	all []token
}

// token keeps the hash, so that comparing takes the same time whatever its length.
type token struct {
	name string
	hash [sha256.Size]byte
}

// Bounds of a file of tokens.
const (
	minToken  = 32 // characters
	maxToken  = 512
	maxTokens = 64
	// MaxTokenFile bounds the file, in bytes.
	MaxTokenFile = 64 << 10
	// unnamed is the caller of a token without a name.
	unnamed = "default"
)

var tokenName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// ParseTokens reads the tokens of a file: one a line, with the caller's name before
// it if there are several. Empty lines and those that begin with # do not count.
// Errors name the line and nothing of the token.
func ParseTokens(raw []byte) (Tokens, error) {
	var t Tokens
	seen := map[string]bool{}
	for i, line := range strings.Split(string(raw), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) > 2 {
			return Tokens{}, fmt.Errorf("line %d has more than a name and a token", i+1)
		}
		name, secret := unnamed, words[len(words)-1]
		if len(words) == 2 {
			name = words[0]
		}
		switch {
		case !tokenName.MatchString(name):
			return Tokens{}, fmt.Errorf("line %d has a name that is not 1 to 63 of a-z, 0-9 and -", i+1)
		case seen[name]:
			return Tokens{}, fmt.Errorf("line %d has the name %s for a second time", i+1, name)
		case len(secret) < minToken || len(secret) > maxToken:
			return Tokens{}, fmt.Errorf("line %d has a token of %d characters: use %d to %d random ones", i+1, len(secret), minToken, maxToken)
		}
		seen[name] = true
		t.all = append(t.all, token{name, sha256.Sum256([]byte(secret))})
	}
	switch {
	case len(t.all) == 0:
		return Tokens{}, errors.New("it has no token")
	case len(t.all) > maxTokens:
		return Tokens{}, fmt.Errorf("it has %d tokens: at most %d are taken", len(t.all), maxTokens)
	}
	return t, nil
}

// owner finds whose token an Authorization header shows. Every token is compared,
// each in constant time.
func (t Tokens) owner(header string) (name string, ok bool) {
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	hash := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	for _, one := range t.all {
		if subtle.ConstantTimeCompare(hash[:], one.hash[:]) == 1 {
			name, ok = one.name, true
		}
	}
	return name, ok
}
