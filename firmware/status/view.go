package status

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

// view is what every template gets.
type view struct {
	Lang, Title, Path string
	Live              bool // it is freshened by the stream, or by the browser without JavaScript
	SignedIn          bool
	CanSignIn         bool
	Who               string
	Rack              Rack
	Refusal           string // why there is nothing else
	Done              string // what was done just now
	Next              string // where a form leads back to
	Now               string // time of the page, "" without a clock
	Body              any    // of the page
}

// view begins a page; the words of title are those of a key, or title itself.
func (p *Page) view(r *http.Request, title, more string) *view {
	v := &view{Lang: langOf(r), Path: r.URL.Path, CanSignIn: p.o.PIN != "", Rack: p.o.Source.Snapshot().Rack}
	v.Title = strings.TrimSpace(say(v.Lang, title) + " " + more)
	if s := p.sessions.of(r); s != nil {
		v.SignedIn, v.Who = true, s.name
	}
	if done := r.URL.Query().Get("done"); slices.ContainsFunc(acts, func(a act) bool { return a.name == done }) {
		v.Done = say(v.Lang, "done."+done)
	}
	if v.Rack.Clock.Trusted {
		v.Now = v.Rack.Clock.Time.Format("2006-01-02 15:04:05 MST")
	}
	return v
}

// T gives words of the page's catalogue.
func (v *view) T(key string, args ...any) string { return say(v.Lang, key, args...) }

// W gives the word for one value of a kind.
func (v *view) W(kind string, value any) string { return word(v.Lang, kind, value) }

// Holder says who has a slot.
func (v *view) Holder(h lease.Holder) string { return holder(v.Lang, h) }

// Span says a length of time.
func (v *view) Span(d time.Duration) string { return span(v.Lang, d) }

// Left says how long something still lasts: never less than it does.
func (v *view) Left(d time.Duration) string {
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if d > unit {
			return span(v.Lang, (d + unit - 1).Truncate(unit))
		}
	}
	return span(v.Lang, d)
}

// Outlet is what was seen of an outlet, in words.
func (v *view) Outlet(o *Outlet) string {
	all := []string{v.W("cut", cmp.Or(string(o.Cut), "unseen"))}
	if o.Repowered > 0 {
		all = append(all, v.T("outlet.repowered", "n", o.Repowered))
	}
	if o.Resets > 0 {
		all = append(all, v.T("outlet.resets", "n", o.Resets))
	}
	if o.Silent >= noticed {
		all = append(all, v.T("outlet.silent", "span", v.Span(o.Silent)))
	}
	if o.Busy != "" {
		all = append(all, v.W("outlet", o.Busy))
	}
	if o.Fault != "" {
		all = append(all, v.T("outlet.fault", "fault", cut(o.Fault, maxTextBytes)))
	}
	return strings.Join(all, v.T("list.comma"))
}

const noticed = time.Second // of silence: a hub that comes back sooner is one as any other

// True is the value of a fact that is known.
func (v *view) True(known *bool) bool { return known != nil && *known }

// Links are those of the head.
func (v *view) Links() []navLink {
	all := []navLink{{"/", "nav.rack", false}, {"/controller", "nav.controller", false}, {"/tasks", "nav.tasks", false}, {"/log", "nav.log", false}, {"/map", "nav.map", false}, {"/support", "nav.support", false}}
	for i := range all {
		all[i].Here = all[i].To == v.Path
	}
	return all
}

type navLink struct {
	To, Key string
	Here    bool
}

// Languages are those to choose from: code and own name.
func (v *view) Languages() []navLink {
	names := map[string]string{"en": "English", "zh": "中文"}
	var all []navLink
	for _, l := range wire.Languages() {
		all = append(all, navLink{l, names[l], l == v.Lang})
	}
	return all
}

// said is a finding in the page's language.
type said struct{ Code, Title, Why, Do string }

func (v *view) say(f health.Finding) said {
	title, why, do := f.Say(v.Lang)
	return said{f.Code, title, why, do}
}

func (v *view) sayAll(all []health.Finding) []said {
	var out []said
	for _, f := range all {
		out = append(out, v.say(f))
	}
	return out
}

// cell is a slot as the rack shows it.
type cell struct {
	Slot        *Slot
	Name        string // number and label
	Hub         string // in words; "" if it is behind none
	State, Word string // code, and in words
	Short       string // what is wrong, in a few words; "" when nothing is
	Finding     said
	Busy        bool // somebody works on it
	BusyWord    string
}

func (v *view) cell(s *Slot) cell {
	c := cell{Slot: s, Name: strconv.Itoa(s.Number), State: string(s.State), Word: v.W("state", s.State), Finding: v.say(s.Main), Busy: s.Task != nil || s.Lease != nil, BusyWord: v.T("busy")}
	if !slices.Contains(health.States(), s.State) {
		c.State = string(health.UnknownHow)
	}
	if s.Hub != "" {
		c.Hub = v.T("hub", "name", cut(s.Hub, maxHubBytes))
	}
	if s.Label != "" {
		c.Name += " " + cut(s.Label, maxNameBytes)
	}
	switch {
	case s.State == health.Attention && len(s.Others) > 0:
		c.Finding = v.say(s.Others[0])
		c.Short = c.Finding.Title
	case s.State != health.Well && s.State != health.Empty:
		c.Short = c.Finding.Title
	}
	if c.Short == c.Word {
		c.Short = ""
	}
	return c
}

// troubled tells whether somebody should look at a slot.
func troubled(s *Slot) bool {
	return slices.Contains([]health.State{health.Attention, health.Recovering, health.NeedsHands, health.Quarantined, health.UnknownHow}, s.State)
}

// Bounds of a text on a page, so that a page stays within its size.
const (
	maxNameBytes = 64
	maxHubBytes  = 12 // in the drawing; the page of the slot has it all
	maxTextBytes = 300
	maxLineBytes = 300
)

// cut bounds a text to so many bytes of a page, without breaking a rune: what HTML has to escape takes five.
func cut(s string, most int) string {
	size := 0
	for i, r := range s {
		if strings.ContainsRune(`<>&"'`, r) {
			size += 5
		} else {
			size += utf8.RuneLen(r)
		}
		if size > most {
			return s[:i] + "…"
		}
	}
	return s
}

// taskView is a task in a list.
type taskView struct {
	action.TaskStatus
	Word, Goal, Message, Took string
	Ago                       string // since its start; "" without a clock
}

func (v *view) task(t action.TaskStatus) taskView {
	tv := taskView{TaskStatus: t, Word: v.W("task", t.State), Goal: cut(t.Goal, maxTextBytes), Message: cut(t.Message, maxTextBytes)}
	if t.Refusal != nil {
		tv.Message = t.Refusal.Sentence(v.Lang)
	}
	if v.Rack.Clock.Trusted && !t.Started.IsZero() {
		tv.Ago = v.T("ago", "span", v.Span(v.Rack.Clock.Time.Sub(t.Started)))
	}
	if !t.Ended.IsZero() {
		tv.Took = v.Span(t.Ended.Sub(t.Started))
	}
	return tv
}

var functions = template.FuncMap{
	"bytes":   bytesOf,
	"cut":     cut,
	"static":  staticName,
	"celsius": func(f float64) string { return fmt.Sprintf("%.1f °C", f) },
	"minutes": func(d time.Duration) int { return int(d / time.Minute) },
	"clock":   func(t time.Time) string { return t.Format("15:04:05") },
	"presets": health.Presets,
	"states":  health.States,
}
