//go:build rig

package powerrig_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"phonerack/firmware/rig/powerrig"
)

func TestTry(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	dir, _ := os.MkdirTemp("", "pwr")
	defer os.RemoveAll(dir)
	begin := time.Now()
	lap := func(what string) { t.Logf("%6.1f %s", time.Since(begin).Seconds(), what) }
	s, err := powerrig.New(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	lap("made")
	defer s.Close()
	for i := range 3 {
		kind := powerrig.Kind(i % 2)
		if err := s.Boot(ctx, kind); err != nil {
			if s.Board() != nil {
				t.Log(s.Board().Console())
			}
			t.Fatal(err)
		}
		lap("booted " + kind.String())
		t.Log(s.Board().Console())
		id, err := s.Submit(ctx, "k"+string(rune('0'+i)), "Send the message 'Order' to Ana")
		if err != nil {
			t.Fatal(err)
		}
		lap("submitted " + id)
		for range 100 {
			st, err := s.States(ctx)
			if err != nil {
				t.Fatal(err)
			}
			lap(st[id])
			if st[id] != "queued" && st[id] != "running" && st[id] != "leased" {
				break
			}
			time.Sleep(time.Second)
		}
		if s.Disk() != nil {
			t.Log(s.Disk().Counts())
		}
		loss, err := s.Cut(rand.New(rand.NewPCG(1, 1)))
		t.Log(loss, err)
		lap("cut")
		if err := s.Unpack(ctx, dir+"/u"+string(rune('0'+i))); err != nil {
			t.Error(err)
		}
		lap("unpacked")
	}
}
