package phone

import (
	"errors"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
	"phonerack/sync/wire"
)

// TestReport19_TheClipboardThatLies: the command succeeds without doing
// anything. Only the text itself, read back, is believed.
func TestReport19_TheClipboardThatLies(t *testing.T) {
	const mark = "phonerack-clipboard\n"
	for name, c := range map[string]struct {
		said phonetest.Reply
		ok   bool
	}{
		"silence and exit code 0":    {phonetest.Reply{Stdout: mark}, false},
		"no implementation":          {phonetest.Reply{Stdout: mark, Stderr: "No shell command implementation.\n"}, false},
		"no implementation, old adb": {phonetest.Reply{Stdout: mark + "No shell command implementation.\r\n"}, false},
		"another text":               {phonetest.Reply{Stdout: mark + "what was there before\n"}, false},
		"only its beginning":         {phonetest.Reply{Stdout: mark + "the te\n"}, false},
		"more than it":               {phonetest.Reply{Stdout: mark + "the text\n\n"}, false},
		"before the mark":            {phonetest.Reply{Stdout: "the text\n" + mark}, false},
		"no mark":                    {phonetest.Reply{Stdout: "the text\n"}, false},
		"a phone that has one":       {phonetest.Reply{Stdout: mark + "the text\n"}, true},
		"CRLF":                       {phonetest.Reply{Stdout: "phonerack-clipboard\r\nthe text\r\n"}, true},
	} {
		p, a := attached(t, phonetest.Handset{}, replies("cmd clipboard", c.said))
		err := p.Under(forever()).SetClipboard(t.Context(), "the text")
		if c.ok != (err == nil) || err != nil && (!wire.Is(err, wire.ClipboardFailed) || !errors.Is(err, ErrNoClipboard)) {
			t.Errorf("%s: %v", name, err)
		}
		if len(commands(a)) != 1 {
			t.Errorf("%s: sent %q", name, commands(a))
		}
	}
}

func TestClipboardOfTheHelper(t *testing.T) {
	h := &assistant{running: true}
	p, a := assisted(t, h, nil)
	if err := p.Under(forever()).SetClipboard(t.Context(), "好\n😀"); err != nil || len(a.Sent()) != 0 {
		t.Errorf("%v, sent %v", err, a.Sent())
	}
	if got, err := p.Clipboard(t.Context()); err != nil || got != "好\n😀" {
		t.Errorf("%q, %v", got, err)
	}
	h.lost = "another app's"
	if err := p.Under(forever()).SetClipboard(t.Context(), "x"); !wire.Is(err, wire.ClipboardFailed) {
		t.Errorf("a text that is not there: %v", err)
	}
	h.err = errLost
	if err := p.Under(forever()).SetClipboard(t.Context(), "x"); !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("no answer: %v", err)
	}
	h.err = wire.Refuse(wire.ClipboardFailed, nil)
	if err := p.Under(forever()).SetClipboard(t.Context(), "x"); !wire.Is(err, wire.ClipboardFailed) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("refused: %v", err)
	}
	h.clip, h.running = strings.Repeat("x", maxClipboard+1), false
	if _, err := p.Clipboard(t.Context()); !wire.Is(err, wire.ClipboardFailed) {
		t.Errorf("a helper that does not run: %v", err)
	}
	h.running = true
	if _, err := p.Clipboard(t.Context()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a flood: %v", err)
	}
	for _, text := range []string{"", "a\x00b", "\xff", strings.Repeat("x", maxClipboard+1)} {
		if err := p.Under(forever()).SetClipboard(t.Context(), text); !errors.Is(err, ErrBadArgument) {
			t.Errorf("%.10q: %v", text, err)
		}
	}
}
