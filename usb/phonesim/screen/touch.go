package screen

import (
	"image"
	"time"
)

// TouchAction is what a finger does to the display.
type TouchAction uint8

// The actions. A finger that goes down takes the place of one that is down already.
const (
	TouchDown TouchAction = iota
	TouchMove
	TouchUp
	TouchCancel // the gesture is taken back: nothing is clicked
)

// finger is the finger on the display; there is only one.
type finger struct {
	from, last image.Point
	since      time.Time
	held       bool   // its long press has happened
	drag       *drag  // it has moved too far to tap
	swipe      *swipe // it moves and lifts by itself
}

// drag is a view that follows a finger. Its window is nil if nothing there scrolls.
type drag struct {
	window     *window
	key        string
	horizontal bool
}

// swipe is a movement that was ordered as a whole.
type swipe struct {
	to    image.Point
	took  time.Duration // as the app sees it
	lifts time.Time
}

// doubleTap is how soon the second tap of a double tap must follow the first.
const doubleTap = 300 * time.Millisecond

// Touch puts a finger down, moves it, lifts it or takes it back. What scrolls follows the movement at once. A
// finger that rests for 400 ms presses long, while it is still down; one that lifts without having moved
// taps where it went down. Without a finger on the display only TouchDown does something.
func (e *Engine) Touch(a TouchAction, x, y int) {
	e.lock()
	defer e.mu.Unlock()
	at := image.Pt(x, y)
	switch {
	case a == TouchDown:
		e.finger = nil
		if e.on {
			e.finger = &finger{from: at, last: at, since: e.now}
		}
	case e.finger == nil:
	case a == TouchMove:
		e.drag(at)
	case a == TouchUp:
		e.lift()
	default:
		e.finger = nil
	}
}

// StartSwipe puts a finger down that moves to another point and lifts there after lasts of the clock. What
// comes of it comes then, and is what Swipe with d does. Any other touch takes the finger back.
func (e *Engine) StartSwipe(x1, y1, x2, y2 int, d, lasts time.Duration) {
	e.lock()
	defer e.mu.Unlock()
	if !e.on {
		return
	}
	from, to := image.Pt(x1, y1), image.Pt(x2, y2)
	e.finger = &finger{from: from, last: from, since: e.now, swipe: &swipe{to: to, took: d, lifts: e.now.Add(lasts)}}
	if lasts <= 0 {
		e.lift()
	}
}

// FingerDown reports that a finger is on the display.
func (e *Engine) FingerDown() bool {
	e.lock()
	defer e.mu.Unlock()
	return e.finger != nil
}

// fingerDue is when the finger does something without being told; ok is false if it does not.
func (e *Engine) fingerDue() (due time.Time, ok bool) {
	f := e.finger
	switch {
	case f == nil:
		return time.Time{}, false
	case f.swipe != nil:
		return f.swipe.lifts, true
	}
	return f.since.Add(longPress), !f.held && f.drag == nil
}

// fingerActs does what fell due.
func (e *Engine) fingerActs() {
	f := e.finger
	if f.swipe != nil {
		e.lift()
		return
	}
	f.held = true
	// A view without a long press waits for the finger to lift.
	s := e.current()
	if s.keyboard != nil && f.from.In(s.keyboard.rect) {
		return
	}
	if v := hit(s.active().root, f.from); v != nil && v.enabled && len(v.widget.Long) > 0 {
		f.drag = new(drag) // the tap is used up
		e.touch(f.from, true)
	}
}

// lift ends the finger's gesture.
func (e *Engine) lift() {
	f := e.finger
	e.finger = nil
	switch {
	case f.swipe != nil:
		e.swipe(f.from, f.swipe.to, f.swipe.took)
	case f.drag == nil:
		e.touch(f.from, false)
	case f.drag.window == nil && f.from.Y-f.last.Y >= e.px(swipeUpDP) && !f.held:
		w := e.current().active().window
		e.run(w, e.scope(w), w.screen.SwipeUp, new(budget))
	}
}

// drag moves the finger and what it holds.
func (e *Engine) drag(to image.Point) {
	f := e.finger
	if f.swipe != nil {
		f.swipe = nil // it is steered by hand now
	}
	if f.drag == nil {
		delta := to.Sub(f.from)
		if max(abs(delta.X), abs(delta.Y)) < e.px(touchSlopDP) {
			return
		}
		f.drag = new(drag)
		if w, v := e.scrolling(f.from, delta); v != nil {
			*f.drag = drag{window: w, key: v.key, horizontal: v.look.Horizontal}
		}
	}
	delta := to.Sub(f.last)
	f.last = to
	if f.drag.window == nil || e.current().active().window != f.drag.window {
		return
	}
	v := e.current().active().root.find(func(v *view) bool { return v.key == f.drag.key })
	if v != nil {
		e.scroll(f.drag.window, v, delta)
	}
}
