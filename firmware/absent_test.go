package firmware

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
)

// TestAnAddressThatComesLateIsWaitedFor, longer from try to try, and said once; any other error is for the supervisor.
func TestAnAddressThatComesLateIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		began := time.Now()
		var tries []int
		fault := error(syscall.EADDRNOTAVAIL)
		a := absent{open: func(context.Context, string) (net.Listener, error) {
			if tries = append(tries, int(time.Since(began).Seconds())); time.Since(began) < 2*time.Minute {
				return nil, fmt.Errorf("listen: %w", fault)
			}
			return nil, nil
		}}
		listen := func(ctx context.Context) error {
			_, err := a.listen(ctx, slog.New(slog.NewTextHandler(&log, nil)), "the page", "192.0.2.7:80")
			return err
		}
		go func() {
			time.Sleep(5 * time.Second)
			if got := a.list(); !slices.Equal(got, []string{"192.0.2.7:80"}) {
				t.Errorf("missing: %v", got)
			}
		}()
		if err := listen(t.Context()); err != nil || !slices.Equal(tries, []int{0, 1, 3, 7, 15, 31, 61, 91, 121}) {
			t.Errorf("%v, tried after %v s", err, tries)
		}
		if got := a.list(); len(got) != 0 {
			t.Errorf("it is there, and missing: %v", got)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d lines: %s", n, log.String())
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := listen(ctx); !errors.Is(err, context.DeadlineExceeded) || len(a.list()) != 0 {
			t.Errorf("%v, missing %v", err, a.list())
		}
		for other, do := range map[syscall.Errno]string{syscall.EADDRINUSE: "end that program", syscall.EACCES: "choose a port from 1024 on"} {
			fault = other
			if err := listen(t.Context()); !errors.Is(err, fault) || !strings.Contains(err.Error(), do) || !strings.Contains(err.Error(), "192.0.2.7:80") {
				t.Errorf("%v", err)
			}
		}
	})
}
