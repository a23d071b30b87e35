package firmware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/firmware"
	"phonerack/firmware/action"
)

// TestAnAddressThatComesLateIsWaitedFor, longer from try to try, and said once; any other error is for the supervisor.
func TestAnAddressThatComesLateIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log audit
		began := time.Now()
		var tries []int
		fault := error(syscall.EADDRNOTAVAIL)
		a := firmware.Absences(func(context.Context, string) (net.Listener, error) {
			if tries = append(tries, int(time.Since(began).Seconds())); time.Since(began) < 2*time.Minute {
				return nil, fmt.Errorf("listen: %w", fault)
			}
			return nil, nil
		})
		listen := func(ctx context.Context) error {
			_, err := a.Listen(ctx, slog.New(slog.NewTextHandler(&log, nil)), "the page", "192.0.2.7:80")
			return err
		}
		go func() {
			time.Sleep(5 * time.Second)
			if got := a.List(); !slices.Equal(got, []string{"192.0.2.7:80"}) {
				t.Errorf("missing: %v", got)
			}
		}()
		if err := listen(t.Context()); err != nil || !slices.Equal(tries, []int{0, 1, 3, 7, 15, 31, 61, 91, 121}) {
			t.Errorf("%v, tried after %v s", err, tries)
		}
		if got := a.List(); len(got) != 0 {
			t.Errorf("it is there, and missing: %v", got)
		}
		if n := strings.Count(log.lines.String(), "\n"); n != 1 {
			t.Errorf("%d lines: %s", n, log.lines.String())
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := listen(ctx); !errors.Is(err, context.DeadlineExceeded) || len(a.List()) != 0 {
			t.Errorf("%v, missing %v", err, a.List())
		}
		fault = syscall.EADDRINUSE
		if err := listen(t.Context()); !errors.Is(err, fault) {
			t.Errorf("%v", err)
		}
	})
}

// TestAPageWhoseAddressIsLateIsNoCrash: the rack says which address it is.
func TestAPageWhoseAddressIsLateIsNoCrash(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.config.Page.Listen = []string{"192.0.2.77:8080"} // documentation's: no machine has it
	b.start()
	codes := func() (all []string) {
		var st action.RackStatus
		if err := b.Call(t.Context(), "rack_status", nil, &st); err != nil {
			t.Fatal(err)
		}
		for _, f := range st.Findings {
			all = append(all, f.Code)
		}
		return all
	}
	b.within("the finding", func() bool { return slices.Contains(codes(), "address_missing") })
	if slices.Contains(codes(), "service_crashing") || firmware.EndsOf(b.rack) != 0 {
		t.Errorf("a part has crashed %d times: %v", firmware.EndsOf(b.rack), codes())
	}
}
