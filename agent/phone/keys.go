package phone

import (
	"maps"
	"slices"
)

// keyCodes are the keys that Key presses, with Android's key codes (KeyEvent).
var keyCodes = map[string]int{
	"home":        3,
	"back":        4,
	"up":          19,
	"down":        20,
	"left":        21,
	"right":       22,
	"center":      23,
	"volume_up":   24,
	"volume_down": 25,
	"power":       26,
	"tab":         61,
	"space":       62,
	"enter":       66,
	"delete":      67, // before the caret
	"menu":        82,
	"search":      84,
	"page_up":     92,
	"page_down":   93,
	"escape":      111,
	"delete_next": 112, // behind the caret
	"move_home":   122,
	"move_end":    123,
	"app_switch":  187,
	"recents":     187,
	"sleep":       223,
	"wakeup":      224,
	"paste":       279,
}

// Keys returns the names that Controls.Key accepts, sorted.
func Keys() []string { return slices.Sorted(maps.Keys(keyCodes)) }
