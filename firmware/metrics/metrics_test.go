package metrics

import (
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"phonerack/firmware/health"
)

type fixed Rack

func (f fixed) Rack() Rack { return Rack(f) }

// bare is a rack that was just switched on; full has a phone, and everything has happened.
var (
	bare = fixed{ID: "rack-1", Version: "1.0", Slots: []Slot{{Number: 1, State: health.Empty}, {Number: 2, State: health.Empty}}, Hubs: []Hub{{Name: "A"}}}
	full = fixed{
		ID: "rack-1", Version: "1.0", Connected: true, Clock: true, Running: 2, Alarms: []health.Alarm{health.PowerAlarm},
		Slots: []Slot{
			{
				Number: 1, State: health.Well, LastSeen: time.Unix(1000, 500e6), Cycles: 3, Leased: true,
				Attempts: map[Attempt]int64{{health.Reboot, health.Done}: 4},
				Phone:    &Phone{Serial: "S1", Model: "M\xff\n" + strings.Repeat("é", 100), Android: "14", Battery: &Battery{55, 31.5}},
			},
			{Number: 2, State: "no word of health"},
			{Number: 2, State: health.Well},
		},
		Hubs: []Hub{{"A", 5}}, Tasks: map[Ending]int64{Failed: 6}, Restarts: map[string]int64{"owner of slot 1": 7}, LinesLost: 8,
	}
)

// gather is a scrape: value by series, and the names.
func gather(t *testing.T, s Source) (series map[string]float64, names []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(s))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series = map[string]float64{}
	for _, f := range families {
		names = append(names, f.GetName())
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			series[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return series, names
}

func TestEveryDocumentedMetricIsThereWithAndWithoutPhones(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(phonerack_[a-z_]+)").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1])
	}
	slices.Sort(documented)
	bareSeries, bareNames := gather(t, bare)
	fullSeries, fullNames := gather(t, full)
	if !slices.Equal(documented, bareNames) || !slices.Equal(documented, fullNames) {
		t.Errorf("documented  %v\nwithout any %v\nwith phones %v", documented, bareNames, fullNames)
	}
	for key := range bareSeries {
		if _, ok := fullSeries[key]; !ok && !strings.HasPrefix(key, "phonerack_phone_info") {
			t.Errorf("%s vanishes with a phone", key)
		}
	}
}

func TestPromlintIsClean(t *testing.T) {
	problems, err := testutil.CollectAndLint(newCollector(full))
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestValues(t *testing.T) {
	series, _ := gather(t, full)
	for key, want := range map[string]float64{
		"phonerack_slot_state slot=1 state=well":                                                    1,
		"phonerack_slot_state slot=1 state=empty":                                                   0,
		"phonerack_slot_state slot=2 state=unknown":                                                 1,
		"phonerack_slot_leased slot=1":                                                              1,
		"phonerack_slot_last_seen_timestamp_seconds slot=1":                                         1000.5,
		"phonerack_slot_last_seen_timestamp_seconds slot=2":                                         0,
		"phonerack_recovery_attempts_total result=done slot=1 step=reboot":                          4,
		"phonerack_recovery_attempts_total result=lost slot=2 step=hub_cycle":                       0,
		"phonerack_port_power_cycles_total slot=1":                                                  3,
		"phonerack_phone_battery_ratio slot=1":                                                      0.55,
		"phonerack_phone_battery_temperature_celsius slot=1":                                        31.5,
		"phonerack_phone_info android= model= serial= slot=2":                                       0,
		"phonerack_hub_overcurrent_total hub=A":                                                     5,
		"phonerack_tasks_total ending=failed":                                                       6,
		"phonerack_part_restarts_total part=owner of slot 1":                                        7,
		"phonerack_log_lines_left_out_total":                                                        8,
		"phonerack_alarm alarm=power":                                                               1,
		"phonerack_alarm alarm=fault":                                                               0,
		"phonerack_mqtt_connected":                                                                  1,
		"phonerack_tasks_running":                                                                   2,
		"phonerack_phone_info android=14 model=M??" + strings.Repeat("é", 48) + " serial=S1 slot=1": 1,
	} {
		if got, ok := series[key]; !ok || got != want {
			t.Errorf("%s is %v, %t; want %v", key, got, ok, want)
		}
	}
	if !math.IsNaN(series["phonerack_phone_battery_ratio slot=2"]) {
		t.Error("a battery that nobody has read has a value")
	}
	states := 0.0
	for _, s := range health.States() {
		states += series["phonerack_slot_state slot=2 state="+string(s)]
	}
	if states != 1 {
		t.Errorf("slot 2 is in %v states", states)
	}
}

func TestTheNumberOfSeriesIsBounded(t *testing.T) {
	rack := bare
	rack.Restarts = map[string]int64{}
	for i := range 10 * maxParts {
		rack.Restarts[strings.Repeat("p", i%90)+string(rune('a'+i%26))+string(rune('a'+i/26%26))] = 1
	}
	series, _ := gather(t, rack)
	parts, sum := 0, 0.0
	for key, v := range series {
		if strings.HasPrefix(key, "phonerack_part_restarts_total") {
			parts++
			sum += v
		}
	}
	if parts > maxParts || int(sum) != len(rack.Restarts) {
		t.Errorf("%d parts with %v restarts of %d", parts, sum, len(rack.Restarts))
	}
}

func TestWhoMayScrape(t *testing.T) {
	const token = "0123456789abcdef0123"
	from := func(remote string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr = remote
		return r
	}
	with := func(r *http.Request, key, value string) *http.Request {
		r.Header.Set(key, value)
		return r
	}
	given := func(s string) func() (string, error) { return func() (string, error) { return s, nil } }
	broken := func() (string, error) { return token, os.ErrPermission }
	for name, c := range map[string]struct {
		token   func() (string, error)
		request *http.Request
		status  int
	}{
		"this machine":          {nil, from("127.0.0.1:5000"), 200},
		"this machine, IPv6":    {nil, from("[::1]:5000"), 200},
		"another":               {nil, from("192.0.2.1:5000"), 401},
		"a proxy for another":   {nil, with(from("127.0.0.1:5000"), "X-Forwarded-For", "192.0.2.1"), 401},
		"a newer proxy":         {nil, with(from("127.0.0.1:5000"), "Forwarded", "for=192.0.2.1"), 401},
		"with the token":        {given(token + "\n"), with(from("192.0.2.1:5000"), "Authorization", "Bearer "+token), 200},
		"with another token":    {given(token), with(from("192.0.2.1:5000"), "Authorization", "Bearer "+token+"x"), 401},
		"with no token":         {given(token), from("192.0.2.1:5000"), 401},
		"with an empty token":   {given(""), with(from("192.0.2.1:5000"), "Authorization", "Bearer "), 401},
		"with a short token":    {given("short"), with(from("192.0.2.1:5000"), "Authorization", "Bearer short"), 401},
		"a file of others":      {broken, with(from("192.0.2.1:5000"), "Authorization", "Bearer "+token), 401},
		"an unknown address":    {nil, from("@"), 401},
		"by another method":     {nil, httptest.NewRequest(http.MethodPost, "/metrics", nil), 405},
		"as a name of loopback": {nil, from("localhost:1"), 401},
	} {
		w := httptest.NewRecorder()
		Handler(Options{Source: full, Token: c.token, Logger: slog.New(slog.DiscardHandler)}).ServeHTTP(w, c.request)
		if w.Code != c.status || (w.Code == 200) != strings.Contains(w.Body.String(), "phonerack_slot_state{") {
			t.Errorf("%s: %d", name, w.Code)
		}
		if strings.Contains(w.Body.String(), token) {
			t.Errorf("%s: the token is in the answer", name)
		}
	}
}
