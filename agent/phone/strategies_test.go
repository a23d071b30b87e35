package phone

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

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
