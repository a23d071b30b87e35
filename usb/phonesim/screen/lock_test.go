package screen

import (
	"testing"
	"time"
)

func TestLockScreenKeepsTheAppAway(t *testing.T) {
	d := drive(t, Config{})
	d.open("com.phonerack.shop")
	d.SetKeyguard(Keyguard{On: true})
	d.find("keyguard_root_view")
	if pkg, activity := d.Focus(); pkg != "com.android.systemui" || activity != ".keyguard" {
		t.Errorf("focus %s %s", pkg, activity)
	}
	d.Key(KeyHome)
	d.Key(KeyBack)
	d.Swipe(360, 1500, 360, 1450, time.Second)
	if !d.Locked() {
		t.Fatal("unlocked")
	}
	d.Swipe(360, 1500, 360, 500, 300*time.Millisecond)
	d.settle()
	if d.Locked() || !d.has("search") {
		t.Error("the shop is not back")
	}
	d.Key(KeyPower)
	if !d.Locked() {
		t.Error("the dark phone is not locked")
	}
	d.Key(KeyPower)
	d.Touch(TouchDown, 360, 1500)
	d.Touch(TouchMove, 360, 700)
	d.Touch(TouchUp, 360, 700)
	d.settle()
	if d.Locked() {
		t.Error("a finger that moves up does not unlock")
	}
	d.SetKeyguard(Keyguard{})
	d.Key(KeySleep)
	if d.Locked() {
		t.Error("a phone without a lock screen locks")
	}
}

func TestBouncerGoesBackToTheLockScreen(t *testing.T) {
	d := drive(t, Config{})
	d.SetKeyguard(Keyguard{On: true, PIN: "0042"})
	d.DismissKeyguard()
	d.settle()
	d.find("pinEntry")
	if d.Keyboard() {
		t.Error("the bouncer shows the keyboard")
	}
	d.Key(KeyBack)
	d.settle()
	d.find("keyguard_root_view")
	d.DismissKeyguard()
	d.settle()
	d.typeText("0042\n")
	d.settle()
	if d.Locked() {
		t.Error("the right PIN does not unlock")
	}
}
