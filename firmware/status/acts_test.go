package status_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/firmware/status"
	"phonerack/sync/wire"
)

func TestAPageOfAnotherSiteDoesNothing(t *testing.T) {
	for _, header := range [][]string{
		{"Origin: http://evil.example"}, {"Origin: null"}, {"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site", "Origin: http://192.168.1.20"}, {"Origin: http://192.168.1.20:81"},
	} {
		b := signedIn(t)
		w := b.ask("POST", "/act", "act=identify&slot=3", header...)
		if w.Code != http.StatusForbidden || b.Calls() != "" {
			t.Errorf("%q: %d, did %q", header, w.Code, b.Calls())
		}
		if !strings.Contains(w.Body.String(), "another site") {
			t.Errorf("%q: no reason in %s", header, w.Body)
		}
	}
	b := signedIn(t)
	if w := b.ask("POST", "/act", "act=identify&slot=3", "Origin: http://192.168.1.20"); w.Code != http.StatusSeeOther {
		t.Errorf("the page's own form over plain HTTP: %d %s", w.Code, w.Body)
	}
}

func TestGETChangesNothing(t *testing.T) {
	b := signedIn(t)
	for _, target := range []string{"/", "/slot/3?act=power_cycle", "/act?act=power_cycle&slot=3", "/signout", "/language?lang=zh", "/controller", "/slot/3/screen", "/support/bundle.zip?pictures=1"} {
		w := b.ask("GET", target, "")
		if len(w.Result().Cookies()) > 0 {
			t.Errorf("GET %s sets a cookie", target)
		}
	}
	if b.Calls() != "" {
		t.Errorf("GETs did %s", b.Calls())
	}
	if w := b.ask("GET", "/log", ""); w.Code != 200 {
		t.Errorf("signed out by a GET: %d", w.Code)
	}
}

func TestActs(t *testing.T) {
	for _, c := range []struct{ form, want string }{
		{"act=identify&slot=3", `identify {"seconds":30,"slot":3}`},
		{"act=sign&slot=3", `sign {"slot":3}`},
		{"act=power_cycle&slot=3", `power_cycle {"slot":3}`},
		{"act=power_cycle&slot=7", `power_cycle {"slot":7}`}, // which has not cut the power so far
		{"act=hub_cycle&slot=22", `power_cycle {"hub":true,"slot":22}`},
		{"act=retry&slot=6", `slot_retry {"slot":6}`},
		{"act=quarantine&slot=3&minutes=30&reason=cable", `quarantine {"reason":"cable","seconds":1800,"slot":3}`},
		{"act=quarantine&slot=3&minutes=10080", `quarantine {"reason":"","seconds":604800,"slot":3}`},
		{"act=release&slot=7", `quarantine_end {"slot":7}`},
		{"act=slot_maintenance_on&slot=3", `maintenance {"slot":3}`},
		{"act=slot_maintenance_off&slot=9", `maintenance {"off":true,"slot":9}`},
		{"act=forget&slot=13", `slot_forget {"slot":13}`},
		{"act=identify_rack", `identify {"seconds":30}`},
		{"act=maintenance_on", `maintenance {}`},
		{"act=maintenance_off", `maintenance {"off":true}`},
		{"act=link_retry", `link_retry {}`},
	} {
		b := signedIn(t)
		w := b.ask("POST", "/act", c.form+"&next=/slot/3")
		if want := "page/Lee via page: " + c.want; w.Code != http.StatusSeeOther || b.Calls() != want {
			t.Errorf("%s: %d, did %q, want %q", c.form, w.Code, b.Calls(), want)
			continue
		}
		w = b.ask("GET", w.Header().Get("Location"), "")
		if !strings.Contains(w.Body.String(), `class="done" role="status"`) {
			t.Errorf("%s: the page does not say that it was done", c.form)
		}
	}
}

func TestActsThatAreNotDone(t *testing.T) {
	hands := func(s *status.Snapshot) { s.Rack.Maintenance = true }
	none := func(*status.Snapshot) {}
	dark := func(s *status.Snapshot) { s.Slots[11].Lit, s.Slots[12].Lit = false, false }
	for _, c := range []struct {
		name, form string
		change     func(*status.Snapshot)
		code       int
		why        string
	}{
		{"a port that cannot be switched", "act=power_cycle&slot=22", none, 409, "cannot be switched"},
		{"a hub of which somebody has a phone", "act=hub_cycle&slot=22", func(s *status.Snapshot) { s.Slots[23].Lease = s.Slots[11].Lease }, 409, "Somebody has a phone of this hub."},
		{"a hub with hands in another slot", "act=hub_cycle&slot=22", func(s *status.Snapshot) { s.Slots[23].Hands = true }, 409, "Hands are in a slot of this hub"},
		{"a hub in maintenance of the rack", "act=hub_cycle&slot=22", hands, 409, "Maintenance is on"},
		{"a busy phone that no light could show", "act=identify&slot=12", dark, 409, "Slot 12 is busy because it is held by task"},
		{"an absent phone that no light could show", "act=identify&slot=13", dark, 409, "The phone is not ready."},
		{"a sign where no phone is", "act=sign&slot=13", none, 409, "The phone is not ready."},
		{"a slot that is leased", "act=power_cycle&slot=12", none, 409, "Slot 12 is busy because it is held by task"},
		{"maintenance of the rack", "act=power_cycle&slot=3", hands, 409, "Maintenance is on"},
		{"maintenance of the slot", "act=power_cycle&slot=9", none, 409, "Maintenance is on"},
		{"maintenance of a slot within that of the rack", "act=slot_maintenance_on&slot=3", hands, 409, "whole rack"},
		{"retry of a phone that is well", "act=retry&slot=3", none, 409, "nothing to retry"},
		{"retry in quarantine", "act=retry&slot=7", none, 409, "in quarantine"},
		{"retry of an empty slot", "act=retry&slot=1", none, 409, "No phone"},
		{"quarantine of an empty slot", "act=quarantine&slot=1&minutes=30", none, 409, "No phone"},
		{"a length that is not offered", "act=quarantine&slot=3&minutes=31", none, 400, "offered"},
		{"a length that comes round", "act=quarantine&slot=3&minutes=99999999999999999999", none, 400, "offered"},
		{"a long reason", "act=quarantine&slot=3&minutes=30&reason=" + strings.Repeat("x", 201), none, 400, "200 bytes"},
		{"no such act", "act=format&slot=3", none, 404, "no action format"},
		{"no such slot", "act=identify&slot=61", none, 404, "no slot 61"},
		{"no number", "act=identify&slot=3x", none, 404, "no such page"},
		{"no slot", "act=identify", none, 404, "no such page"},
		{"not enrolled", "act=link_retry", func(s *status.Snapshot) { s.Rack.Link.Joined = false }, 409, "not enrolled"},
		{"a form too large", "act=identify&slot=3&x=" + strings.Repeat("x", 9000), none, 413, "8192"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := signedIn(t)
			b.Change(c.change)
			w := b.ask("POST", "/act", c.form)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.why) || b.Calls() != "" {
				t.Errorf("%d, did %q:\n%s", w.Code, b.Calls(), w.Body)
			}
		})
	}
}

// TestAnActThatTakesLong: the browser is answered, the act goes on, and only so many go on at once.
func TestAnActThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := signedIn(t)
		_, finish := b.Block()
		start := time.Now()
		if w := b.ask("POST", "/act", "act=identify&slot=3&next=/slot/3"); w.Code != http.StatusSeeOther || time.Since(start) != 4*time.Second {
			t.Errorf("%d after %v", w.Code, time.Since(start))
		}
		for range 7 {
			b.ask("POST", "/act", "act=identify&slot=3")
		}
		if w := b.ask("POST", "/act", "act=identify&slot=3"); w.Code != http.StatusTooManyRequests {
			t.Errorf("the ninth at once: %d", w.Code)
		}
		if b.Calls() != "" {
			t.Error("done before its time")
		}
		finish()
		synctest.Wait()
		if n := strings.Count(b.Calls(), "identify"); n != 8 {
			t.Errorf("%d were carried out", n)
		}
	})
}

// TestButtonsSayWhyTheyAreDisabled: what the page would refuse cannot be pressed, and says so beside the button.
func TestButtonsSayWhyTheyAreDisabled(t *testing.T) {
	b := signedIn(t)
	body := b.ask("GET", "/slot/12", "").Body.String()
	if !strings.Contains(body, `<button id="b-power_cycle" disabled aria-describedby="w-power_cycle">`) || !strings.Contains(body, `id="w-power_cycle">Slot 12 is busy`) {
		t.Errorf("power off and on of a leased slot:\n%s", body)
	}
	if !strings.Contains(body, `<button id="b-identify" aria-describedby="w-identify">`) || !strings.Contains(body, `id="w-identify">Somebody has the phone: its screen stays`) {
		t.Errorf("identify of a leased slot cannot be pressed, or does not say that only lights show it:\n%s", body)
	}
	if body := b.ask("GET", "/slot/1", "").Body.String(); !strings.Contains(body, `id="w-identify">No phone here is ready`) {
		t.Errorf("identify of an empty slot:\n%s", body)
	}
	if body := b.ask("GET", "/slot/3", "").Body.String(); !strings.Contains(body, `<button id="b-identify">`) {
		t.Errorf("identify of a free phone says more than it has to:\n%s", body)
	}
	b.cookie = ""
	if body = b.ask("GET", "/slot/3", "").Body.String(); !strings.Contains(body, `id="w-identify">Sign in with the PIN first.`) {
		t.Errorf("signed out:\n%s", body)
	}
}

func TestARefusalOfAnActionIsASentenceInTheReadersLanguage(t *testing.T) {
	b := signedIn(t)
	b.Refuse(wire.Refuse(wire.SlotBusy, map[string]any{"slot": 3, "holder": "<i>kim</i>", "until": "noon"}))
	for lang, want := range map[string]string{"en": "Slot 3 is busy because it is held by &lt;i&gt;kim", "zh": "插槽 3 正忙"} {
		w := b.ask("POST", "/act", "act=identify&slot=3&next=/slot/3", "Accept-Language: "+lang)
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `href="/slot/3"`) {
			t.Errorf("%s: %d\n%s", lang, w.Code, w.Body)
		}
	}
	w := b.ask("POST", "/act", "act=identify&slot=3", "Accept: application/json")
	if !strings.HasPrefix(w.Body.String(), `{"refusal":{"code":"slot_busy","args":{`) || w.Code != http.StatusConflict {
		t.Errorf("as JSON: %d %s", w.Code, w.Body)
	}
}

func TestFormsLeadBackToThisPageOnly(t *testing.T) {
	b := newBench()
	for next, want := range map[string]string{
		"/slot/3": "/slot/3", "": "/", "//evil.example": "/", `/\evil.example`: "/", "http://evil.example": "/", "/a?b": "/", "/x\r\nSet-Cookie: a=b": "/", "/" + strings.Repeat("a", 300): "/",
	} {
		w := b.ask("POST", "/language", url.Values{"lang": {"zh"}, "next": {next}}.Encode())
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%q leads to %q", next, got)
		}
	}
}
