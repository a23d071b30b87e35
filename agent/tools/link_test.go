package tools_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/tools"
	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
)

func open(t *testing.T, link string, permissions ...string) ([]string, error) {
	t.Helper()
	args, err := json.Marshal(map[string]string{"url": link})
	if err != nil {
		t.Fatal(err)
	}
	p := toolstest.New(shop())
	env := p.Env()
	env.Permissions = permissions
	out, err := do(t, env, "open_url", string(args))
	if err != nil {
		wantNothing(t, p, out)
	}
	return p.Acts(), err
}

func TestLinksThatAreOpened(t *testing.T) {
	for _, link := range []string{
		"https://example.org", "http://example.org:8080/a/b?c=d&e=%20#f", "HTTPS://Example.org/", "https://192.0.2.1/", "http://[2001:db8::1]/x",
		"https://bücher.example/", "https://例え.テスト/水壶", "https://a_b.example/~user", "https://example.org/'$(reboot)'", "http://localhost/",
		"mailto:a@example.org?subject=tea&body=5%20kg", "mailto:?to=a@example.org", "tel:+49-30-123456", "tel:(030)123.45", "geo:52.52,13.405",
		"geo:0,0?q=coffee",
	} {
		if did, err := open(t, link); err != nil || !slices.Equal(did, []string{"open " + link}) {
			t.Errorf("%s: %q, %v", link, did, err)
		}
	}
	if did, err := open(t, "market://details?id=a.shop", tools.PermitInstall); err != nil || len(did) != 1 {
		t.Errorf("%q, %v", did, err)
	}
	_, err := open(t, "market://details?id=a.shop")
	wantRefusal(t, err, wire.PermissionMissing, "install")
}

func TestLinksThatAreRefused(t *testing.T) {
	for link, want := range map[string]string{
		"file:///sdcard/x.html":                         "its kind is none of",
		"content://contacts/people/1":                   "its kind is none of",
		"intent://scan/#Intent;scheme=zxing;end":        "its kind is none of",
		"intent:#Intent;action=x;end":                   "its kind is none of",
		"android-app://a.shop/https/x":                  "its kind is none of",
		"javascript:alert(1)":                           "its kind is none of",
		"JaVaScRiPt:alert(1)":                           "its kind is none of",
		"data:text/html,<b>":                            "characters",
		"sms:123?body=x":                                "its kind is none of",
		"myapp://x":                                     "its kind is none of",
		"about:blank":                                   "its kind is none of",
		"example.org":                                   "its kind is none of",
		"//example.org/x":                               "its kind is none of",
		"https:example.org":                             "names a host",
		"https:///example.org":                          "names a host",
		"https://":                                      "names a host",
		"https://user:secret@example.org":               "user name",
		"https://bank.example@evil.example/":            "user name",
		"https://:443/":                                 "host",
		"https://exa%20mple.org/":                       "not well formed",
		"https://example.org:port/":                     "not well formed",
		"https://-x.example/":                           "host",
		"https://example.org/\nSet-Cookie":              "characters",
		"https://example.org/a b":                       "characters",
		"https://example.org\\@evil.example":            "characters",
		"https://example.org/\u202egpj":                 "characters",
		"https://example.org/\u200b":                    "characters",
		" https://example.org":                          "characters",
		"https://example.org/\"x":                       "characters",
		"https://example.org/%zz":                       "not well formed",
		"tel:*%2306%23":                                 "number of digits",
		"tel:*2767*3855#":                               "number of digits",
		"tel:":                                          "number of digits",
		"tel:112;phone-context=x":                       "number of digits",
		"mailto:":                                       "an address",
		"mailto://x":                                    "an address",
		"mailto:a@b.example?attach=/sdcard/secret":      "more than an address",
		"mailto:a@b.example?Attachment=/sdcard/x":       "more than an address",
		"geo:here":                                      "coordinates",
		"market:details":                                "details or search",
		"market://launch?id=a.shop":                     "details or search",
		"https://" + strings.Repeat("x", 400) + ".\x7f": "characters",
	} {
		if len(link) < 4 {
			continue
		}
		_, err := open(t, link, tools.Permissions()...)
		wantRefusal(t, err, wire.LinkRefused, want)
	}
	_, err := open(t, "x:y", tools.Permissions()...)
	wantRefusal(t, err, wire.BadArguments, "at least 4")
	_, err = open(t, "file://"+strings.Repeat("ü", 1000))
	if len(err.Error()) > 900 {
		t.Errorf("%d bytes of refusal", len(err.Error()))
	}
}

// FuzzLinks: what is opened has a scheme of the list, and nothing in it that could
// end a line, a word or a quotation.
func FuzzLinks(f *testing.F) {
	for _, s := range []string{"https://example.org/?a=b", "tel:+1", "intent:#Intent;end", "file:///x", "mailto:a@b?subject=c", "geo:1,2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, link string) {
		args, err := json.Marshal(map[string]string{"url": link})
		if err != nil {
			return
		}
		p := toolstest.New(shop())
		if _, err := do(t, p.Env(), "open_url", string(args)); err != nil {
			if len(p.Acts()) > 0 {
				t.Errorf("%q was opened and refused", link)
			}
			return
		}
		opened := strings.TrimPrefix(p.Acts()[0], "open ")
		u, err := url.Parse(opened)
		if err != nil || !slices.Contains([]string{"https", "http", "mailto", "tel", "geo"}, u.Scheme) || strings.ContainsAny(opened, " \t\r\n\x00\"<>\\") {
			t.Errorf("%q was opened", opened)
		}
	})
}
