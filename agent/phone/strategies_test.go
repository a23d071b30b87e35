package phone

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/agent/phone/phonetest"
)

// TestKnownStrategiesSpareRoundTrips: a phone that is known is attached in one
// round trip, without any screenshot.
func TestKnownStrategiesSpareRoundTrips(t *testing.T) {
	script := func(r phonetest.Request) phonetest.Reply {
		if r.Command == "screencap -p" {
			return phonetest.Reply{Stdout: "no\n"}
		}
		return phonetest.Handset{Width: 9, Height: 20, Focus: "com.shop/com.shop.Main"}.Reply(r)
	}
	a := phonetest.New(script)
	p, err := Attach(t.Context(), a, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(a.Sent()); n < 4 {
		t.Errorf("an unknown phone took %d round trips: was every screenshot timed?", n)
	}
	if s := p.State(t.Context()); failures(s) != "" {
		t.Errorf("state %+v", s)
	}
	kept, err := json.Marshal(p.Strategies())
	if err != nil {
		t.Fatal(err)
	}
	var known Strategies
	if err := json.Unmarshal(kept, &known); err != nil || !reflect.DeepEqual(known, p.Strategies()) {
		t.Fatalf("%s: %v", kept, err)
	}

	a = phonetest.New(script)
	if p, err = Attach(t.Context(), a, Options{Strategies: known}); err != nil {
		t.Fatal(err)
	}
	if n := len(a.Sent()); n != 1 {
		t.Errorf("a known phone took %d round trips: %v", n, a.Sent())
	}
	if got := p.Strategies(); !reflect.DeepEqual(got, known) {
		t.Errorf("%+v became %+v", known, got)
	}
	a.Forget()
	if s := p.State(t.Context()); failures(s) != "" || len(a.Sent()) != 1 {
		t.Errorf("state in %d round trips", len(a.Sent()))
	}
	for _, most := range []int{2, 1} { // the first also asks which displays there are
		a.Forget()
		if _, err := p.Screenshot(t.Context()); err != nil || len(a.Sent()) > most {
			t.Errorf("screenshot in %d round trips, %v", len(a.Sent()), err)
		}
	}
}

// TestWrongStrategiesAreChosenAnew: what a record tells of another phone, or
// nonsense, costs time and nothing else.
func TestWrongStrategiesAreChosenAnew(t *testing.T) {
	h := phonetest.Handset{Width: 9, Height: 20, Focus: "com.shop/com.shop.Main", Tree: goodTree}
	a := phonetest.New(func(r phonetest.Request) phonetest.Reply {
		if strings.HasSuffix(r.Command, "/dev/tty") {
			return phonetest.Reply{Stdout: "java.io.FileNotFoundException: /dev/tty\n"}
		}
		return h.Reply(r)
	})
	p, err := Attach(t.Context(), a, Options{Strategies: Strategies{
		Screenshot: []string{"png", "telepathy", "png"}, Tree: TreeTerminal, Header: 12,
		Parts: map[string]string{"focus": "activities", "lock": "trust", "display": "display", "keyboard": "mind"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Strategies().Screenshot; got[0] != "png" || !slices.Contains(got, "raw") || slices.Contains(got, "telepathy") {
		t.Errorf("screenshots %q", got)
	}
	if s := p.State(t.Context()); failures(s) != "" {
		t.Errorf("state fails: %s", failures(s))
	}
	if _, err := p.Screenshot(t.Context()); err != nil || p.Info().Screenshot != "raw" {
		t.Errorf("screenshot by %q, %v", p.Info().Screenshot, err)
	}
	if _, err := p.Tree(t.Context()); err != nil {
		t.Error(err)
	}
	want := map[string]string{"focus": "window", "lock": "policy", "display": "window", "keyboard": "input_method", "windows": "windows"}
	if got := p.Strategies(); !maps.Equal(got.Parts, want) || got.Tree != TreeFile {
		t.Errorf("chosen %+v", got)
	}
}

func TestStrategiesOfARecordAreChecked(t *testing.T) {
	parts := map[string]string{"focus": "window", "Bad": "x", "x": "a b", "long": strings.Repeat("x", maxWayName+1)}
	for i := range 2 * maxParts {
		parts["part"+strings.Repeat("x", i%30)] = "way"
	}
	got := Strategies{
		Screenshot: []string{"gzip", "raw", "gzip", "; reboot"}, Header: 13, Tree: "x", Parts: parts, Typing: "x", Clearing: "x",
		Keyboard: "com.own/.Ime; reboot",
	}.checked()
	if !slices.Equal(got.Screenshot, []string{"gzip", "raw"}) || got.Header != 0 || got.Tree+got.Typing+got.Clearing+got.Keyboard != "" || len(got.Parts) > maxParts {
		t.Errorf("%+v", got)
	}
	for part, way := range got.Parts {
		if !isWayName(part) || !isWayName(way) {
			t.Errorf("part %q by %q", part, way)
		}
	}
	whole := Strategies{
		Screenshot: []string{"png"}, Header: 16, Tree: TreeFile, Parts: map[string]string{"focus": "window"}, Typing: TypeHelper,
		Clearing: ClearCharacters, Keyboard: "com.own.x/.Ime$A",
	}
	if got := whole.checked(); !reflect.DeepEqual(got, whole) {
		t.Errorf("%+v became %+v", whole, got)
	}
}

func TestStrategiesAreTheCallersOwn(t *testing.T) {
	p, _ := attached(t, phonetest.Handset{}, nil)
	s := p.Strategies()
	s.Parts["focus"], s.Screenshot[0] = "x", "x"
	if got := p.Strategies(); got.Parts["focus"] == "x" || got.Screenshot[0] == "x" {
		t.Errorf("a caller changed %+v", got)
	}
}

// What was odd for a moment does not slow a phone down for ever, and what is odd
// for good costs one round trip now and then.
func TestASlowerWayGivesWayAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd := true
		p, a := attached(t, phonetest.Handset{}, func(r phonetest.Request) (phonetest.Reply, bool) {
			switch {
			case strings.HasPrefix(r.Command, "dumpsys window policy"):
				return phonetest.Reply{Stdout: "mIsShowing=true\n"}, odd
			case strings.HasPrefix(r.Command, "dumpsys power"):
				return phonetest.Reply{Stdout: "mWakefulness=Awake\n"}, true
			}
			return phonetest.Reply{}, false
		})
		ask := func(trips int, way string) {
			t.Helper()
			a.Forget()
			if _, err := p.Lock(t.Context()); err != nil || len(a.Sent()) != trips || p.Strategies().Parts["lock"] != way {
				t.Errorf("%v in %d round trips by %q, want %d by %q", err, len(a.Sent()), p.Strategies().Parts["lock"], trips, way)
			}
		}
		for range 3 {
			ask(2, "power")
			for range 9 {
				time.Sleep(wayLife / 10)
				ask(1, "power")
			}
			time.Sleep(wayLife / 10)
		}
		odd = false
		ask(1, "policy")
	})
}

// A display in the middle of turning is read again before another way is taken.
func TestATurningDisplayIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 0
		h := phonetest.Handset{Focus: "com.shop/com.shop.Main"}
		p, a := attached(t, h, func(r phonetest.Request) (phonetest.Reply, bool) {
			if !strings.HasPrefix(r.Command, "dumpsys window displays") || left == 0 {
				return phonetest.Reply{}, false
			}
			left--
			reply := h.Reply(r)
			reply.Stdout = strings.Replace(reply.Stdout, "mRotation=0", "mRotation=1", 1)
			return reply, true
		})
		left = 4
		if s := p.State(t.Context()); failures(s) != "" || s.Display != (Display{1080, 2400, 0, 420}) || len(a.Sent()) != 5 {
			t.Errorf("%s %+v after %d round trips", failures(s), s.Display, len(a.Sent()))
		}
		left = 1 << 30
		if d, err := p.Display(t.Context()); err != nil || d != (Display{2400, 1080, 1, 420}) {
			t.Errorf("a phone that always says so: %+v, %v", d, err)
		}
	})
}
