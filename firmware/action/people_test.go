package action_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action"
)

// peoples are what people do about a rack and its slots, whatever door they come by. The page, rackctl and the cloud's commands
// name these entries, and their tests hold them to that.
var peoples = map[string]struct {
	role                     action.Role
	quiet, lease, idempotent bool
	timeout                  time.Duration
	args                     string // names, those that must be given first
}{
	"power_on":       {action.Operator, true, false, true, 2 * time.Minute, "slot! hub"},
	"power_off":      {action.Operator, true, false, true, 2 * time.Minute, "slot! hub"},
	"power_cycle":    {action.Operator, true, false, false, 2 * time.Minute, "slot! hub"},
	"quarantine":     {action.Operator, false, false, true, 10 * time.Second, "slot! reason seconds"},
	"quarantine_end": {action.Operator, false, false, true, 10 * time.Second, "slot!"},
	"release":        {action.Operator, false, false, true, 10 * time.Second, "slot!"},
	"maintenance":    {action.Operator, false, false, true, 10 * time.Second, "off slot"},
	"identify":       {action.Operator, false, false, true, 11 * time.Minute, "seconds slot"},
	"sign":           {action.Operator, false, false, true, 90 * time.Second, "seconds slot"},
	"sign_end":       {action.Operator, false, false, true, 10 * time.Second, "slot"},
	"slot_retry":     {action.Operator, false, false, true, 10 * time.Second, "slot!"},
	"slot_forget":    {action.Operator, false, false, true, 10 * time.Second, "slot!"},
	"reboot":         {action.Operator, false, true, false, 5 * time.Minute, "slot!"},
	"ping":           {action.Viewer, false, false, true, 10 * time.Second, ""},
	"screenshot":     {action.Viewer, false, false, true, time.Minute, "slot!"},
}

// TestWhatPeopleDoIsOneEntryEach, with its role, rules, time and arguments; who asked is in the audit log.
func TestWhatPeopleDoIsOneEntryEach(t *testing.T) {
	b := newBench()
	count := map[string]int{}
	for _, d := range b.Definitions() {
		count[d.Name]++
	}
	for name, want := range peoples {
		d, err := b.Definition(name)
		if err != nil || count[name] != 1 {
			t.Errorf("%s: %v, %d entries", name, err, count[name])
			continue
		}
		if d.Role != want.role || d.NeedsQuiet != want.quiet || d.NeedsLease != want.lease || d.Idempotent != want.idempotent || d.Timeout != want.timeout || d.Summary == "" || d.Streams != action.NoStream {
			t.Errorf("%s is %+v, want %+v", name, d, want)
		}
		if got := args(t, d); got != want.args {
			t.Errorf("%s takes %q, want %q", name, got, want.args)
		}
		b.log.Reset()
		b.Call(t.Context(), action.Actor{Name: "lee", Role: action.Operator, Via: "a door"}, name, json.RawMessage(`{"nobody":1}`), action.Pipes{})
		if log := b.log.String(); !strings.Contains(log, "action="+name+" actor=lee via=\"a door\"") || !strings.Contains(log, "code=bad_request") {
			t.Errorf("%s with an argument that it does not take: %s", name, log)
		}
	}
}

// args are the names of an action's arguments in order, with ! after those that must be given.
func args(t *testing.T, d action.Definition) string {
	t.Helper()
	var schema struct {
		Required   []string
		Properties map[string]struct{ Type, Description string }
	}
	if err := json.Unmarshal(d.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	var must, may []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if p := schema.Properties[name]; p.Type == "" || p.Description == "" {
			t.Errorf("%s: %s is not described: %+v", d.Name, name, p)
		}
		if slices.Contains(schema.Required, name) {
			must = append(must, name+"!")
		} else {
			may = append(may, name)
		}
	}
	return strings.Join(append(must, may...), " ")
}
