//go:build rig

package rig_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"phonerack/firmware/rig"
	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/phonesimtest"
)

func TestZZ(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	k, err := rig.Prepare(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	as, err := k.StartAdbd(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range as {
		defer a.Close()
	}
	ports := []string{"1-1.1", "1-1.2", "1-1.3", "1-2.1", "1-2.2", "1-1.8.1", "1-1.8.2", "1-1.8.3", "1-3", "1-4"}
	b, err := k.Boot(ctx, rig.BoardConfig{
		Hubs:  []rig.Hub{{"1-1", 8}, {"1-2", 8}, {"1-1.8", 4}},
		Ports: ports,
		Files: map[string]string{"/bin/usblink.test": "/tmp/usblink.test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	defer rig.Dump(t, b)
	var phones []*phonesim.Phone
	for i, p := range ports {
		cfg := phonesim.Config{Serial: fmt.Sprintf("SIM%04d", i), HighSpeed: len(p) == 3, System: &phonesimtest.System{}, Logger: slog.New(slog.NewTextHandler(b.Log(p), nil)), Android: []int{7, 9, 11, 14, 15}[i%5]}
		var ph *phonesim.Phone
		if p == "1-2.2" || p == "1-4" {
			n := 0
			if p == "1-4" {
				n = 1
			}
			ph, err = phonesim.NewBridge(cfg, as[n].Dial)
		} else {
			ph, err = phonesim.New(cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
		phones = append(phones, ph)
		if _, err := b.Plug(ctx, p, ph); err != nil {
			t.Fatal(err)
		}
	}
	all := ""
	for i, p := range ports {
		if _, err := b.WaitPlugged(ctx, p, fmt.Sprintf("SIM%04d", i)); err != nil {
			t.Fatal(err)
		}
		all += p + " "
	}
	t.Log("plugged")
	code, err := b.Stream(ctx, "export RUN="+os.Getenv("RUN")+"; PHONERACK_LARGE="+os.Getenv("LARGE")+" PHONERACK_PHONES='"+all+"' /bin/usblink.test -test.v -test.run $RUN 2>&1", nil, os.Stdout)
	t.Log(code, err)
	for _, ph := range phones {
		for _, v := range ph.Violations() {
			t.Errorf("violation %+v", v)
		}
	}
	if code != 0 {
		t.Fail()
	}
}
