package android

import "strconv"

// Key codes that the system itself acts on.
const (
	keyHome      = 3
	keyPower     = 26
	keyEnter     = 66
	keySleep     = 223
	keyWakeUp    = 224
	keySoftSleep = 276
)

// keyNames are the names of android.view.KeyEvent without "KEYCODE_".
var keyNames = map[string]int{
	"UNKNOWN": 0, "SOFT_LEFT": 1, "SOFT_RIGHT": 2, "HOME": 3, "BACK": 4, "CALL": 5, "ENDCALL": 6,
	"STAR": 17, "POUND": 18, "DPAD_UP": 19, "DPAD_DOWN": 20, "DPAD_LEFT": 21, "DPAD_RIGHT": 22, "DPAD_CENTER": 23,
	"VOLUME_UP": 24, "VOLUME_DOWN": 25, "POWER": 26, "CAMERA": 27, "CLEAR": 28,
	"COMMA": 55, "PERIOD": 56, "ALT_LEFT": 57, "ALT_RIGHT": 58, "SHIFT_LEFT": 59, "SHIFT_RIGHT": 60, "TAB": 61, "SPACE": 62,
	"SYM": 63, "EXPLORER": 64, "ENVELOPE": 65, "ENTER": 66, "DEL": 67, "GRAVE": 68, "MINUS": 69, "EQUALS": 70,
	"LEFT_BRACKET": 71, "RIGHT_BRACKET": 72, "BACKSLASH": 73, "SEMICOLON": 74, "APOSTROPHE": 75, "SLASH": 76, "AT": 77,
	"NUM": 78, "HEADSETHOOK": 79, "FOCUS": 80, "PLUS": 81, "MENU": 82, "NOTIFICATION": 83, "SEARCH": 84,
	"MEDIA_PLAY_PAUSE": 85, "MEDIA_STOP": 86, "MEDIA_NEXT": 87, "MEDIA_PREVIOUS": 88, "MEDIA_REWIND": 89,
	"MEDIA_FAST_FORWARD": 90, "MUTE": 91, "PAGE_UP": 92, "PAGE_DOWN": 93, "PICTSYMBOLS": 94, "SWITCH_CHARSET": 95,
	"ESCAPE": 111, "FORWARD_DEL": 112, "CTRL_LEFT": 113, "CTRL_RIGHT": 114, "CAPS_LOCK": 115, "SCROLL_LOCK": 116,
	"META_LEFT": 117, "META_RIGHT": 118, "FUNCTION": 119, "SYSRQ": 120, "BREAK": 121, "MOVE_HOME": 122, "MOVE_END": 123,
	"INSERT": 124, "FORWARD": 125, "MEDIA_PLAY": 126, "MEDIA_PAUSE": 127, "MEDIA_CLOSE": 128, "MEDIA_EJECT": 129,
	"MEDIA_RECORD": 130, "NUM_LOCK": 143, "NUMPAD_ENTER": 160, "VOLUME_MUTE": 164, "INFO": 165, "ZOOM_IN": 168,
	"ZOOM_OUT": 169, "SETTINGS": 176, "APP_SWITCH": 187, "LANGUAGE_SWITCH": 204, "CONTACTS": 207, "CALENDAR": 208,
	"MUSIC": 209, "CALCULATOR": 210, "ASSIST": 219, "BRIGHTNESS_DOWN": 220, "BRIGHTNESS_UP": 221, "SLEEP": 223,
	"WAKEUP": 224, "SOFT_SLEEP": 276, "CUT": 277, "COPY": 278, "PASTE": 279, "ALL_APPS": 284, "REFRESH": 285,
}

func init() {
	for c := 'A'; c <= 'Z'; c++ {
		keyNames[string(c)] = 29 + int(c-'A')
	}
	for n := range 10 {
		keyNames[strconv.Itoa(n)] = 7 + n
		keyNames["NUMPAD_"+strconv.Itoa(n)] = 144 + n
	}
	for n := 1; n <= 12; n++ {
		keyNames["F"+strconv.Itoa(n)] = 130 + n
	}
}

// lastKeyCode is the highest code that some Android knows.
const lastKeyCode = 330
