package firmware_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/firmware/metrics"
	"phonerack/firmware/status"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim"
)

const pagePIN = "482913"

// freeAddress is one of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// visitor is somebody before a rack's page.
type visitor struct {
	*http.Client
	t   *testing.T
	url string
}

// withPage has a rack serve its page and log into a book; the visitor is who comes.
func withPage(t *testing.T, log io.Writer) (func(*firmware.Options), *visitor) {
	t.Helper()
	address := freeAddress(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	v := &visitor{&http.Client{Jar: jar, Transport: transport, Timeout: 30 * time.Second}, t, "http://" + address}
	return func(o *firmware.Options) {
		o.Config.Page = config.Page{Listen: []string{address}, PIN: pagePIN, Hosts: []string{"rack7.lan"}}
		logs := firmware.NewLogs(config.Log{}, io.MultiWriter(testWriter{t}, log), nil)
		o.Logger, o.Level, o.Book = logs.Logger, logs.Level, logs.Book
	}, v
}

// ask requests JSON, or HTML where page is true, and gives the status and the body.
func (v *visitor) ask(method, path, form string, page bool) (int, string) {
	v.t.Helper()
	var answer *http.Response
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) { // the listener is a part as any other: it comes with the start
		request, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(form))
		if err != nil {
			v.t.Fatal(err)
		}
		request.Header.Set("Accept", "application/json")
		if page {
			request.Header.Set("Accept", "text/html")
		}
		if form != "" {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if answer, err = v.Do(request); err == nil {
			break
		}
		if time.Now().After(end) {
			v.t.Fatal(err)
		}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func (v *visitor) get(path string) string {
	v.t.Helper()
	code, body := v.ask("GET", path, "", false)
	if code != http.StatusOK {
		v.t.Fatalf("%s: %d %s", path, code, body)
	}
	return body
}

func (v *visitor) signIn(name string) {
	v.t.Helper()
	if code, body := v.ask("POST", "/signin", url.Values{"pin": {pagePIN}, "name": {name}}.Encode(), false); code != http.StatusOK {
		v.t.Fatalf("sign in: %d %s", code, body)
	}
}

// act presses a button.
func (v *visitor) act(name string, slot int, more ...string) (int, string) {
	v.t.Helper()
	form := url.Values{"act": {name}}
	if slot != 0 {
		form.Set("slot", fmt.Sprint(slot))
	}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return v.ask("POST", "/act", form.Encode(), false)
}

// slot is a slot as the page's JSON tells it.
func (v *visitor) slot(n int) (s status.Slot, events []status.Event) {
	v.t.Helper()
	var got struct {
		Slot   status.Slot    `json:"slot"`
		Events []status.Event `json:"events"`
	}
	if err := json.Unmarshal([]byte(v.get(fmt.Sprint("/slot/", n))), &got); err != nil {
		v.t.Fatal(err)
	}
	return got.Slot, got.Events
}

// TestAHungPhoneIsOnThePage: what is wrong, why and what to do, in both languages.
func TestAHungPhoneIsOnThePage(t *testing.T) {
	t.Parallel()
	serve, v := withPage(t, io.Discard)
	b := newBench(t, 1)
	b.change = func(o *firmware.Options) {
		hasty(o)
		serve(o)
		o.Config.Health.Probe.Confirm = 1
		o.Patience = 2 * time.Second // beside up to 20 s, if it hangs while it is measured
	}
	system := &stuck{Device: b.phones[1].device}
	var err error
	if b.phones[1].Phone, err = phonesim.New(phonesim.Config{Android: 14, Serial: "SIM0001", System: system}); err != nil {
		t.Fatal(err)
	}
	b.phones[1].plug(t)
	b.start()
	b.health(1, health.Well)
	system.frozen.Store(true)
	b.health(1, health.Recovering)
	s, _ := v.slot(1)
	if s.State != health.Recovering || s.Main.Code != string(health.Hung) || s.Rung == "" || s.Power != status.PowerUnknown || s.PowerActs {
		t.Errorf("%+v", s)
	}
	for _, lang := range wire.Languages() {
		if code, _ := v.ask("POST", "/language", "lang="+lang, true); code != http.StatusOK {
			t.Fatalf("language %s: %d", lang, code)
		}
		_, page := v.ask("GET", "/slot/1", "", true)
		title, why, do := s.Main.Say(lang)
		for _, want := range []string{title, why, do} {
			if !strings.Contains(page, htmlEscaped(want)) {
				t.Errorf("the page in %s has no %q", lang, want)
			}
		}
	}
	system.frozen.Store(false)
	b.health(1, health.Well)
}

// TestWhatRecoveryDidIsOnThePageAndInMetrics: while somebody has the phone it waits, and then it helps.
func TestWhatRecoveryDidIsOnThePageAndInMetrics(t *testing.T) {
	t.Parallel()
	serve, v := withPage(t, io.Discard)
	b, _ := newPorts(t, map[int]phonesim.Faults{1: {Hang: true}}, onBoard(t, usbBoard+"[[hub]]\nname = \"A\"\npath = \"1-1\"\npower = \"ports\"\n"), serve)
	held, err := firmware.LeasesOf(b.rack).Acquire(1, lease.Holder{Kind: lease.Hold, Who: "kim"}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b.health(1, health.Recovering)
	s, _ := v.slot(1)
	if s.State != health.Recovering || s.Main.Code != string(health.Offline) || s.Hub != "A" || s.Lease == nil || s.Lease.Holder.Who != "kim" ||
		s.Power != status.PowerOn || !s.PowerActs || s.Outlet == nil || s.Port != "1-1.1" {
		t.Errorf("%+v", s)
	}
	if _, page := v.ask("GET", "/slot/1", "", true); !strings.Contains(page, "not seen yet whether switching it off takes the power") {
		t.Error("the page does not say what is known of the port")
	}
	held.Release()
	b.health(1, health.Well)
	s, events := v.slot(1)
	if s.Phone == nil || s.Phone.Serial != "PHONE1" || s.Phone.Model == "" || !s.Phone.Ready || s.Lease != nil {
		t.Errorf("afterwards: %+v", s)
	}
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if all := strings.Join(kinds, " "); !strings.Contains(all, "recovery.port_cycle") || !strings.Contains(all, "recovery.resync") || !strings.Contains(all, "phone.ready") {
		t.Errorf("events: %s", all)
	}
	var metric metrics.Rack
	read := func(m metrics.Slot) bool { return m.Phone != nil && m.Phone.Battery != nil }
	b.within("the batteries of both", func() bool { // soon after the first look
		metric = firmware.MetricsOf(b.rack).Rack()
		return read(metric.Slots[0]) && read(metric.Slots[1])
	})
	var snap status.Snapshot
	if err := json.Unmarshal([]byte(v.get("/")), &snap); err != nil {
		t.Fatal(err)
	}
	if len(snap.Hubs) != 1 || !snap.Hubs[0].On || !snap.Hubs[0].Switched || len(snap.Slots) != 2 || snap.Rack.Boot == "" || snap.Rack.Name != "usb" || snap.Rack.Board == "" {
		t.Errorf("the rack: %+v, hubs %+v", snap.Rack, snap.Hubs)
	}
	if p := snap.Slots[1].Phone; p == nil || p.Battery == nil || p.Battery.Celsius == nil || p.Storage == nil || p.Storage.Total == 0 {
		t.Errorf("the other phone: %+v", p)
	}
	var cycles, done int64
	for _, m := range metric.Slots {
		cycles += m.Cycles
		for a, n := range m.Attempts {
			if m.Number == 1 && a.Result == health.Done {
				done += n
			}
		}
		if m.State != health.Well || !read(m) || m.LastSeen.IsZero() || m.Leased {
			t.Errorf("metrics of slot %d: %+v", m.Number, m)
		}
	}
	if cycles != 1 || done != 3 {
		t.Errorf("%d cycles and %d acts are counted", cycles, done)
	}
}

func htmlEscaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "'", "&#39;", `"`, "&#34;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// TestEachActOfThePageIsTheActionOfItsName: it does what rackctl does, and stands in the audit log under the name that was
// typed.
func TestEachActOfThePageIsTheActionOfItsName(t *testing.T) {
	t.Parallel()
	var log lockedText
	serve, v := withPage(t, &log)
	b, ports := newPorts(t, nil, serve, cutting)
	b.health(1, health.Well)
	b.health(2, health.Well)
	if code, body := v.act("power_cycle", 1); code != http.StatusUnauthorized {
		t.Fatalf("without the PIN: %d %s", code, body)
	}
	v.signIn("kim")
	press := func(name string, slot int, more ...string) {
		t.Helper()
		if code, body := v.act(name, slot, more...); code != http.StatusOK {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	press("power_cycle", 1) // takes longer than the page waits: it has begun
	b.health(1, health.Well)
	b.within("the port off and on", func() bool { // hasty recovery may do it once more
		return strings.HasPrefix(ports[1].switched(), "false true")
	})
	press("quarantine", 2, "minutes", "30", "reason", "swollen")
	if s := b.health(2, health.Quarantined); s.Ends < 25*time.Minute || !strings.Contains(fmt.Sprint(s.Others), "swollen") || !strings.Contains(fmt.Sprint(s.Others), "page/kim") {
		t.Errorf("quarantine: %+v", s)
	}
	if code, body := v.act("retry", 2); code != http.StatusConflict {
		t.Errorf("retry in quarantine: %d %s", code, body)
	}
	press("release", 2)
	b.health(2, health.Well)
	press("slot_maintenance_on", 2)
	if s := b.health(2, health.Maintenance); s.Left != "maintenance" {
		t.Errorf("maintenance: %+v", s)
	}
	if code, body := v.act("power_cycle", 2); code != http.StatusConflict || !strings.Contains(body, "aintenance") {
		t.Errorf("a cycle in maintenance: %d %s", code, body)
	}
	press("slot_maintenance_off", 2)
	press("maintenance_on", 0)
	var rack action.RackStatus
	if err := b.Call(t.Context(), "rack_status", nil, &rack); err != nil || !rack.Maintenance {
		t.Errorf("maintenance of the rack: %+v, %v", rack, err)
	}
	press("maintenance_off", 0)
	b.health(2, health.Well)
	if code, body := v.act("link_retry", 0); code != http.StatusConflict {
		t.Errorf("the cloud of a rack without one: %d %s", code, body)
	}
	ports[1].take()
	b.finds(1, string(health.Dead))
	b.within("recovery gives the slot back", func() bool {
		code, _ := v.act("forget", 1)
		return code == http.StatusOK
	})
	b.health(1, health.Empty)
	began := time.Now()
	press("identify", 2) // goes on for half a minute
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the page waited %v for the end of an act", took)
	}
	if held, is := firmware.LeasesOf(b.rack).Lookup(2); !is || held.Holder.Who != "identify" {
		t.Errorf("nothing shows itself: %+v", held)
	}
	if code, body := v.act("power_cycle", 2); code != http.StatusConflict || !strings.Contains(body, "held by identify") {
		t.Errorf("a phone that somebody has: %d %s", code, body)
	}
	if code, body := v.act("identify_rack", 0); code != http.StatusConflict { // there is no light, and no other phone
		t.Errorf("identify the rack: %d %s", code, body)
	}
	for _, line := range []string{
		"action=power_cycle actor=page/kim via=page", "action=quarantine actor=page/kim via=page", "action=quarantine_end actor=page/kim", "action=maintenance actor=page/kim",
		"action=slot_forget actor=page/kim via=page",
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("not in the audit log: %s", line)
		}
	}
	if took := b.stop(); took > 8*time.Second { // a phone that blinks is left bright
		t.Errorf("the stop took %v", took)
	}
}

// TestThePagesDoors: PIN, Host and the stream of a real rack.
func TestThePagesDoors(t *testing.T) {
	t.Parallel()
	serve, v := withPage(t, io.Discard)
	b := newBench(t, 2)
	b.change = func(o *firmware.Options) { hasty(o); serve(o) }
	b.phones[1].plug(t)
	b.start()
	b.health(1, health.Well)
	if code, body := v.ask("POST", "/signin", "pin=482914", false); code != http.StatusForbidden || strings.Contains(body, pagePIN) {
		t.Errorf("a wrong PIN: %d %s", code, body)
	}
	if code, _ := v.ask("POST", "/signin", "pin="+pagePIN, false); code != http.StatusTooManyRequests {
		t.Errorf("right after it: %d", code)
	}
	for host, want := range map[string]int{"rack7.lan": http.StatusOK, "evil.example": http.StatusMisdirectedRequest, "192.0.2.7": http.StatusMisdirectedRequest} {
		request, err := http.NewRequestWithContext(t.Context(), "GET", v.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := v.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("asked as %s: %d", host, answer.StatusCode)
		}
	}
	if code, page := v.ask("GET", "/slot/1", "", true); code != http.StatusOK || !strings.Contains(page, "<!doctype html>") || !strings.Contains(page, "SIM0001") {
		t.Errorf("as HTML: %d", code)
	}

	b.within("what the phone tells of itself", func() bool {
		s, _ := v.slot(1)
		return s.Phone != nil && s.Phone.Battery != nil && s.Phone.Storage != nil
	})
	changes := v.stream()
	<-changes // what it begins with
	select {
	case at := <-changes:
		t.Errorf("a change at %v, and nothing had changed", at)
	case <-time.After(2 * time.Second): // ten looks at the phone, and four at the rack
	}
	began := time.Now()
	b.phones[1].unplug()
	select {
	case at := <-changes:
		if took := at.Sub(began); took > 2*time.Second {
			t.Errorf("the change was told after %v", took)
		}
	case <-time.After(10 * time.Second):
		t.Error("the change was not told")
	}
	if s, _ := v.slot(1); s.Phone != nil {
		t.Errorf("the phone that left is still there: %+v", s.Phone)
	}
	if took := b.stop(); took > 5*time.Second { // with the stream open
		t.Errorf("the stop took %v", took)
	}
	for range changes { // until the stream has ended
	}
}

// stream opens the page's stream of events, and gives the times of its changes until it ends.
func (v *visitor) stream() <-chan time.Time {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.t.Context()), time.Minute)
	request, err := http.NewRequestWithContext(ctx, "GET", v.url+"/events", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	answer, err := v.Transport.RoundTrip(request)
	if err != nil {
		v.t.Fatal(err)
	}
	times := make(chan time.Time, 100)
	go func() {
		defer close(times)
		defer cancel()
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if lines.Text() == "event: change" {
				times <- time.Now()
			}
		}
	}()
	return times
}

// TestPicturesTasksAndTheBundleOfARack: what needs the PIN, and that no secret of the configuration leaves.
func TestPicturesTasksAndTheBundleOfARack(t *testing.T) {
	t.Parallel()
	serve, v := withPage(t, io.Discard)
	b := newBench(t, 1)
	secrets := map[string]string{"key": "sk-planner-2f7c", "token": "Zq9w-metrics-token-33", "pin": pagePIN, "proxy": "hunter2"}
	for name, text := range secrets {
		if err := os.WriteFile(filepath.Join(b.config.Rack.State+"-"+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.change = func(o *firmware.Options) {
		hasty(o)
		serve(o)
		o.Config.Page.PINFile = o.Config.Rack.State + "-pin"
		o.Config.Planner.Direct.KeyFile = o.Config.Rack.State + "-key"
		o.Config.Metrics.TokenFile = o.Config.Rack.State + "-token"
		o.Config.Cloud.Proxy = "http://kim:hunter2@proxy.example:3128"
		o.Config.Skills.Servers = []config.MCPServer{{Name: "files", Command: []string{"/bin/files", "hunter2"}, Env: map[string]string{"API_KEY": "hunter2"}}}
	}
	b.phones[1].plug(t)
	b.start()
	b.health(1, health.Well)
	b.await(1, action.Ready)
	for _, path := range []string{"/slot/1/screen.jpg", "/tasks", "/log", "/support/bundle.zip"} {
		if code, _ := v.ask("GET", path, "", false); code != http.StatusUnauthorized {
			t.Errorf("%s without the PIN: %d", path, code)
		}
	}
	v.signIn("")
	if _, picture := v.ask("GET", "/slot/1/screen.jpg", "", false); !strings.HasPrefix(picture, "\xff\xd8") {
		t.Errorf("no picture: %.80q", picture)
	}
	task := b.runTask(1, "open settings")
	_, ended := b.watchTask(task.ID)
	if all := v.get("/tasks"); !strings.Contains(all, task.ID) || !strings.Contains(all, string(ended.State)) {
		t.Errorf("tasks: %s", all)
	}
	var shown struct {
		Steps []struct {
			Image, Scene string
		} `json:"steps"`
	}
	if err := json.Unmarshal([]byte(v.get("/tasks/"+task.ID)), &shown); err != nil || len(shown.Steps) == 0 || shown.Steps[0].Scene != "" {
		t.Errorf("steps: %+v, %v", shown, err)
	}
	if len(shown.Steps) > 0 && shown.Steps[0].Image != "" {
		if _, picture := v.ask("GET", "/tasks/"+task.ID+"/"+shown.Steps[0].Image, "", false); !strings.HasPrefix(picture, "\xff\xd8") {
			t.Errorf("no picture of a step: %.80q", picture)
		}
	}
	if code, body := v.ask("GET", "/tasks/"+task.ID+"/999.jpg", "", false); code != http.StatusNotFound {
		t.Errorf("a picture that is not there: %d %s", code, body)
	}
	if lines := v.get("/log"); !strings.Contains(lines, "rack runs") {
		t.Errorf("log: %.300s", lines)
	}
	_, page := v.ask("GET", "/controller", "", true)
	for _, want := range []string{"health of the slots", "page on 127.0.0.1", `msg=page `, `part="page on 127.0.0.1`} {
		if !strings.Contains(page, htmlEscaped(want)) {
			t.Errorf("the controller's page has no %s", want)
		}
	}

	_, bundle := v.ask("GET", "/support/bundle.zip?pictures=1", "", false)
	z, err := zip.NewReader(strings.NewReader(bundle), int64(len(bundle)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
		for name, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has the %s", f.Name, name)
			}
		}
	}
	for name, part := range map[string]string{
		"files/configuration.txt": `rack.id = "bench"`, "files/health.json": `"slot": 1`, "snapshot.json": "SIM0001", "tasks.json": task.ID,
		"events.json": "phone.ready", "log.txt": "rack runs", "pictures/slot-1.jpg": "\xff\xd8", "errors.txt": "",
	} {
		if text, ok := files[name]; !ok || !strings.Contains(text, part) {
			t.Errorf("%s is %.300q", name, text)
		}
	}
}

// TestWithoutAPageNothingListens, and a page whose address is taken stops no phone.
func TestWithoutAPageNothingListens(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.phones[1].plug(t)
	if c := b.config; len(c.Page.Listen) != 0 || c.Metrics.Listen != "" {
		t.Fatalf("the page is on by default: %+v, %+v", c.Page, c.Metrics)
	}
	b.start()
	for _, s := range firmware.SourceOf(b.rack).Snapshot().Services {
		if strings.HasPrefix(s.Name, "page") || s.Name == "metrics" || s.Name == "changes for the page" {
			t.Errorf("%s runs", s.Name)
		}
	}
	b.stop()

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log lockedText
	b.log = slog.New(slog.NewTextHandler(&log, nil))
	free := freeAddress(t)
	b.config.Page.Listen = []string{taken.Addr().String(), free}
	b.start()
	b.await(1, action.Ready)
	want := "the page cannot be served because another program has the address " + taken.Addr().String() + ": end that program, or choose another address"
	for end := time.Now().Add(10 * time.Second); !strings.Contains(log.String(), want) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	if !strings.Contains(log.String(), want) {
		t.Errorf("the log does not say so: %s", log.String())
	}
	v := &visitor{&http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, t, "http://" + free}
	if body := v.get("/controller"); !strings.Contains(body, `"name":"page on `+taken.Addr().String()+`"`) {
		t.Errorf("the other address: %s", body)
	}
	taken.Close()
	v.url = "http://" + taken.Addr().String()
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) { // the supervisor waits 15 s at most
		answer, err := v.Get(v.url + "/")
		if err == nil {
			answer.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the address was not tried again: %v", err)
		}
	}
}

// TestMetricsOfARack: each state of each slot, with and without a phone, and who may see them.
func TestMetricsOfARack(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.change = hasty
	b.config.Metrics.Listen = freeAddress(t)
	b.phones[1].plug(t)
	b.start()
	b.health(1, health.Well)
	b.health(2, health.Empty)
	v := &visitor{&http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, t, "http://" + b.config.Metrics.Listen}
	text := v.get("/metrics")
	for n, is := range map[int]health.State{1: health.Well, 2: health.Empty} {
		for _, s := range health.States() {
			value := 0
			if s == is {
				value = 1
			}
			if line := fmt.Sprintf("phonerack_slot_state{slot=\"%d\",state=%q} %d\n", n, s, value); !strings.Contains(text, line) {
				t.Errorf("missing: %s", line)
			}
		}
	}
	for _, line := range []string{`phonerack_rack_info{rack="bench",`, `serial="SIM0001",slot="1"} 1`, `phonerack_phone_battery_ratio{slot="2"} NaN`, "phonerack_mqtt_connected 0", "phonerack_tasks_running 0"} {
		if !strings.Contains(text, line) {
			t.Errorf("missing: %s", line)
		}
	}
	if code, _ := v.ask("GET", "/", "", true); code != http.StatusNotFound {
		t.Errorf("something else than metrics: %d", code)
	}
}
