package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
	"phonerack/firmware/lease"
	"phonerack/sync/wire"
)

// act is a button of the page and the action behind it.
type act struct {
	name   string                     // of the form and of the words: "act.NAME", "done.NAME"
	action string                     // of package action
	slot   bool                       // it is about one slot
	danger bool                       // it stops something: asked about twice with JavaScript
	when   func(Snapshot, *Slot) bool // it is shown; nil: always
	// why tells what is against it now: the key of the page's words, "" for nothing; nil: nothing ever is.
	why  func(Snapshot, *Slot) string
	note func(Snapshot, *Slot) string       // what it will not do now, which is nothing against it: as why; nil: nothing ever
	args func(form) (map[string]any, error) // besides slot; nil: none
}

// form reads a value of a form.
type form func(name string) string

// acts are all that the page does.
var acts = []act{
	{name: "identify", action: "identify", slot: true, why: unlit, note: darkScreen, args: always("seconds", identifySeconds)},
	{name: "sign", action: "sign", slot: true, why: unready},
	{name: "power_cycle", action: "power_cycle", slot: true, danger: true, why: powerless, note: lying},
	{name: "hub_cycle", action: "power_cycle", slot: true, danger: true, when: fedByHub, why: hubless, args: always("hub", true)},
	{name: "retry", action: "slot_retry", slot: true, why: noRetry},
	{name: "quarantine", action: "quarantine", slot: true, when: not(quarantined), why: noPhone, args: quarantineArgs},
	{name: "release", action: "quarantine_end", slot: true, when: quarantined},
	{name: "slot_maintenance_on", action: "maintenance", slot: true, when: not(inHands), why: rackMaintenance},
	{name: "slot_maintenance_off", action: "maintenance", slot: true, when: inHands, args: always("off", true)},
	{name: "forget", action: "slot_forget", slot: true, danger: true, when: gone, why: leased},

	{name: "identify_rack", action: "identify", args: always("seconds", identifySeconds)},
	{name: "maintenance_on", action: "maintenance", danger: true, when: not(maintained)},
	{name: "maintenance_off", action: "maintenance", when: maintained, args: always("off", true)},
	{name: "link_retry", action: "link_retry", why: linkless},
}

const (
	identifySeconds = 30 // long enough to walk to the rack

	maxActing   = 8               // at the same time
	actPatience = 4 * time.Second // an act that takes longer goes on, and its end is in the log
	actTimeout  = 3 * time.Minute // the longest of the actions above takes two
)

func not(f func(Snapshot, *Slot) bool) func(Snapshot, *Slot) bool {
	return func(s Snapshot, slot *Slot) bool { return !f(s, slot) }
}

func quarantined(_ Snapshot, s *Slot) bool { return s.Ends > 0 || s.State == health.Quarantined }
func inHands(_ Snapshot, s *Slot) bool     { return s.Hands }
func gone(_ Snapshot, s *Slot) bool {
	return slices.Contains([]string{string(health.Dead), string(health.NotEnumerated)}, s.Main.Code)
}

func maintained(s Snapshot, _ *Slot) bool { return s.Rack.Maintenance }

func powerless(snap Snapshot, s *Slot) string {
	switch {
	case s.Outlet == nil:
		return "why.not_switched"
	case s.Lease != nil:
		return "why.leased"
	case snap.Rack.Maintenance || s.Hands:
		return "why.maintenance"
	}
	return ""
}

// lying is that switching a port did not cut its power so far: a person's cycle is what finds out whether it does now.
func lying(_ Snapshot, s *Slot) string {
	if !s.PowerActs {
		return "note.lying"
	}
	return ""
}

func fedByHub(_ Snapshot, s *Slot) bool { return s.Fed != "" }

// hubless is what is against switching the hub that feeds a slot: all that it feeds lose their power.
func hubless(snap Snapshot, s *Slot) string {
	if snap.Rack.Maintenance {
		return "why.maintenance"
	}
	for _, other := range snap.Slots {
		switch {
		case other.Fed != s.Fed:
		case other.Hands:
			return "why.hub_maintenance"
		case other.Lease != nil:
			return "why.hub_leased"
		}
	}
	return ""
}

func leased(_ Snapshot, s *Slot) string {
	if s.Lease != nil {
		return "why.leased"
	}
	return ""
}

func noRetry(snap Snapshot, s *Slot) string {
	switch {
	case noPhone(snap, s) != "":
		return "why.no_phone"
	case snap.Rack.Maintenance || s.Hands:
		return "why.maintenance"
	case quarantined(snap, s):
		return "why.quarantined"
	case s.State == health.Well || s.State == health.Attention || s.State == health.Starting || s.State == health.Resting:
		return "why.well"
	case s.Lease != nil:
		return "why.leased"
	}
	return ""
}

func noPhone(_ Snapshot, s *Slot) string {
	if s.State == health.Empty {
		return "why.no_phone"
	}
	return ""
}

func unready(snap Snapshot, s *Slot) string {
	switch {
	case s.Phone == nil || !s.Phone.Ready:
		return "why.no_picture"
	case s.Lease != nil:
		return "why.leased"
	}
	return ""
}

// unlit is what is against showing where a slot is that has its phone's screen alone for it.
func unlit(snap Snapshot, s *Slot) string {
	if s.Lit {
		return ""
	}
	return unready(snap, s)
}

// darkScreen is why only lights show where a slot is.
func darkScreen(_ Snapshot, s *Slot) string {
	switch {
	case s.Phone == nil || !s.Phone.Ready:
		return "note.unready"
	case s.Lease != nil && s.Lease.Holder == lease.Holder{Kind: lease.Recovery, Who: lease.Identify}:
		return "note.blinks"
	case s.Lease != nil:
		return "note.leased"
	}
	return ""
}

func rackMaintenance(snap Snapshot, _ *Slot) string {
	if snap.Rack.Maintenance {
		return "why.rack_maintenance"
	}
	return ""
}

func linkless(snap Snapshot, _ *Slot) string {
	if !snap.Rack.Link.Joined {
		return "why.not_joined"
	}
	return ""
}

// always gives one argument.
func always(name string, value any) func(form) (map[string]any, error) {
	return func(form) (map[string]any, error) { return map[string]any{name: value}, nil }
}

const maxReason = 200 // bytes of what a person writes

func quarantineArgs(f form) (map[string]any, error) {
	minutes, err := strconv.Atoi(f("minutes"))
	length := time.Duration(minutes) * time.Minute
	if err != nil || !slices.Contains(health.Presets(), length) {
		return nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": "minutes is none of the lengths that are offered"})
	}
	reason := strings.TrimSpace(f("reason"))
	if len(reason) > maxReason {
		return nil, wire.Refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf("the reason is longer than %d bytes", maxReason)})
	}
	return map[string]any{"seconds": int(length / time.Second), "reason": reason}, nil
}

// reason is what is against an act now, in words; "" for nothing.
func (a act) reason(lang string, snap Snapshot, s *Slot) string {
	if a.why == nil {
		return ""
	}
	key := a.why(snap, s)
	if key == "why.leased" {
		return wire.Refuse(wire.SlotBusy, map[string]any{"slot": s.Number, "holder": holder(lang, s.Lease.Holder), "until": s.Lease.Until}).Sentence(lang)
	}
	if key == "" {
		return ""
	}
	return say(lang, key)
}

// button is an act as it is shown.
type button struct {
	V         *view
	Name, Why string // Why it cannot be pressed; "" if it can
	Note      string // what it will not do now; "" for nothing
	Danger    bool
	Slot      int // 0: the whole rack
	Next      string
}

// buttons are the acts of a slot, or those of the rack with nil.
func (v *view) buttons(snap Snapshot, s *Slot) []button {
	var all []button
	for _, a := range acts {
		if a.slot != (s != nil) || a.when != nil && !a.when(snap, s) {
			continue
		}
		b := button{V: v, Name: a.name, Danger: a.danger, Next: v.Path, Why: a.reason(v.Lang, snap, s)}
		if s != nil {
			b.Slot = s.Number
		}
		if !v.SignedIn {
			b.Why = say(v.Lang, "why.signed_out")
		}
		if a.note != nil && b.Why == "" {
			if key := a.note(snap, s); key != "" {
				b.Note = say(v.Lang, key)
			}
		}
		all = append(all, b)
	}
	return all
}

// act carries one out.
func (p *Page) act(w http.ResponseWriter, r *http.Request) error {
	if err := parse(r); err != nil {
		return err
	}
	i := slices.IndexFunc(acts, func(a act) bool { return a.name == r.PostForm.Get("act") })
	if i < 0 {
		return wire.Refuse(wire.UnknownAction, map[string]any{"action": r.PostForm.Get("act")})
	}
	a := acts[i]
	args := map[string]any{}
	snap := p.o.Source.Snapshot()
	var slot *Slot
	if a.slot {
		var err error
		if snap, slot, err = p.find(r.PostForm.Get("slot")); err != nil {
			return err
		}
		args["slot"] = slot.Number
	}
	lang := langOf(r)
	if why := a.reason(lang, snap, slot); why != "" { // the page that was seen was older
		return p.because(w, r, why)
	}
	if a.args != nil {
		more, err := a.args(r.PostForm.Get)
		if err != nil {
			return err
		}
		for k, v := range more {
			args[k] = v
		}
	}
	result, err := p.call(r, a.action, args)
	if err != nil {
		return err
	}
	if wantsJSON(r.Header.Get("Accept")) {
		return p.answer(w, r, http.StatusOK, "", nil, map[string]any{"result": result})
	}
	http.Redirect(w, r, next(r)+"?done="+a.name, http.StatusSeeOther)
	return nil
}

// call runs an action, and waits for a short time: what takes longer has begun, and there is no result. It goes on when
// the browser does not wait, and ends with Serve.
func (p *Page) call(r *http.Request, name string, args map[string]any) (any, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	who := "page"
	if s := p.sessions.of(r); s != nil && s.name != "" {
		who = "page/" + s.name
	}
	select {
	case p.acting <- struct{}{}:
	default:
		return nil, wire.Refuse(wire.LimitExceeded, map[string]any{"what": "acts at the same time", "limit": maxActing})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actTimeout)
	unbind := func() bool { return true }
	serves := &serving{ctx: ctx} // without Serve an act has nobody who waits for it
	if in, ok := r.Context().Value(servingKey{}).(*serving); ok {
		serves, unbind = in, context.AfterFunc(in.ctx, cancel)
	}
	type outcome struct {
		result any
		err    error
	}
	ended := make(chan outcome, 1)
	serves.acts.Go(func() {
		defer func() { unbind(); cancel(); <-p.acting }()
		result, err := p.o.Actor.Call(ctx, action.Actor{Name: who, Role: action.Operator, Via: "page"}, name, raw, discard)
		ended <- outcome{result, err}
	})
	patience := time.NewTimer(actPatience)
	defer patience.Stop()
	select {
	case o := <-ended:
		return o.result, o.err
	case <-patience.C:
		return nil, nil
	}
}

// because answers that the page's own rules are against an act.
func (p *Page) because(w http.ResponseWriter, r *http.Request, why string) error {
	v := p.view(r, "refused.title", "")
	v.Refusal, v.Next, v.Path = why, next(r), next(r)
	return p.answer(w, r, http.StatusConflict, "refused.html", v, refused{wire.Refuse(wire.Conflict, map[string]any{"reason": why}), why})
}

// parse reads a form: only what browsers send, and only from the body.
func parse(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return err
		}
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": "the form cannot be read"})
	}
	return nil
}

// next is where a form came from and leads back to: a path of this page, "/" for anything else.
func next(r *http.Request) string {
	path := ""
	if r.Method == http.MethodPost {
		_ = r.ParseForm() // an error is told where the form is used
		path = r.PostForm.Get("next")
	} else {
		path = r.URL.Query().Get("next")
		if path == "" {
			path = r.URL.Path
		}
	}
	// A second slash, or a backslash that browsers read as one, would make it another host's.
	if len(path) > 200 || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.Trim(path, allowedInPath) != "" {
		return "/"
	}
	return path
}

const allowedInPath = "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
