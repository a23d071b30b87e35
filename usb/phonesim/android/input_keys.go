package android

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	longPress = 500 * time.Millisecond // how long a key is held for a long press
	perKey    = 8 * time.Millisecond   // what one typed character costs
)

// keyOptions are those of one "input keyevent".
type keyOptions struct {
	long, twice bool
	delay       time.Duration // between keys
}

// options takes what stands before the keys. Until Android 13 one option is read, and what is not known is a key
// of no name; from 14 on all that begin with two dashes.
func (c *inputCall) options() (o keyOptions, err error) {
	v := c.release.version
	for len(c.rest) > 0 && strings.HasPrefix(c.rest[0], "--") {
		name := c.rest[0]
		switch {
		case name == "--longpress":
			o.long = true
		case name == "--doubletap" && v >= 11:
			o.twice = true
		case v < 14:
			return o, nil
		}
		c.next()
		if name == "--delay" && v >= 15 {
			ms, err := c.number()
			if err != nil {
				return o, err
			}
			o.delay = time.Duration(ms) * time.Millisecond
		}
		if v < 14 {
			break
		}
	}
	return o, nil
}

// keys presses keys one after another. A name that is none is the key 0, and nobody complains.
func (c *inputCall) keys() error {
	o, err := c.options()
	if err != nil {
		return err
	}
	name, err := c.required()
	if err != nil {
		return err
	}
	if err := c.allowed(); err != nil {
		return err
	}
	hold := time.Duration(0)
	if o.long && c.release.version >= 13 {
		hold = longPress
	}
	for {
		code := keyCode(name)
		for range map[bool]int{false: 1, true: 2}[o.twice] {
			if err := c.cost(c.ctx, hold); err != nil {
				return err
			}
			c.press(code, o.long)
		}
		if len(c.rest) == 0 || o.twice && c.release.version < 14 {
			return nil
		}
		name = c.next()
		if err := c.wait(c.ctx, o.delay); err != nil {
			return err
		}
	}
}

// repeating are the keys that do it again when they are held: arrows and those that delete.
var repeating = []int{19, 20, 21, 22, 67, 112}

// press presses one key.
func (d *Device) press(code int, long bool) {
	switch code {
	case keyPower:
		if long {
			return // opens the power menu, which nobody looks at
		}
		d.screen.SetScreenOn(!d.screen.ScreenOn())
	case keySleep, keySoftSleep:
		d.screen.SetScreenOn(false)
	case keyWakeUp:
		d.screen.SetScreenOn(true)
	default:
		d.screen.Key(code)
		if long && slices.Contains(repeating, code) {
			d.screen.Key(code)
		}
	}
}

// Keys that change the meaning of others.
const (
	keyCtrlLeft  = 113
	keyCtrlRight = 114
)

// combination presses keys together. Android 12 does not tell the last one what is held with it.
func (c *inputCall) combination() error {
	if len(c.rest) >= 2 && c.rest[0] == "-t" && c.release.version >= 13 {
		c.next()
		ms, err := c.number()
		if err != nil {
			return err
		}
		if err := c.cost(c.ctx, min(time.Duration(ms)*time.Millisecond, longestSwipe)); err != nil {
			return err
		}
	}
	if _, err := c.required(); err != nil {
		return err
	}
	names := append([]string{c.last}, c.rest...)
	codes := make([]int, len(names))
	for i, name := range names {
		if codes[i] = keyCode(name); codes[i] == 0 {
			return argError("Unknown keycode: " + name)
		}
	}
	if len(codes) < 2 {
		return argError("keycombination requires at least 2 keycodes")
	}
	if err := c.allowed(); err != nil {
		return err
	}
	code, held := codes[len(codes)-1], codes[:len(codes)-1]
	ctrl := slices.Contains(held, keyCtrlLeft) || slices.Contains(held, keyCtrlRight)
	if ctrl && c.release.version >= 13 {
		c.screen.Shortcut(code)
		return nil
	}
	c.press(code, false)
	return nil
}

// text types what the virtual keyboard can type: ASCII, "%s" for a space. One character that it cannot
// loses all.
func (c *inputCall) text() error {
	text, err := c.required()
	if err != nil {
		return err
	}
	text = strings.ReplaceAll(text, "%s", " ")
	for _, r := range text {
		if r >= 0x7f || r < 0x20 && r != '\n' && r != '\t' {
			return thrown("java.lang.NullPointerException: Attempt to get length of null array")
		}
	}
	if err := c.allowed(); err != nil {
		return err
	}
	killed := c.cost(c.ctx, time.Duration(len(text))*perKey)
	if killed != nil && c.release.version < 11 {
		text = text[:len(text)/2] // it was a program that typed, and it is dead
	}
	if text = c.spoil(text); text == "" {
		return killed
	}
	if err := c.typeText(text); err != nil {
		c.logf("W", "InputDispatcher", "dropped text: %v", err)
	}
	return killed
}

// spoil loses and swaps characters as the Faults have it.
func (d *Device) spoil(text string) string {
	f := d.Faults()
	if f.DropFirst && text != "" {
		text = text[1:]
	}
	chars := make([]byte, 0, len(text))
	for i := range len(text) {
		if !d.chance(f.DropText) {
			chars = append(chars, text[i])
		}
	}
	if f.SwapFirst && len(chars) > 1 {
		chars[0], chars[1] = chars[1], chars[0]
	}
	for i := 0; i+1 < len(chars); i++ {
		if d.chance(f.SwapText) {
			chars[i], chars[i+1] = chars[i+1], chars[i]
			i++
		}
	}
	return string(chars)
}

// keyCode reads a number, a name, or a name with KEYCODE_ before it; 0 is none of them. A number is a code, even
// one of a single digit.
func keyCode(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= lastKeyCode {
		return n
	}
	return keyNames[strings.TrimPrefix(strings.ToUpper(text), "KEYCODE_")]
}
