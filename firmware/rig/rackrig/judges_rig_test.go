//go:build rig

package rackrig_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
	"phonerack/usb/phonesim"
)

// TestRealAdbBeforeSimulatedPhones: the real adb client in the guest, over the board's USB, authenticates to simulated
// phones, which reject what a phone would reject, and uses them.
func TestRealAdbBeforeSimulatedPhones(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	kit, err := rig.Prepare(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	ports := []string{"1-1.1", "1-2"}
	b, err := kit.Boot(ctx, rig.BoardConfig{Hubs: []rig.Hub{{Path: "1-1", Ports: 4}}, Ports: ports, RootFS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			rig.Dump(t, b)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	prompts := make(chan string, len(ports))
	phones := map[string]*phonesim.Phone{}
	for i, port := range ports {
		serial := fmt.Sprintf("SIM%04d", i+1)
		p, err := rackrig.Simulate(rackrig.PhoneSpec{Port: port, Serial: serial, Android: []int{9, 14}[i]})
		if err != nil {
			t.Fatal(err)
		}
		usb, err := phonesim.New(phonesim.Config{
			Serial: serial, Android: p.PhoneSpec.Android, HighSpeed: rackrig.OnController(port), System: p.Android,
			Auth: phonesim.Auth{Required: true}, OnPrompt: func(string) { prompts <- serial },
		})
		if err != nil {
			t.Fatal(err)
		}
		phones[serial] = usb
		if _, err := b.Plug(ctx, port, usb); err != nil {
			t.Fatal(err)
		}
		if _, err := b.WaitPlugged(ctx, port, serial); err != nil {
			t.Fatal(err)
		}
	}
	adb := func(command string) (string, int) {
		t.Helper()
		out, exit, err := b.RunRootFS(ctx, "exec 2>&1; "+command)
		if err != nil {
			t.Fatal(err)
		}
		return out, exit
	}
	adb("adb start-server")
	for range ports {
		select {
		case serial := <-prompts:
			if out, _ := adb("adb devices"); !strings.Contains(out, serial+"\tunauthorized") {
				t.Errorf("before the prompt is accepted adb says:\n%s", out)
			}
			if !phones[serial].AcceptPrompt(true) {
				t.Errorf("%s asks nothing", serial)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("no phone asks for a key")
		}
	}
	for serial, p := range phones {
		if out, exit := adb("timeout 60 adb -s " + serial + " wait-for-device shell 'getprop ro.serialno; exit 5'"); exit != 5 || out != serial+"\n" {
			t.Errorf("shell of %s: exit code %d, %q", serial, exit, out)
		}
		if out, exit := adb("head -c 3000000 /dev/urandom >/tmp/f && adb -s " + serial + " push /tmp/f /data/local/tmp/f && adb -s " + serial + " pull /data/local/tmp/f /tmp/g && cmp /tmp/f /tmp/g"); exit != 0 {
			t.Errorf("push and pull with %s: %s", serial, out)
		}
		for _, v := range p.Violations() {
			t.Errorf("%s: adb broke a rule: %+v", serial, v)
		}
	}
	if out, _ := adb("adb devices"); strings.Count(out, "\tdevice\n") != len(ports) {
		t.Errorf("devices: %s", out)
	}
	adb("adb kill-server")
}
