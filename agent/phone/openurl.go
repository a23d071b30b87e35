package phone

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxURL bounds a link, in bytes.
const maxURL = 4096

var scheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)

// OpenURL has the phone open a link with the app that takes it, or with pkg if
// that is not "". Which schemes are allowed is the caller's business; one is
// required, and what cannot be seen is refused. No app that takes the link is
// ErrAppMissing.
func (c *Controls) OpenURL(ctx context.Context, url, pkg string) error {
	if reason := badURL(url); reason != "" {
		return fmt.Errorf("open link: %s: %w", reason, ErrBadArgument)
	}
	cmd := "am start -W -a android.intent.action.VIEW -d " + quote(url)
	if pkg != "" {
		if !isPackage(pkg) {
			return fmt.Errorf("open link: %.80q is no package name: %w", pkg, ErrBadArgument)
		}
		cmd += " -p " + pkg
	}
	if err := c.start(ctx, cmd); err != nil {
		return fmt.Errorf("open link: %w", err)
	}
	return nil
}

// badURL returns why url is none, or "".
func badURL(url string) string {
	switch {
	case len(url) > maxURL:
		return fmt.Sprintf("it is longer than %d bytes", maxURL)
	case !utf8.ValidString(url):
		return "it is not valid UTF-8"
	case !scheme.MatchString(url):
		return "it has no scheme such as https:"
	case strings.ContainsFunc(url, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }):
		return "it has a space or a character that cannot be seen"
	}
	return ""
}
