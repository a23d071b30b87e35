package link_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// TestALinkTellsThatItGoesOn: with a session, with a cloud that is silent and without a broker no gap is longer than half a
// minute, and a link that hangs in a call of its own tells nothing.
func TestALinkTellsThatItGoesOn(t *testing.T) {
	refused := errors.New("no route")
	for name, set := range map[string]func(b *bench){
		"online": func(*bench) {},
		"a silent broker": func(b *bench) {
			b.o.Dial = func(context.Context, string, string) (net.Conn, error) { c, _ := net.Pipe(); return c, nil }
		},
		"no broker": func(b *bench) {
			b.o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, refused }
		},
	} {
		t.Run(name, func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				last, longest := time.Now(), time.Duration(0)
				b.o.Round = func() { longest, last = max(longest, time.Since(last)), time.Now() }
				set(b)
				b.run()
				time.Sleep(time.Hour)
				b.stop()
				if longest = max(longest, time.Since(last)); longest > 30*time.Second {
					t.Errorf("it was silent for %v", longest)
				}
			})
		})
	}
	t.Run("a call that hangs", func(t *testing.T) {
		dialogue(t, func(t *testing.T, b *bench) {
			var rounds atomic.Int64
			free := make(chan struct{})
			b.o.Round = func() { rounds.Add(1) }
			b.o.Dial = func(context.Context, string, string) (net.Conn, error) { <-free; return nil, refused }
			b.run()
			time.Sleep(time.Minute)
			before := rounds.Load()
			time.Sleep(time.Hour)
			if after := rounds.Load(); after != before {
				t.Errorf("%d rounds of a link that hangs", after-before)
			}
			close(free)
		})
	})
}
