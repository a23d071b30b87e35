package rig

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTraceOfTheWiresIsRead(t *testing.T) {
	at := time.Unix(1790000000, 123000)
	for _, c := range []struct {
		text string
		want Change
		ok   bool
	}{
		{"77@1790000000.000123:pl061_set_output (null) setting output 5 to 1", Change{At: at, Line: 5, On: true}, true},
		{"77@1790000000.000123:pl061_set_output gpio setting output 0 to 0", Change{At: at}, true},
		{"77@1790000000.000123:usb_hub_set_port_feature dev 3, port 2, feature power", Change{At: at, Line: -1, Hub: 3, Port: 2, On: true}, true},
		{"77@1790000000.000123:usb_hub_clear_port_feature dev 3, port 2, feature power", Change{At: at, Line: -1, Hub: 3, Port: 2}, true},
		{"77@1790000000.000123:usb_hub_set_port_feature dev 3, port 2, feature reset", Change{}, false},
		{"77@1790000000.000123:pl061_set_output gpio setting output 8 to 0", Change{}, false},
		{"pl061_set_output gpio setting output 1 to 0", Change{}, false},
		{"", Change{}, false},
	} {
		if got, ok := parseChange(c.text); got != c.want || ok != c.ok {
			t.Errorf("%q: %v, %v", c.text, got, ok)
		}
	}
}

func TestLinesThatFollowAreGivenOnceThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConsole()
		go func() {
			time.Sleep(time.Second)
			c.Write([]byte("one\ntwo\nthr"))
			time.Sleep(time.Second)
			c.Write([]byte("ee\n"))
			c.end()
		}()
		for n, want := range []int{0: 2, 2: 1} { // after so many lines so many come
			if want == 0 {
				continue
			}
			if lines, err := c.after(t.Context(), n); len(lines) != want || err != nil {
				t.Errorf("after %d: %v, %v", n, lines, err)
			}
		}
		if _, err := c.after(t.Context(), 3); !errors.Is(err, ErrEnded) {
			t.Errorf("after the end: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := newConsole().after(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing comes: %v", err)
		}
	})
}

func TestConsoleSaysWhenLinesWereDropped(t *testing.T) {
	c := newConsole()
	for range consoleLimit + 5 {
		c.Write([]byte("x\n"))
	}
	if _, err := c.after(t.Context(), 3); err == nil {
		t.Error("lines that were dropped are passed over in silence")
	}
	if lines, err := c.after(t.Context(), consoleLimit+2); len(lines) != 3 || err != nil {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}
