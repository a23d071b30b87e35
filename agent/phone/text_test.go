package phone

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"phonerack/agent/phone/phonetest"
	"phonerack/sync/wire"
)

func TestTextThatCannotBeTyped(t *testing.T) {
	p, a := attached(t, phonetest.Handset{}, nil)
	for _, text := range []string{"", "a\nb", "a\tb", "naïve", "你好", "ok 😀", "\x00", "\x7f", strings.Repeat("a", maxTyped+1), "\xff"} {
		err := p.Under(forever()).InputText(t.Context(), text)
		if !errors.Is(err, ErrCannotType) || !wire.Is(err, wire.CannotType) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if got := a.Sent(); got != nil {
		t.Errorf("sent %v", got)
	}
}

func TestTypingStopsWhereTheFenceDoes(t *testing.T) {
	p, a := attached(t, phonetest.Handset{}, nil)
	text := "one two three four five six seven eight nine ten"
	err := p.Under(&lease{left: 1}).InputText(t.Context(), text)
	if !errors.Is(err, ErrPartlyTyped) || !wire.Is(err, wire.NotLeased) {
		t.Errorf("got %v", err)
	}
	if got := commands(a); len(got) != 1 {
		t.Errorf("sent %q", got)
	}
}

// TestChunksTypeTheText types random text on a model of the phone's command.
func TestChunksTypeTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([ -~]|%s|%){0,150}`).Draw(t, "text")
		var typed strings.Builder
		for _, chunk := range chunks(text, maxChunk) {
			if chunk == "" || len(chunk) > maxChunk {
				t.Fatalf("chunk %q", chunk)
			}
			if strings.Contains(chunk, "%s") {
				t.Fatalf("chunk %q loses its %%s", chunk)
			}
			typed.WriteString(strings.ReplaceAll(strings.ReplaceAll(chunk, " ", "%s"), "%s", " "))
		}
		if typed.String() != text {
			t.Fatalf("typed %q for %q", typed.String(), text)
		}
	})
}

// TestReport05_TextOutsideASCII: the phone's own command loses the whole text,
// with a NullPointerException. It is never given such text.
func TestReport05_TextOutsideASCII(t *testing.T) {
	for _, text := range []string{"你好", "ok 😀", "naïve", "ש", "سلام"} {
		p, a := attached(t, phonetest.Handset{}, nil)
		err := p.Under(forever()).InputText(t.Context(), text)
		if !wire.Is(err, wire.CannotType) || a.Sent() != nil {
			t.Errorf("%q: %v, sent %v", text, err, a.Sent())
		}
		h := &assistant{running: true}
		p, a = assisted(t, h, nil)
		if err := p.Under(forever()).InputText(t.Context(), text); err != nil || !slices.Equal(h.typed, []string{text}) || a.Sent() != nil {
			t.Errorf("%q with the helper: %v, typed %q", text, err, h.typed)
		}
		h.running = false
		if err := p.Under(forever()).InputText(t.Context(), text); !wire.Is(err, wire.CannotType) || a.Sent() != nil {
			t.Errorf("%q with a helper that does not run: %v", text, err)
		}
	}
}

func TestTheHelperIsNotGivenWhatIsAKey(t *testing.T) {
	h := &assistant{running: true}
	p, _ := assisted(t, h, nil)
	for _, text := range []string{"", "a\n你", "\t好", "\x1b[2J", "\x85", "\xff好", strings.Repeat("好", maxTyped+1)} {
		if err := p.Under(forever()).InputText(t.Context(), text); !wire.Is(err, wire.CannotType) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if h.typed != nil {
		t.Errorf("typed %q", h.typed)
	}
	if err := p.Under(forever()).InputText(t.Context(), strings.Repeat("好", maxTyped)); err != nil {
		t.Errorf("as many characters as may be: %v", err)
	}
}

func TestWhatTheHelperSaysAboutTyping(t *testing.T) {
	refusal := wire.Refuse(wire.CannotType, nil)
	for name, c := range map[string]struct{ said, err error }{
		"done":     {nil, nil},
		"refused":  {refusal, refusal},
		"rejected": {ErrRejected, ErrRejected},
		"partly":   {ErrPartlyTyped, ErrPartlyTyped},
		"broken":   {errLost, ErrUnknownOutcome},
		"too slow": {context.DeadlineExceeded, ErrUnknownOutcome},
		"no lease": {ErrNoFence, ErrNoFence},
	} {
		p, _ := assisted(t, &assistant{running: true, err: c.said}, nil)
		err := p.Under(forever()).InputText(t.Context(), "好")
		if !errors.Is(err, c.err) || errors.Is(err, ErrUnknownOutcome) != (c.err == ErrUnknownOutcome) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := &assistant{running: true}
	p, _ := assisted(t, h, nil)
	if err := p.Under(&lease{}).InputText(t.Context(), "好"); !wire.Is(err, wire.NotLeased) || h.typed != nil {
		t.Errorf("without a lease: %v, typed %q", err, h.typed)
	}
}

// TestReport16_SlowerWhereCharactersWereLost: after a text that was not there as
// it was typed, characters go one by one, then by the helper; that is remembered.
func TestReport16_SlowerWhereCharactersWereLost(t *testing.T) {
	h := &assistant{running: true}
	p, a := assisted(t, h, nil)
	c := p.Under(forever())
	for i, want := range []string{
		"input text 'ab%sc'",
		"input text 'a'; sleep 0.05; input text 'b'; sleep 0.05; input text '%s'; sleep 0.05; input text 'c'",
		"",
	} {
		a.Forget()
		if err := c.InputText(t.Context(), "ab c"); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(commands(a), "|"); got != want {
			t.Errorf("pace %d sent %q, want %q", i, got, want)
		}
		if more := c.Distrust(Typing); more != (i < 2) {
			t.Errorf("pace %d: another one %t", i, more)
		}
	}
	if !slices.Equal(h.typed, []string{"ab c"}) {
		t.Errorf("the helper typed %q", h.typed)
	}
	h.running = false
	if alone, _ := assisted(t, h, nil); !alone.Under(forever()).Distrust(Typing) || alone.Under(forever()).Distrust(Typing) {
		t.Error("without the helper there is one slower pace")
	}
	again, a := attached(t, phonetest.Handset{}, nil)
	again.remember(p.Strategies())
	if err := again.Under(forever()).InputText(t.Context(), "ab"); err != nil || len(commands(a)) != 1 || !strings.Contains(commands(a)[0], "sleep") {
		t.Errorf("without the helper it is not slow: %q, %v", commands(a), err)
	}
}

func TestSlowTypingStopsInTheMiddle(t *testing.T) {
	for name, c := range map[string]struct {
		reply phonetest.Reply
		err   error
	}{
		"a letter is refused": {phonetest.Reply{Stderr: "Error: java.lang.NullPointerException\n"}, ErrPartlyTyped},
		"all is forbidden":    {phonetest.Reply{Stderr: "java.lang.SecurityException: INJECT_EVENTS\n"}, ErrDeviceSetup},
		"no answer":           {phonetest.Reply{Hang: true}, ErrUnknownOutcome},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, _ := attached(t, phonetest.Handset{}, replies("input text", c.reply))
			p.Under(forever()).Distrust(Typing)
			start := time.Now()
			if err := p.Under(forever()).InputText(t.Context(), "abcdefghij"); !errors.Is(err, c.err) || time.Since(start) > 25*time.Second {
				t.Errorf("%s: %v after %s", name, err, time.Since(start))
			}
		})
	}
}

// TestTypedTextIsNotTold: phones repeat what they could not type, and it may be a password.
func TestTypedTextIsNotTold(t *testing.T) {
	for _, reply := range []phonetest.Reply{
		{Stderr: "Error: Invalid arguments for command: text hunter2\n", Exit: 255},
		{Stderr: "java.lang.SecurityException: not for hunter2\n"},
		{Stderr: "Error: java.lang.NullPointerException: hunter2\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, _ := attached(t, phonetest.Handset{}, replies("input text", reply))
			err := p.Under(forever()).InputText(t.Context(), "hunter2")
			if !errors.Is(err, ErrRejected) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestClearText(t *testing.T) {
	for name, c := range map[string]struct {
		sdk, length int
		distrusted  bool
		sent        string
		err         error
	}{
		"Android 13":             {33, 5, false, "input keycombination 113 29 && input keyevent 67", nil},
		"of unknown length":      {34, 0, false, "input keycombination 113 29 && input keyevent 67", nil},
		"once it did not work":   {34, 2, true, "input keyevent 123 67 67 112 112", nil},
		"Android 12":             {31, 3, false, "input keyevent 123 67 67 67 112 112 112", nil},
		"Android 7":              {24, 1, false, "input keyevent 123 67 112", nil},
		"nothing on Android 7":   {24, 0, false, "", nil},
		"more than a field has":  {34, maxCleared + 1, false, "", ErrBadArgument},
		"less than nothing":      {34, -1, false, "", ErrBadArgument},
		"a long one, Android 10": {29, maxCleared, false, "input keyevent 123" + strings.Repeat(" 67", maxCleared) + strings.Repeat(" 112", maxCleared), nil},
	} {
		p, a := attached(t, phonetest.Handset{SDK: c.sdk}, nil)
		controls := p.Under(forever())
		if c.distrusted && !controls.Distrust(Clearing) {
			t.Errorf("%s: no other way", name)
		}
		if err := controls.ClearText(t.Context(), c.length); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(commands(a), "|"); got != c.sent {
			t.Errorf("%s: sent %.100q", name, got)
		}
	}
}
