package firmware_test

import (
	"testing"

	"phonerack/firmware/action"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/phonesimtest"
)

// A peer with a daemon but without Android, as a phone in recovery or one that still boots.
func TestPhoneWithoutScreenKeepsShellAndFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	bare, err := phonesim.New(phonesim.Config{Serial: "SIM0001", System: &phonesimtest.System{}})
	if err != nil {
		t.Fatal(err)
	}
	b.phones[1].Phone = bare
	b.phones[1].plug(t)
	b.start()
	if s := b.await(1, action.Limited); s.Reason == "" {
		t.Error("a limited slot does not say why")
	}
	if out, code, err := b.shell(1, "echo hi; exit 3", ""); err != nil || code != 3 || out != "hi\n" {
		t.Errorf("shell: %q, %d, %v", out, code, err)
	}
	if err := b.push(1, 100_000); err != nil {
		t.Errorf("push: %v", err)
	}
	for name, act := range map[string]func() error{
		"observe": func() error { return b.observe(1, false) },
		"tap":     func() error { return tapMiddle(b, 1) },
		"task_run": func() error {
			return b.Call(t.Context(), "task_run", action.TaskRunArgs{SlotArgs: slotArgs(1), Goal: "x"}, nil)
		},
	} {
		if err := act(); !wire.Is(err, wire.PhoneLimited) {
			t.Errorf("%s: %v, want %s", name, err, wire.PhoneLimited)
		}
	}
}
