//go:build rig

package rig_test

import (
	"fmt"
	"strings"
	"testing"

	"phonerack/firmware/rig"
	"phonerack/usb/phonesim"
)

// startAdbd starts n real adbd, which are ended at the end of the test.
func startAdbd(t *testing.T, n int) []*rig.Adbd {
	t.Helper()
	adbds, err := kit(t).StartAdbd(within(t, limit), n)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range adbds {
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("log of adbd %s:\n%s", a.Name, a.Log())
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return adbds
}

// TestRealAdbSpeaksToRealAdbd has no code of ours between adb and adbd but the phone's USB side and the emulated bus.
func TestRealAdbSpeaksToRealAdbd(t *testing.T) {
	adbds := startAdbd(t, 2)
	b := boot(t, rig.BoardConfig{Hubs: []rig.Hub{{Path: "1-1", Ports: 4}}, Ports: []string{"1-1.1", "1-2"}, RootFS: true})
	for i, at := range []struct {
		port string
		high bool
	}{{"1-1.1", false}, {"1-2", true}} {
		serial := fmt.Sprintf("SIM%04d", i+1)
		bridge, err := phonesim.NewBridge(phonesim.Config{Serial: serial, HighSpeed: at.high}, adbds[i].Dial)
		if err != nil {
			t.Fatal(err)
		}
		plug(t, b, at.port, serial, bridge)
	}
	ctx := within(t, limit)
	adb := func(command string) (string, int) {
		output, exit, err := b.RunRootFS(ctx, "exec 2>&1; "+command)
		if err != nil {
			t.Fatal(err)
		}
		return output, exit
	}
	if output, exit := adb("adb start-server >/dev/null && adb wait-for-usb-device >/dev/null; for i in $(seq 100); do [ $(adb devices | grep -c device$) = 2 ] && break; sleep 0.1; done; adb devices"); exit != 0 ||
		!strings.Contains(output, "SIM0001\tdevice\n") || !strings.Contains(output, "SIM0002\tdevice\n") {
		t.Fatalf("devices: %d, %s", exit, output)
	}
	for i := range 2 {
		serial := fmt.Sprintf("SIM%04d", i+1)
		if output, exit := adb("adb -s " + serial + " shell 'echo I am $PHONE, user $(id -u); exit 5'"); exit != 5 || output != fmt.Sprintf("I am phone%d, user 2000\n", i+1) {
			t.Errorf("shell of %s: %d, %s", serial, exit, output)
		}
		if output, exit := adb("head -c 3000000 /dev/urandom >/tmp/f && adb -s " + serial + " push /tmp/f /data/local/tmp/f && adb -s " + serial + " pull /data/local/tmp/f /tmp/g && cmp /tmp/f /tmp/g"); exit != 0 {
			t.Errorf("push and pull with %s: %s", serial, output)
		}
		if output, exit := adb("adb -s " + serial + " shell 'touch /usr/x; ls /home /root /work'"); exit == 0 {
			t.Errorf("the shell of %s is not confined: %s", serial, output)
		}
	}
	adb("adb kill-server")
}
