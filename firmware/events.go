package firmware

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"phonerack/firmware/action"
	"phonerack/firmware/health"
)

// Kinds of events. Those of slots are phone.left and "phone." with the slot's state: ready, limited, unauthorized, lost, failed.
const (
	startedEvent  = "rack.started"
	panickedEvent = "rack.part_panicked"
	clockEvent    = "clock.jumped"
	phoneEvent    = "phone."
	healthEvent   = "health."   // with the state of a slot: docs/health.md
	recoveryEvent = "recovery." // with the act; the cloud is not told
	leftEvent     = "phone.left"
)

const (
	// A slot, the clock and rackd may each tell so many things at once, and then one in so long a time: a phone with a bad
	// cable comes and goes all day.
	eventBurst = 5
	eventEvery = time.Minute

	retryEvents = time.Second // between looks at what may not be told yet
	lookAtClock = 10 * time.Second
	clockJump   = 2 * time.Second

	maxEventText = 200 // bytes of what a phone or an error says
)

// events remembers what happens on the rack, and tells the cloud if there is one. Whoever tells never waits: of what may not
// be told yet the newest is kept for each source. A nil *events tells nothing.
type events struct {
	put  func(kind string, slot int, phone string, detail any) error // into the outbox; nil without a cloud
	last *recent
	log  *slog.Logger
	wall func() time.Time     // the board's own clock
	boot func() time.Duration // rises steadily

	mu      sync.Mutex              // guards sources
	sources map[string]*eventSource // by kind, or by slot
	wake    chan struct{}           // never closed
}

// eventSource is what may tell things on its own.
type eventSource struct {
	limit   *rate.Limiter
	next    *told // nil if all is told
	leftOut int   // never told, before next
	last    told  // that was left word of, whether it is told or not
}

type told struct {
	kind   string
	slot   int
	phone  string
	detail map[string]any
	brief  map[string]any // what people on the rack are shown in its place; nil for detail
}

func newEvents(put func(string, int, string, any) error, wall func() time.Time, boot func() time.Duration, log *slog.Logger) *events {
	return &events{put: put, last: newRecent(boot), log: log, wall: wall, boot: boot, sources: map[string]*eventSource{}, wake: make(chan struct{}, 1)}
}

// tell leaves word. It does not block.
func (e *events) tell(t told) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.add(t.kind, t)
}

// add is tell for who holds mu.
func (e *events) add(source string, t told) {
	e.note(t)
	s := e.sources[source]
	if s == nil {
		s = &eventSource{limit: rate.NewLimiter(rate.Every(eventEvery), eventBurst)}
		e.sources[source] = s
	}
	if s.last = t; e.put == nil {
		return
	}
	if s.next != nil {
		s.leftOut++
	}
	s.next = &t
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// note remembers something that the cloud is not told, or is told elsewhere.
func (e *events) note(t told) {
	detail := t.brief
	if detail == nil {
		detail = t.detail
	}
	e.last.note(t.kind, t.slot, detail)
}

// tried remembers how an act of recovery or care ended. One that was refused is tried again.
func (e *events) tried(slot int, rung health.Rung, how health.Outcome) {
	if e != nil && how != health.Refused {
		e.note(told{kind: recoveryEvent + rung.String(), slot: slot, detail: map[string]any{"outcome": string(how)}})
	}
}

// slot tells that a slot has entered a state; phone is whose it is, or was. What lasts but a moment is not told, nor is the
// same thing twice.
func (e *events) slot(s action.PhoneState, phone string) {
	if e == nil || s.State == action.Connecting {
		return
	}
	t := told{kind: phoneEvent + string(s.State), slot: s.Slot, phone: phone, detail: map[string]any{}}
	if s.State == action.Empty {
		t.kind = leftEvent
	}
	for name, text := range map[string]string{"reason": s.Reason, "model": s.Model, "android": s.Android} {
		if text != "" {
			t.detail[name] = cut(text, maxEventText)
		}
	}
	source := "slot " + strconv.Itoa(s.Slot)
	e.mu.Lock()
	defer e.mu.Unlock()
	var last told
	if known := e.sources[source]; known != nil {
		last = known.last
	}
	if t.kind == last.kind && t.phone == last.phone || t.kind == leftEvent && last.kind == "" {
		return
	}
	e.add(source, t)
}

// health tells that somebody should look at a slot, or that it is well again.
func (e *events) health(st health.Status, phone string) {
	if e == nil {
		return
	}
	title, why, do := st.Main.Say("en")
	t := told{kind: healthEvent + string(st.State), slot: st.Slot, phone: phone, detail: map[string]any{
		"diagnosis": st.Main.Code, "title": cut(title, maxEventText), "why": cut(why, maxEventText), "do": cut(do, maxEventText),
	}}
	t.brief = map[string]any{"diagnosis": st.Main.Code}
	var others []string
	for _, f := range st.Others {
		others = append(others, f.Code)
	}
	if others != nil {
		t.detail["findings"], t.brief["findings"] = others, others
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.add("health of slot "+strconv.Itoa(st.Slot), t)
}

// Run tells until ctx ends.
func (e *events) Run(ctx context.Context) error {
	look, clock := time.NewTicker(retryEvents), time.NewTicker(lookAtClock)
	defer look.Stop()
	if e.put == nil {
		look.Stop() // there is nothing to look at
	}
	defer clock.Stop()
	wall, boot := e.wall(), e.boot()
	for {
		e.flush()
		select {
		case <-e.wake:
		case <-look.C:
		case <-clock.C:
			wall, boot = e.compare(wall, boot)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// compare tells if the board's clock was set since it showed wall.
func (e *events) compare(wall time.Time, boot time.Duration) (time.Time, time.Duration) {
	wallNow, bootNow := e.wall(), e.boot()
	// Round strips the monotonic reading, which a set clock does not change.
	if by := wallNow.Round(0).Sub(wall.Round(0)) - (bootNow - boot); by.Abs() >= clockJump {
		e.log.Info("the board's clock was set", "by", by)
		e.tell(told{kind: clockEvent, detail: map[string]any{"ms": by.Milliseconds()}})
	}
	return wallNow, bootNow
}

// flush tells what may be told now.
func (e *events) flush() {
	for _, t := range e.due() {
		if err := e.put(t.kind, t.slot, t.phone, t.detail); err != nil {
			e.log.Warn("an event could not be stored for the cloud", "kind", t.kind, "slot", t.slot, "err", err)
		}
	}
}

// due takes what may be told now.
func (e *events) due() (all []told) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.sources)) {
		s := e.sources[name]
		if s.next == nil || !s.limit.Allow() {
			continue
		}
		t := *s.next
		if s.leftOut > 0 {
			t.detail = maps.Clone(t.detail)
			t.detail["left_out"] = s.leftOut
		}
		s.next, s.leftOut = nil, 0
		all = append(all, t)
	}
	return all
}
