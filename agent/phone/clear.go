package phone

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// combinationSDK is the first Android whose input command tells apps which keys
// are held together: Android 13. Android 12 presses them one by one.
const combinationSDK = 33

// Key codes of ClearText.
const (
	keyDelete     = 67  // before the caret
	keyDeleteNext = 112 // behind the caret
	keyControl    = 113
	keyA          = 29
	keyMoveEnd    = 123
)

// Bounds of ClearText.
const (
	maxCleared = 4000 // characters of a field
	keyPause   = 15 * time.Millisecond
)

// ClearText empties the field that has the focus, of about length characters.
// On Android 13 and later it selects everything and deletes that. Before, and
// once [Controls.Distrust] was called, it moves the caret to the end of the line
// and deletes as many characters on both sides, in one command; nothing is sent
// if length is 0. Read the field back: an app may keep its text.
func (c *Controls) ClearText(ctx context.Context, length int) error {
	if length < 0 || length > maxCleared {
		return fmt.Errorf("clear text: %d characters, at most %d are deleted: %w", length, maxCleared, ErrBadArgument)
	}
	if c.clearing() == ClearSelection {
		return c.input(ctx, "clear text", 0, fmt.Sprintf("input keycombination %d %d && input keyevent %d", keyControl, keyA, keyDelete))
	}
	if length == 0 {
		return nil
	}
	codes := fmt.Sprintf("input keyevent %d%s%s", keyMoveEnd,
		strings.Repeat(fmt.Sprintf(" %d", keyDelete), length), strings.Repeat(fmt.Sprintf(" %d", keyDeleteNext), length))
	return c.input(ctx, "clear text", time.Duration(2*length)*keyPause, codes)
}

// clearing returns how a field is emptied.
func (c *Controls) clearing() string {
	if c.phone.info.SDK < combinationSDK {
		return ClearCharacters
	}
	c.phone.mu.Lock()
	defer c.phone.mu.Unlock()
	if c.phone.ways.Clearing == "" {
		return ClearSelection
	}
	return c.phone.ways.Clearing
}
