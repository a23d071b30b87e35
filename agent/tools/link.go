package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"phonerack/sync/wire"
)

// schemes are the links that are opened. Every other scheme is refused, above all
// those that reach into the phone or run something: file, content, intent,
// javascript, data, and those of apps.
var schemes = []struct {
	name       string
	permission string
	form       *regexp.Regexp // of what follows the colon
	says       string
}{
	{"https", "", webForm, "a host"},
	{"http", "", webForm, "a host"},
	{"mailto", "", regexp.MustCompile(`^[^/]`), "an address"},
	// No star and hash: some dialers carry such codes out at once.
	{"tel", "", regexp.MustCompile(`^\+?[0-9().-]{1,40}$`), "a number of digits"},
	{"geo", "", regexp.MustCompile(`^-?[0-9.]{1,20},-?[0-9.]{1,20}(\?.*)?$`), "two coordinates"},
	{"market", PermitInstall, regexp.MustCompile(`^//(details|search)\?`), "details or search"},
}

var webForm = regexp.MustCompile(`^//[^/]`)

var openURL = Tool{
	Name: "open_url",
	Description: "Open a link with the app that takes it, or with the app of the given package: https, http, mailto, tel (shows the number), " +
		"geo; market if the task may install apps.",
	Schema: json.RawMessage(`{"type": "object", "properties": {
		"url": {"type": "string", "minLength": 4, "maxLength": 2000},` + packageSchema + `},
		"required": ["url"], "additionalProperties": false}`),
	Annotations: Annotations{Destructive: true, OpenWorld: true},
	Role:        Operator,
	run: func(ctx context.Context, env Env, args json.RawMessage, out *Outcome) error {
		call, err := decode[struct {
			URL     string `json:"url"`
			Package string `json:"package"`
		}](args)
		if err != nil {
			return err
		}
		if call.Package != "" && !packageName.MatchString(call.Package) {
			return badArgument(out.Tool, "$.package", "is not a package name")
		}
		permission, reason := checkLink(call.URL)
		if reason != "" {
			return wire.Refuse(wire.LinkRefused, map[string]any{"url": clip(call.URL), "reason": reason})
		}
		if !env.permits(permission) {
			return notPermitted(out.Tool, permission)
		}
		err = out.write(ctx, env, "opening of a link", func() error { return env.Controls.OpenURL(ctx, call.URL, call.Package) })
		return missingApp(err, cmp.Or(call.Package, "for such links"))
	},
}

// checkLink tells why a link is not opened, or which permission it needs.
func checkLink(link string) (permission, reason string) {
	if strings.ContainsFunc(link, func(r rune) bool { return unprintable(r) || r == ' ' || r == '\\' || r == '"' || r == '<' || r == '>' }) {
		return "", "it has characters that no link has; write them as %XX"
	}
	u, err := url.Parse(link)
	if err != nil {
		return "", "it is not well formed"
	}
	for _, s := range schemes {
		if u.Scheme != s.name {
			continue
		}
		_, rest, _ := strings.Cut(link, ":")
		switch {
		case !s.form.MatchString(rest):
			return "", fmt.Sprintf("a link of %s names %s", s.name, s.says)
		case u.User != nil:
			return "", "it holds a user name, which hides where it leads"
		case s.name == "mailto" && !plainMail(u.Query()):
			return "", "it asks for more than an address, a subject and a text"
		case s.form == webForm && (u.Hostname() == "" || !hostForm.MatchString(u.Hostname())):
			return "", "its host is none"
		}
		return s.permission, ""
	}
	names := make([]string, len(schemes))
	for i, s := range schemes {
		names[i] = s.name
	}
	slices.Sort(names)
	return "", fmt.Sprintf("its kind is none of %s", strings.Join(names, ", "))
}

// plainMail refuses what some mail apps take from a link besides words, such as
// the path of a file to attach.
func plainMail(fields url.Values) bool {
	for name := range fields {
		if !slices.Contains([]string{"to", "cc", "bcc", "subject", "body"}, strings.ToLower(name)) {
			return false
		}
	}
	return true
}

// hostForm is a name, also in other scripts, or an address.
var hostForm = regexp.MustCompile(`^[\p{L}\p{M}\p{N}:]([\p{L}\p{M}\p{N}._:-]*[\p{L}\p{M}\p{N}.])?$`)

// clip bounds a text of the planner's in a refusal.
func clip(s string) string {
	const most = 200
	for i, n := 0, 0; i < len(s); n++ {
		if n == most {
			return s[:i] + "…"
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return s
}
