package status

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/hal/power"
	"phonerack/sync/wire"
)

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// TestBothLanguagesAreComplete: the same keys with the same placeholders, each used, and each that is used there.
func TestBothLanguagesAreComplete(t *testing.T) {
	en, zh := catalogues()["en"], catalogues()["zh"]
	for key, text := range en.Words {
		other, ok := zh.Words[key]
		if !ok {
			t.Errorf("%s is not there in Chinese", key)
			continue
		}
		a, b := placeholder.FindAllString(text, -1), placeholder.FindAllString(other, -1)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("%s has %v in English, %v in Chinese", key, a, b)
		}
	}
	for key := range zh.Words {
		if _, ok := en.Words[key]; !ok {
			t.Errorf("%s is not there in English", key)
		}
	}
	used := usedKeys(t)
	for key := range used {
		if _, ok := en.Words[key]; !ok {
			t.Errorf("%s is used and not there", key)
		}
	}
	for key := range en.Words {
		if !used[key] {
			t.Errorf("%s is used nowhere", key)
		}
	}
	if len(en.Words) < 100 {
		t.Errorf("%d words only", len(en.Words))
	}
}

// usedKeys are those that templates and code name, and those of the values that have words.
func usedKeys(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	quoted := regexp.MustCompile(`(?:\.T|T\(|say\([a-z.A-Z]+,|view\(r,|return|==) ?"([a-z_]+(?:\.[a-z_]+)*)"`)
	nav := regexp.MustCompile(`"(nav\.[a-z]+)"`)
	read := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".html") && !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range slices.Concat(quoted.FindAllStringSubmatch(string(text), -1), nav.FindAllStringSubmatch(string(text), -1)) {
			if strings.Contains(m[1], ".") || catalogues()["en"].Words[m[1]] != "" {
				used[m[1]] = true
			}
		}
		return err
	}
	if err := filepath.WalkDir(".", read); err != nil {
		t.Fatal(err)
	}
	delete(used, "why.leased") // has its sentence from the wire's catalogue
	for _, a := range acts {
		used["act."+a.name], used["done."+a.name] = true, true
	}
	for _, s := range health.States() {
		used["state."+string(s)] = true
	}
	for kind, values := range map[string][]string{
		"power":   {string(PowerOn), string(PowerOff), string(PowerUnknown)},
		"image":   {string(ImageGood), string(ImageTrial), string(ImageWriting), string(ImageBad), string(ImageEmpty)},
		"service": {string(ServiceRunning), string(ServiceRestarting), string(ServiceStopped)},
		"link":    {"stopped", "waiting", "connecting", "greeting", "online"},
		"task": {
			string(action.Running), string(action.Waiting), string(action.Paused), string(action.Succeeded), string(action.TaskError), string(action.Cancelled), string(action.TaskLost),
		},
		"event":  {"rack.started", "rack.part_panicked", "clock.jumped", "phone.left", "phone.ready", "phone.limited", "phone.unauthorized", "phone.lost", "phone.failed", "health.well", "health.needs_hands", "health.quarantined", "health.attention", "health.maintenance", "health.resting"},
		"rung":   {"quarantine"},
		"outlet": {"switching on", "switching off", "cycling"},
		"cut":    {"unseen", string(power.LeavesBus), string(power.Cuts), string(power.NoEffect), string(power.DataOnly), string(power.Repowers), string(power.ResetsHub)},
	} {
		for _, v := range values {
			used[kind+"."+v] = true
		}
	}
	for _, o := range health.Outcomes() {
		used["outcome."+string(o)] = true
	}
	for r := health.Rung(0); r.String() != "unknown"; r++ {
		used["rung."+r.String()], used["event.recovery."+r.String()] = true, true
	}
	return used
}

// TestEventsAreToldInWords: what a person reads has no codes where there are words, and what nobody knows is still there.
func TestEventsAreToldInWords(t *testing.T) {
	v := &view{Lang: "en"}
	for raw, want := range map[string]string{
		``: ``,
		`{"android":"14","model":"Pixel 7","reason":"no answer"}`:      `Android 14, Pixel 7, no answer`,
		`{"outcome":"not_cut"}`:                                        `the power was not cut`,
		`{"outcome":"of tomorrow"}`:                                    `of tomorrow`,
		`{"diagnosis":"fine","findings":["storage_low","tcp_open"]}`:   `storage almost full, ADB open on the network`,
		`{"diagnosis":"hung"}`:                                         `hangs`,
		`{"ms":-5250}`:                                                 `-5.25s`,
		`{"boots":3,"nested":{"a":1}}`:                                 `boots 3, nested map[a:1]`,
		`"no object"`:                                                  `"no object"`,
		`{"findings":"no list","ms":"no number","outcome":{"no":"w"}}`: `ms no number, map[no:w]`,
	} {
		if got := v.detail(json.RawMessage(raw)); got != want {
			t.Errorf("%s is %q, want %q", raw, got, want)
		}
	}
}

// TestTheReasonOfAStateComesFirst: that the phone is well explains no quarantine, no maintenance and nothing to look at.
func TestTheReasonOfAStateComesFirst(t *testing.T) {
	v := &view{Lang: "en"}
	find := func(codes ...string) (all []health.Finding) {
		for _, c := range codes {
			all = append(all, health.Finding{Code: c})
		}
		return all
	}
	for _, c := range []struct {
		state  health.State
		main   string
		others []health.Finding
		want   string
	}{
		{health.Well, "fine", nil, "fine"},
		{health.Attention, "fine", find("storage_low", "tcp_open"), "storage_low tcp_open"},
		{health.Quarantined, "hung", find("quarantined"), "quarantined hung"},
		{health.Quarantined, "fine", find("quarantined"), "quarantined"},
		{health.Maintenance, "fine", find("maintenance"), "maintenance"},
		{health.Maintenance, "dark", find("maintenance"), "dark maintenance"},
		{health.Recovering, "hung", find("cable_suspect"), "hung cable_suspect"},
		{health.Attention, "fine", nil, "fine"},
	} {
		var got []string
		for _, s := range v.reasons(&Slot{State: c.state, Main: find(c.main)[0], Others: c.others}) {
			got = append(got, s.Code)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s with %s and %v: %v, want %s", c.state, c.main, c.others, got, c.want)
		}
	}
}

func TestWhatIsLeftIsNeverSaidTooShort(t *testing.T) {
	v := &view{Lang: "en"}
	for d, want := range map[time.Duration]string{
		8*time.Hour - time.Second: "8 h", 25 * time.Minute: "25 min", 24*time.Minute + time.Second: "25 min", 59 * time.Second: "59 s", 1100 * time.Millisecond: "2 s", 0: "0 s",
	} {
		if got := v.Left(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"password = \"hunter2\"\nport = 1883":                                         "password = \"[redacted]\"\nport = 1883",
		`{"token":"abc","slot":3}`:                                                    `{"token":"[redacted]","slot":3}`,
		`api_key: 'a b c', next: 1`:                                                   `api_key: "[redacted]", next: 1`,
		"wifi psk=secret1 ssid=home":                                                  "wifi psk=\"[redacted]\" ssid=home",
		"mqtts://rack:hunter2@broker.example:8883/x":                                  "mqtts://[redacted]@broker.example:8883/x",
		"GET https://cdn.example/f?sig=abc&x=1 done":                                  "GET https://cdn.example/f?[redacted] done",
		"Authorization: Bearer abcdef123456":                                          "Authorization: \"[redacted]\" [redacted]",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter": "[redacted]\nafter",
		"-----BEGIN PRIVATE KEY-----\nMIIE without an end":                            "[redacted]",
		"seed " + strings.Repeat("0a", 32) + " of the rack":                           "seed [redacted] of the rack",
		"pin = 482913, and 482913 again":                                              "pin = \"[redacted]\", and [redacted] again",
		"pins: 4 lines; spin: 3; pinned":                                              "pins: 4 lines; spin: 3; pinned",
		"/sys/devices/platform/soc/usb/hub/port/and/so/on/power":                      "/sys/devices/platform/soc/usb/hub/port/and/so/on/power",
		"AAAAB3NzaC1yc2EAAAADAQABAAABgQC7b1m9Xy5pQw8n0+/== x":                         "[redacted] x",
		"password = \"never closed":                                                   "password = \"[redacted]\"",
		"the phone in slot 3 answers":                                                 "the phone in slot 3 answers",
		`"secret": "with \" a quote", "x": 1`:                                         `"secret": "[redacted]", "x": 1`,
	} {
		got := string(redact([]byte(in), "482913"))
		if in == "Authorization: Bearer abcdef123456" {
			if strings.Contains(got, "abcdef") {
				t.Errorf("%q becomes %q", in, got)
			}
			continue
		}
		if got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestCutKeepsRunesWhole(t *testing.T) {
	for n := range 12 {
		if got := cut("手机手机", n); strings.Contains(got, "\ufffd") || !strings.HasPrefix("手机手机", strings.TrimSuffix(got, "…")) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"", "text/html;q=0.5, application/json", "*/*;q=.5;q=1", "zh-CN,zh;q=0.9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		wantsJSON(header)
		if lang := language(header); !slices.Contains(wire.Languages(), lang) {
			t.Errorf("%q is answered in %q", header, lang)
		}
		ranges(header, func(_ string, weight int) {
			if weight < 0 || weight > 1000 {
				t.Errorf("%q has a weight of %d", header, weight)
			}
		})
	})
}

func FuzzRedact(f *testing.F) {
	f.Add("a = 1\n", "hunter2")
	f.Add(`{"x":"`, "482913482913")
	f.Fuzz(func(t *testing.T, around, secret string) {
		if !regexp.MustCompile(`^[a-zA-Z0-9]{8,}$`).MatchString(secret) || strings.Contains(around, secret) || strings.Contains(redacted, secret) {
			return
		}
		if got := string(redact([]byte(around+secret+around), secret)); strings.Contains(got, secret) {
			t.Errorf("%q is left in %q", secret, got)
		}
	})
}

// TestEachActIsAnAction: the registry takes what the page gives, and its answer is not about the words of the request.
func TestEachActIsAnAction(t *testing.T) {
	registry := action.New(actiontest.New(), lease.NewTable(lease.Options{Now: func() time.Duration { return 0 }}), slog.New(slog.DiscardHandler))
	for _, a := range acts {
		args := map[string]any{}
		if a.slot {
			args["slot"] = 1
		}
		if a.args != nil {
			more, err := a.args(func(string) string { return "30" })
			if err != nil {
				t.Fatalf("%s: %v", a.name, err)
			}
			maps.Copy(args, more)
		}
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := registry.Call(t.Context(), action.Actor{Name: "page", Role: action.Operator, Via: "page"}, a.action, raw, discard); err != nil {
			t.Errorf("%s: %s %s: %v", a.name, a.action, raw, err)
		}
	}
}

// TestAHolderIsNamedInTheReadersLanguage, in English as the lease's own sentences have it.
func TestAHolderIsNamedInTheReadersLanguage(t *testing.T) {
	for _, c := range []struct {
		h  lease.Holder
		zh string
	}{
		{lease.Holder{Kind: lease.Task, Who: "kim", TaskID: "01J0"}, "由 kim 启动的任务 01J0"},
		{lease.Holder{Kind: lease.Recovery, Who: lease.Identify}, "“识别”操作（正在显示其位置）"},
		{lease.Holder{Kind: lease.Recovery, Who: "health"}, "自动恢复"},
		{lease.Holder{Kind: lease.Hold, Who: "page/lee"}, "page/lee"},
	} {
		if got := holder("zh", c.h); got != c.zh {
			t.Errorf("%s, want %s", got, c.zh)
		}
		if got := holder("en", c.h); got != c.h.String() {
			t.Errorf("%s, want %s", got, c.h)
		}
	}
	leased := &Slot{Number: 3, Lease: &lease.State{Holder: lease.Holder{Kind: lease.Recovery, Who: "health"}}}
	for _, a := range acts {
		if a.name == "forget" && !strings.Contains(a.reason("zh", Snapshot{}, leased), "自动恢复") {
			t.Errorf("why it cannot be pressed: %s", a.reason("zh", Snapshot{}, leased))
		}
	}
}

// TestGuessersAreBounded: who comes from many addresses, as slowly as he must, fills no memory.
func TestGuessersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate("123456")
		for n := range 2 * maxGuessers {
			time.Sleep(time.Minute / allTries)
			if err := g.try(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), nil, "000000"); !wire.Is(err, wire.PINWrong) {
				t.Fatalf("guess %d: %v", n, err)
			}
			if len(g.bad) > maxGuessers {
				t.Fatalf("%d addresses are remembered", len(g.bad))
			}
		}
	})
}
