package firmware_test

import (
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/keyring"
	"phonerack/usb/phonesim"
)

// A key is replaced while a phone is there: it is asked, its person accepts for good, and the old key is gone.
func TestAPhoneTakesTheNewKeyAndTheOldOneGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.phones[1] = newSimPhone(t, b.phones[1].path, serialOf(1), 14, phonesim.Auth{Required: true, AcceptAfter: 50 * time.Millisecond, AcceptAlways: true})
	b.phones[1].plug(t)
	b.start()
	status := func(done func(keyring.Status) bool) keyring.Status {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			var s keyring.Status
			if err := b.Call(t.Context(), "adb_key_status", nil, &s); err != nil {
				t.Fatal(err)
			}
			if done(s) {
				return s
			}
			if time.Now().After(deadline) {
				t.Fatalf("the keys stay as they are: %+v %+v", s, s.Next)
			}
		}
	}
	b.await(1, action.Ready)
	b.phones[1].Unplug() // a person's consent proves nothing: the next connection does
	first := status(func(s keyring.Status) bool { return s.Known == 1 })
	var changing keyring.Status
	if err := b.Call(t.Context(), "adb_key_rotate", nil, &changing); err != nil || changing.Next == nil || changing.Next.Left != 1 {
		t.Fatalf("%+v, %v", changing, err)
	}
	if err := b.Call(t.Context(), "adb_key_ask", slotArgs(1), nil); err != nil {
		t.Fatal(err)
	}
	if last := status(func(s keyring.Status) bool { return s.Next == nil }); last.Key == first.Key || last.Key != changing.Next.Key || last.Known != 1 {
		t.Errorf("first %+v, last %+v", first, last)
	}
}
