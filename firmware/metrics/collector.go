package metrics

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"phonerack/firmware/health"
)

const (
	maxLabel = 100 // bytes of a label's value
	maxParts = 200 // parts of rackd whose restarts are shown; more are summed up as "other"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("phonerack_"+name, help, labels, nil)
}

// All metrics. docs/metrics.md lists them, which a test compares.
var (
	rackInfo    = desc("rack_info", "The rack; always 1.", "rack", "version")
	connected   = desc("mqtt_connected", "1 while the rack is connected to its broker.")
	clockOK     = desc("clock_trusted", "1 once the wall clock was set by something that knows.")
	alarm       = desc("alarm", "1 while something of the kind is wrong with the controller.", "alarm")
	running     = desc("tasks_running", "Tasks that run or wait.")
	tasks       = desc("tasks_total", "Tasks that ended since rackd started, by how.", "ending")
	restarts    = desc("part_restarts_total", "Parts of rackd that failed and were started again.", "part")
	linesLost   = desc("log_lines_left_out_total", "Lines of the log that were not written to disk to spare it.")
	slotState   = desc("slot_state", "1 for the state that the slot is in, 0 for every other one.", "slot", "state")
	slotLeased  = desc("slot_leased", "1 while the slot is somebody's.", "slot")
	lastSeen    = desc("slot_last_seen_timestamp_seconds", "When the slot's phone answered last; 0 for never.", "slot")
	attempts    = desc("recovery_attempts_total", "Acts of recovery since rackd started.", "slot", "step", "result")
	cycles      = desc("port_power_cycles_total", "Power cycles of the slot's port since rackd started.", "slot")
	phoneInfo   = desc("phone_info", "What the slot's phone says of itself; 0 if there is none.", "slot", "serial", "model", "android")
	battery     = desc("phone_battery_ratio", "Charge of the battery, 0 to 1; NaN if it is not known.", "slot")
	temperature = desc("phone_battery_temperature_celsius", "Temperature of the battery; NaN if it is not known.", "slot")
	overcurrent = desc("hub_overcurrent_total", "Times that the hub reported over-current since rackd started.", "hub")

	all = []*prometheus.Desc{
		rackInfo, connected, clockOK, alarm, running, tasks, restarts, linesLost,
		slotState, slotLeased, lastSeen, attempts, cycles, phoneInfo, battery, temperature, overcurrent,
	}
)

// newCollector returns the collector of a source.
func newCollector(s Source) prometheus.Collector { return collector{s} }

type collector struct{ source Source }

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range all {
		ch <- d
	}
}

// A sink takes the samples of one scrape.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) counter(d *prometheus.Desc, n int64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	r, out := c.source.Rack(), sink(ch)
	out.gauge(rackInfo, 1, clean(r.ID), clean(r.Version))
	out.gauge(connected, one(r.Connected))
	out.gauge(clockOK, one(r.Clock))
	for _, a := range []health.Alarm{health.FaultAlarm, health.PowerAlarm, health.CloudAlarm} {
		out.gauge(alarm, one(slices.Contains(r.Alarms, a)), string(a))
	}
	out.gauge(running, float64(r.Running))
	for _, e := range endings() {
		out.counter(tasks, r.Tasks[e], string(e))
	}
	for part, n := range boundedParts(r.Restarts) {
		out.counter(restarts, n, part)
	}
	out.counter(linesLost, r.LinesLost)
	hubs := map[string]int64{}
	for _, h := range r.Hubs {
		hubs[clean(h.Name)] += h.Overcurrent // two names may be one when they are cut
	}
	for name, n := range hubs {
		out.counter(overcurrent, n, name)
	}
	seen := map[int]bool{}
	for _, s := range r.Slots {
		if !seen[s.Number] { // a series that is there twice would spoil the whole scrape
			seen[s.Number] = true
			out.slot(s)
		}
	}
}

func (s sink) slot(slot Slot) {
	number := strconv.Itoa(slot.Number)
	state := slot.State
	if !slices.Contains(health.States(), state) {
		state = health.UnknownHow
	}
	for _, known := range health.States() {
		s.gauge(slotState, one(state == known), number, string(known))
	}
	s.gauge(slotLeased, one(slot.Leased), number)
	seen := 0.0
	if !slot.LastSeen.IsZero() {
		seen = float64(slot.LastSeen.UnixMilli()) / 1000
	}
	s.gauge(lastSeen, seen, number)
	for _, rung := range rungs() {
		for _, result := range health.Outcomes() {
			s.counter(attempts, slot.Attempts[Attempt{rung, result}], number, rung.String(), string(result))
		}
	}
	s.counter(cycles, slot.Cycles, number)
	phone := cmp.Or(slot.Phone, &Phone{})
	s.gauge(phoneInfo, one(slot.Phone != nil), number, clean(phone.Serial), clean(phone.Model), clean(phone.Android))
	level, celsius := math.NaN(), math.NaN()
	if b := phone.Battery; b != nil {
		level, celsius = float64(b.Level)/100, b.Celsius
	}
	s.gauge(battery, level, number)
	s.gauge(temperature, celsius, number)
}

// rungs are all acts of recovery and care.
func rungs() []health.Rung {
	var all []health.Rung
	for r := health.Reopen; r.String() != "unknown"; r++ {
		all = append(all, r)
	}
	return all
}

// other is the part that stands for all that are too many.
const other = "other"

// boundedParts keeps the number of series bounded; there is always one.
func boundedParts(by map[string]int64) map[string]int64 {
	parts := map[string]int64{other: 0}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		label := clean(name)
		if _, ok := parts[label]; !ok && len(parts) >= maxParts {
			label = other
		}
		parts[label] += by[name]
	}
	return parts
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// clean makes any text fit for a label: valid UTF-8 without control characters, of bounded length.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) <= maxLabel {
		return text
	}
	return strings.ToValidUTF8(text[:maxLabel], "")
}
