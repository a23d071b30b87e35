package screen

import (
	"image"
	"testing"
	"time"
)

func TestMessengerSends(t *testing.T) {
	for lang, text := range map[string]string{"en": "hello", "ar": "مرحبا", "zh": "你好"} {
		t.Run(lang, func(t *testing.T) {
			d := drive(t, Config{Language: lang})
			d.open("com.phonerack.messenger")
			d.tap(map[string]string{"en": "Ana", "ar": "آنا", "zh": "安娜"}[lang])
			if d.find("send").Enabled {
				t.Error("an empty message can be sent")
			}
			d.tap("input")
			input, board := d.find("input").Bounds, d.Display().KeyboardTop
			if !d.Keyboard() || input.Max.Y > board {
				t.Errorf("the field %v lies under the keyboard at %d", input, board)
			}
			d.typeText(text)
			d.tap(map[string]string{"en": "Send", "ar": "إرسال", "zh": "发送"}[lang])
			if d.find("input").Text != "" {
				t.Error("the field keeps what was sent")
			}
			d.find(text)
			d.wantJournal("message sent to Ana: " + text)
			d.Key(KeyBack) // the keyboard
			d.Key(KeyBack)
			d.settle()
			if d.find("snippet").Text != text {
				t.Error("the list of conversations shows an old message")
			}
		})
	}
}

func TestMessengerContactAnswersAndMessageIsDeleted(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.messenger")
	d.tap("Ben")
	d.tap("input")
	d.typeText("where are you?")
	d.tap("send")
	if !d.Idle() {
		t.Error("waiting for an answer keeps the screen busy")
	}
	d.wait(4 * time.Second)
	d.find("On my way.")
	d.Key(KeyBack)
	d.LongPress(centre(d.find("where are you?")))
	d.settle()
	d.tap("Delete")
	if d.has("where are you?") {
		t.Error("the message is still there")
	}
}

func TestSettingsSwitches(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.android.settings")
	d.tap("Network and internet")
	wifi := func() *Node { return d.all("switch_widget")[0] }
	if n := wifi(); n.Class != "android.widget.Switch" || !n.Checkable || !n.Checked {
		t.Errorf("switch is %+v", n)
	}
	d.tap("Wi-Fi")
	if wifi().Checked || d.has("wifi_list") {
		t.Error("Wi-Fi is still on")
	}
	d.tap("Wi-Fi")
	d.wantJournal("wifi: off", "wifi: on")
	d.tap("Navigate up")
	d.find("homepage_title")
}

func TestSettingsScrollAndDeveloperOptions(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.android.settings")
	if d.has("About phone") {
		t.Fatal("the list is too short to test scrolling")
	}
	d.Swipe(360, 1300, 360, 400, 300*time.Millisecond)
	d.tap("About phone")
	for range 7 {
		d.tap("Build number")
	}
	d.find("You are now a developer!")
	d.wait(4 * time.Second)
	if d.has("You are now a developer!") {
		t.Error("the toast stays")
	}
	d.wantJournal("developer options on")
}

func TestSecureScreenIsBlack(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.android.settings")
	d.Swipe(360, 1300, 360, 700, 300*time.Millisecond)
	d.tap("Security")
	d.tap("Screen lock")
	g := d.Display()
	img := d.Render()
	bar := image.Rect(0, 0, g.Width, g.StatusBarBottom)
	if !blackIn(img, image.Rect(0, bar.Max.Y, g.Width, min(g.KeyboardTop, g.NavigationBarTop))) {
		t.Error("a secure screen can be seen")
	}
	if blackIn(img, bar) {
		t.Error("the status bar is another window, but black")
	}
	d.typeText("1234")
	if n := d.find("pin_entry"); n.Text != "••••" || !n.Password {
		t.Errorf("the PIN shows as %q, password %v", n.Text, n.Password)
	}
	d.tap("save")
	d.wantJournal("screen lock set")
	if black(d) {
		t.Error("the page after it is black")
	}
}

func black(d *driver) bool {
	img := d.Render()
	return blackIn(img, img.Rect)
}

func blackIn(img *image.RGBA, r image.Rectangle) bool {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if c := img.RGBAAt(x, y); c.R|c.G|c.B != 0 {
				return false
			}
		}
	}
	return true
}

func TestLauncherAndRecents(t *testing.T) {
	d := drive(t, Config{})
	d.tap("Settings")
	d.tap("Network and internet")
	d.Key(KeyHome)
	d.settle()
	if pkg, _ := d.Focus(); pkg != "com.android.launcher3" {
		t.Fatalf("HOME leads to %s", pkg)
	}
	d.tap("Messenger")
	d.Key(KeyAppSwitch)
	d.settle()
	d.tap("Settings")
	d.find("switch_widget") // where it was left
	d.Key(KeyAppSwitch)
	d.settle()
	d.tap("Dismiss Messenger")
	if d.has("Messenger") {
		t.Error("a dismissed app is still listed")
	}
	d.Key(KeyBack)
	d.settle()
	d.find("workspace")
}
