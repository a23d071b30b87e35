package firmware_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
	"phonerack/firmware/lease"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
	"phonerack/usb/phonesim/android/uia2"
)

// help puts the helper apps on the phone of a slot, as a person had it done.
func (b *bench) help(slot int) {
	b.t.Helper()
	server, tests := apktest.Server()
	for _, m := range []apk.Manifest{server, tests, apktest.Settings()} {
		const path = "/data/local/tmp/helper.apk"
		args := action.PushArgs{SlotArgs: slotArgs(slot), Path: path}
		if err := b.Stream(b.t.Context(), "push", args, action.Pipes{In: bytes.NewReader(apktest.Build(m))}, nil); err != nil {
			b.t.Fatal(err)
		}
		if out, code, err := b.shell(slot, "pm install -r "+path, ""); code != 0 || err != nil {
			b.t.Fatalf("%s: code %d, %v", out, code, err)
		}
	}
	if err := firmware.WantHelpers(b.rack, slot); err != nil {
		b.t.Fatal(err)
	}
}

func TestAStopWhileHelpersStartDoesNotWaitForThem(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	var log lockedText
	b.log = slog.New(slog.NewTextHandler(&log, nil))
	b.phones[1].plug(t)
	b.start()
	b.await(1, action.Ready)
	b.help(1)
	b.phones[1].unplug()
	b.await(1, action.Empty)
	b.phones[1].device.ChangeFaults(func(f *android.Faults) { f.Server = uia2.Faults{Hang: true} }) // it takes requests, and answers none
	b.phones[1].plug(t)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, listens := b.phones[1].device.Port(6790); listens {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the helpers are not started\n%s", log.String())
		}
	}
	if l := b.state(1).Lease; l == nil || l.Holder.Kind != lease.Recovery {
		t.Errorf("they are started under the lease %+v", l)
	}
	b.phones[1].SetFaults(phonesim.Faults{Hang: true}) // nor does the phone say that the server is ended
	if took := b.stop(); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if strings.Contains(log.String(), "abandoned") {
		t.Errorf("the slot did not stop\n%s", log.String())
	}
	if !strings.Contains(log.String(), "the helpers were not stopped") {
		t.Errorf("nobody says so\n%s", log.String())
	}
}
