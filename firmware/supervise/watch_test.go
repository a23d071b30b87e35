package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// part is a function under a name.
type part struct {
	name string
	run  func(context.Context) error
}

func (p part) Serve(ctx context.Context) error { return p.run(ctx) }
func (p part) String() string                  { return p.name }

func TestABadPartWaitsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		began := time.Now()
		var told []string
		w := New(Options{
			Logger: slog.New(slog.NewTextHandler(&out, nil)), Clock: func() time.Duration { return time.Since(began) },
			Panicked: func(part string) { told = append(told, part) },
		})
		var bad, broken, good atomic.Int64
		tree := w.Tree("rack", time.Second)
		w.Add(tree, part{"slot 1", func(context.Context) error {
			bad.Add(1)
			panic("index out of range")
		}}, time.Second)
		w.Add(tree, part{"mcp", func(context.Context) error {
			broken.Add(1)
			return errors.New("address already in use")
		}}, time.Second)
		var seldom atomic.Int64
		w.Add(tree, part{"link", func(ctx context.Context) error {
			seldom.Add(1)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(7 * time.Second):
				return errors.New("connection reset")
			}
		}}, time.Second)
		w.Add(tree, part{"slot 2", func(ctx context.Context) error {
			for {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Second):
					good.Add(1)
				}
			}
		}}, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		ended := tree.ServeBackground(ctx)
		time.Sleep(time.Minute + time.Second/2)
		parts := w.Parts()
		var names []string
		for _, p := range parts {
			names = append(names, p.Name)
		}
		if fmt.Sprint(names) != "[slot 1 mcp link slot 2]" {
			t.Fatalf("parts %v", names)
		}
		if p := parts[1]; p.State != Waiting || p.Ends != broken.Load() || p.Since == 0 || p.Since > time.Minute {
			t.Errorf("a part that waits: %+v", p)
		}
		if p := parts[2]; p != (Part{"link", Running, 56 * time.Second, 8}) {
			t.Errorf("a part that was started anew: %+v", p)
		}
		if p := parts[3]; p != (Part{"slot 2", Running, 0, 0}) {
			t.Errorf("a part that runs: %+v", p)
		}
		cancel()
		<-ended

		if good.Load() != 60 {
			t.Errorf("the good part worked %d times in 60 s", good.Load())
		}
		if seldom.Load() != 9 { // at 0, 7, 14... 56 s: it never waits
			t.Errorf("a part that fails each 7 s was started %d times in a minute", seldom.Load())
		}
		if n := bad.Load(); n < 6 || n > 30 {
			t.Errorf("the bad part was started %d times in a minute", n)
		}
		counts := w.Restarts()
		if counts["slot 1"] != bad.Load() || counts["mcp"] != broken.Load() || counts["slot 2"] != 0 || len(told) != int(bad.Load()) {
			t.Errorf("%v of %d and %d, told %d", counts, bad.Load(), broken.Load(), len(told))
		}
		if ends := w.Take(); len(ends) != int(bad.Load()+broken.Load())+8 || len(w.Take()) != 0 {
			t.Errorf("%d ends", len(ends))
		}
		log := out.String()
		if n := strings.Count(log, "watch_test.go"); n == 0 || strings.Count(log, " stack=") != 1 || !strings.Contains(log, "index out of range") {
			t.Errorf("%d stacks in the log:\n%s", strings.Count(log, " stack="), log)
		}
		if strings.Contains(log, "slot 2") {
			t.Errorf("an orderly end is in the log:\n%s", log)
		}
	})
}

// TestAPartThatWaitedRunsAgain: a wait ends, and then the part counts as one that runs.
func TestAPartThatWaitedRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := New(Options{Logger: slog.New(slog.DiscardHandler), Clock: func() time.Duration { return time.Since(began) }})
		tree := w.Tree("rack", time.Second)
		starts := 0
		w.Add(tree, part{"mcp", func(ctx context.Context) error {
			if starts++; starts < 10 { // more than suture takes without a wait
				return errors.New("address already in use")
			}
			<-ctx.Done()
			return ctx.Err()
		}}, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		ended := tree.ServeBackground(ctx)
		waited := false
		for range 3 * 60 {
			time.Sleep(time.Second)
			waited = waited || w.Parts()[0].State == Waiting
		}
		if p := w.Parts()[0]; !waited || p.State != Running || p.Ends != 9 {
			t.Errorf("%+v, waited %t", p, waited)
		}
		cancel()
		<-ended
	})
}

func TestCountsAreBounded(t *testing.T) {
	w := New(Options{Logger: slog.New(slog.DiscardHandler), Clock: func() time.Duration { return 0 }})
	for i := range 3 * maxParts {
		w.count(fmt.Sprint("part ", i))
		w.fresh(fmt.Sprint("part ", i), "")
	}
	counts := w.Restarts()
	if len(counts) != maxParts+1 || counts[other] != 2*maxParts || len(w.Take()) != maxKept || len(w.stacks) > maxStacks {
		t.Errorf("%d parts, %d others, %d stacks", len(counts), counts[other], len(w.stacks))
	}
}

func TestOneStackIsTheSameAtAnotherAddress(t *testing.T) {
	const stack = "goroutine 7 [running]:\nmain.f(0xc0001)\n\t/src/a.go:12 +0x1b\nmain.g()\n\t/src/b.go:3 +0x20\n"
	w := New(Options{})
	for i, c := range []struct {
		part, stack string
		want        bool
	}{
		{"a", stack, true},
		{"a", strings.NewReplacer("0x1b", "0x99", "goroutine 7", "goroutine 8", "0xc0001", "0xc0999").Replace(stack), false},
		{"b", stack, true},
		{"a", strings.Replace(stack, ":12", ":13", 1), true},
	} {
		if got := w.fresh(c.part, c.stack); got != c.want {
			t.Errorf("%d: %t", i, got)
		}
	}
}
