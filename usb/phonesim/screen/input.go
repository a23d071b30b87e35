package screen

import (
	"image"
	"slices"
	"time"
)

// touchSlopDP is how far a finger may wander and still tap, swipeUpDP how far it goes to open a screen that
// takes a swipe up; longPress is how long it rests to press long.
const (
	touchSlopDP = 8
	swipeUpDP   = 100
	longPress   = 400 * time.Millisecond
)

// Tap touches a point: the topmost clickable view there is clicked, a key of the keyboard is pressed, a
// tap beside a dialog dismisses it. Anywhere else nothing happens.
func (e *Engine) Tap(x, y int) {
	e.lock()
	defer e.mu.Unlock()
	e.finger = nil
	e.touch(image.Pt(x, y), false)
}

// LongPress rests a finger on a point. A view that knows no long press takes it as a tap.
func (e *Engine) LongPress(x, y int) {
	e.lock()
	defer e.mu.Unlock()
	e.finger = nil
	e.touch(image.Pt(x, y), true)
}

// Swipe moves a finger from one point to another in d. The innermost view under the first point that
// scrolls in this direction follows the finger exactly, without a fling. A finger that hardly moves taps,
// or presses long if d is 400 ms or more.
func (e *Engine) Swipe(x1, y1, x2, y2 int, d time.Duration) {
	e.lock()
	defer e.mu.Unlock()
	e.finger = nil
	e.swipe(image.Pt(x1, y1), image.Pt(x2, y2), d)
}

func (e *Engine) swipe(from, to image.Point, d time.Duration) {
	delta := to.Sub(from)
	if slop := e.px(touchSlopDP); max(abs(delta.X), abs(delta.Y)) < slop {
		e.touch(from, d >= longPress)
		return
	}
	w, v := e.scrolling(from, delta)
	switch {
	case v != nil:
		e.scroll(w, v, delta)
	case w != nil && -delta.Y >= e.px(swipeUpDP):
		e.run(w, e.scope(w), w.screen.SwipeUp, new(budget))
	}
}

// scrolling finds the innermost view at a point that can follow a finger's movement, and the window that gets it.
func (e *Engine) scrolling(from, delta image.Point) (*window, *view) {
	s := e.current()
	if !e.on || s.keyboard != nil && from.In(s.keyboard.rect) {
		return nil, nil
	}
	l := s.active()
	horizontal := abs(delta.X) > abs(delta.Y)
	var target *view
	l.root.walk(func(v *view) {
		if v.scrollable() && v.look.Horizontal == horizontal && from.In(v.visible()) && scrollRoom(v, e.travel(v, delta)) > 0 {
			target = v // children come after their parents
		}
	})
	return l.window, target
}

// travel is how far a view's content goes with a finger, in pixels towards its end.
func (e *Engine) travel(v *view, delta image.Point) int {
	switch {
	case !v.look.Horizontal:
		return -delta.Y
	case e.rtl():
		return delta.X
	}
	return -delta.X
}

// scroll lets a view follow a finger as far as its content goes.
func (e *Engine) scroll(w *window, v *view, delta image.Point) {
	move := e.travel(v, delta)
	move = min(abs(move), scrollRoom(v, move)) * sign(move)
	if v.widget.Bottom {
		move = -move
	}
	w.scroll[v.key] += move
	e.version++
}

// scrollRoom is how far a view can still scroll in the direction of move, in pixels.
func scrollRoom(v *view, move int) int {
	if move < 0 {
		return v.offset
	}
	return v.content - v.viewport() - v.offset
}

func abs(n int) int { return max(n, -n) }

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// touch dispatches a tap or a long press.
func (e *Engine) touch(at image.Point, long bool) {
	s := e.current()
	if !e.on || !at.In(image.Rectangle{Max: s.size}) {
		return
	}
	if s.keyboard != nil && at.In(s.keyboard.rect) {
		e.press(s.keyboard, at)
		return
	}
	l := s.active()
	w := l.window
	if w.screen.Dialog && !at.In(l.rect) {
		if w.screen.Cancelable == nil || *w.screen.Cancelable {
			e.close(w)
			e.move(0)
		}
		return
	}
	v := hit(l.root, at)
	if v == nil || !v.enabled {
		return
	}
	if long && len(v.widget.Long) > 0 {
		e.run(w, v.scope, v.widget.Long, new(budget))
		return
	}
	e.click(w, v)
}

// hit returns the topmost view at the point that takes a touch. A disabled one takes it too, as on
// Android, and nothing comes of it.
func hit(v *view, at image.Point) *view {
	if v == nil {
		return nil
	}
	for _, c := range slices.Backward(v.children) {
		if found := hit(c, at); found != nil {
			return found
		}
	}
	if at.In(v.visible()) && (v.clickable() || v.longClickable()) {
		return v
	}
	return nil
}

// click does what a tap on the view does.
func (e *Engine) click(w *window, v *view) {
	e.version++
	switch v.widget.Kind {
	case "edit":
		e.focus(w, v)
	case "checkbox", "switch":
		if !v.widget.Value.Empty() {
			v.widget.Value.Assign(v.scope, !v.checked)
			e.run(w, v.scope, v.widget.Change, new(budget))
		}
	}
	if len(v.widget.Double) == 0 {
		e.run(w, v.scope, v.widget.Tap, new(budget))
		return
	}
	// Whether it was a single tap is known when no second one has followed.
	first := slices.IndexFunc(e.pending, func(p *pending) bool { return p.window == w && p.tapped == v.key })
	if first < 0 {
		e.pending = append(e.pending, &pending{due: e.now.Add(doubleTap), process: w.process, window: w, scope: v.scope, steps: v.widget.Tap, tapped: v.key})
		return
	}
	e.pending = slices.Delete(e.pending, first, first+1)
	e.run(w, v.scope, v.widget.Double, new(budget))
}

// focus gives an edit the input focus, with the caret at its end and the keyboard shown.
func (e *Engine) focus(w *window, v *view) {
	if w.focus != v.key || !w.typing {
		e.page = letters
	}
	if w.focus != v.key {
		w.cursor = len([]rune(v.text))
		e.compose("")
	}
	w.focus, w.typing, w.marked = v.key, true, 0
	e.version++
}

// focusID focuses the edit with an id, if the window shows it.
func (e *Engine) focusID(w *window, id string) {
	b := &builder{engine: e, window: w}
	if v := b.view(w.screen.Root, e.scope(w), "r").find(func(v *view) bool { return v.widget.Kind == "edit" && v.widget.ID == id }); v != nil {
		e.focus(w, v)
	}
}

// scrollEnd moves the list or scroll with an id to its last row.
func (e *Engine) scrollEnd(w *window, id string) {
	b := &builder{engine: e, window: w}
	v := b.view(w.screen.Root, e.scope(w), "r").find(func(v *view) bool { return v.scrollable() && v.widget.ID == id })
	if v == nil {
		return
	}
	w.scroll[v.key] = unbounded // the layout brings it within bounds
	if v.widget.Bottom {
		w.scroll[v.key] = 0
	}
}

// focused returns the edit of the active window that has the focus, or nil.
func (e *Engine) focused() (*window, *view) {
	l := e.current().active()
	return l.window, l.root.find(func(v *view) bool { return v.focused })
}

// edit replaces the focused edit's text and puts the caret at a character.
func (e *Engine) edit(w *window, v *view, text []rune, cursor int) {
	v.widget.Value.Assign(v.scope, string(text))
	w.cursor, w.marked = cursor, 0
	e.run(w, v.scope, v.widget.Change, new(budget))
}

// maxEdit bounds the text of an edit, in characters.
const maxEdit = 5000

// insert types text at the caret, in place of what is selected; without a focused edit it is lost.
func (e *Engine) insert(text string) {
	w, v := e.focused()
	if v == nil {
		return
	}
	old, added := []rune(v.text), []rune(text)
	if len(old)+len(added) > maxEdit {
		return
	}
	from, to := w.selection()
	e.edit(w, v, slices.Concat(old[:from], added, old[to:]), from+len(added))
}

// selection is what is selected in the focused edit, in characters; nothing is the place of the caret.
func (w *window) selection() (from, to int) { return w.cursor - w.marked, w.cursor }

// deleteChar deletes what is selected, or the character before (-1) or after (1) the caret.
func (e *Engine) deleteChar(direction int) {
	if last := []rune(e.composition); len(last) > 0 {
		e.compose(string(last[:len(last)-1]))
		return
	}
	w, v := e.focused()
	if v == nil {
		return
	}
	if w.marked > 0 {
		e.insert("")
		return
	}
	text, at := []rune(v.text), v.cursor
	if direction < 0 {
		at--
	}
	if at >= 0 && at < len(text) {
		e.edit(w, v, slices.Delete(text, at, at+1), at)
	}
}

// enter does what the key at the keyboard's corner promises.
func (e *Engine) enter() {
	w, v := e.focused()
	switch {
	case v == nil:
	case len(v.widget.Submit) > 0:
		e.run(w, v.scope, v.widget.Submit, new(budget))
	case v.ime == "next":
		e.focusNext()
	default:
		e.hideKeyboard(w)
	}
}

// focusNext moves the focus to the next edit of the window, the first after the last.
func (e *Engine) focusNext() {
	l := e.current().active()
	var edits []*view
	l.root.walk(func(v *view) {
		if v.widget.Kind == "edit" && v.enabled {
			edits = append(edits, v)
		}
	})
	if len(edits) > 0 {
		i := slices.IndexFunc(edits, func(v *view) bool { return v.focused })
		e.focus(l.window, edits[(i+1)%len(edits)])
	}
}
