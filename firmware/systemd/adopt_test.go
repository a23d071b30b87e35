package systemd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

func TestAServiceAdoptsWhatItWasPassed(t *testing.T) {
	for name, c := range map[string]struct{ names, want string }{
		"two lines":    {"gpio-hub-a:gpio-hub-b", "err <nil>, left \"\"\ngpio-hub-a one <nil>\ngpio-hub-b two <nil>\n"},
		"a name short": {"gpio-hub-a", "err systemd passed descriptors in a way that cannot be understood: 2 descriptors with 1 names, left \"\"\n"},
	} {
		var passed []*os.File
		for _, text := range []string{"one", "two"} {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			w.WriteString(text)
			w.Close()
			defer r.Close()
			passed = append(passed, r)
		}
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", `LISTEN_PID=$$ exec "$0"`, program)
		cmd.Env = append(os.Environ(), "SYSTEMD_TEST_SERVICE=1", "LISTEN_FDS=2", "LISTEN_FDNAMES="+c.names)
		cmd.ExtraFiles = passed
		out, err := cmd.Output()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %s%v", name, out, err)
		}
	}
}

func TestWhatWasPassedIsReadStrictly(t *testing.T) {
	const pid = 42
	for name, c := range map[string]struct {
		pid, fds, names string
		want            int
		fails           bool
	}{
		"one":               {"42", "1", "gpio-hub-a", 1, false},
		"names may repeat":  {"42", "2", "a:a", 2, false},
		"none":              {"", "", "", 0, false},
		"zero":              {"42", "0", "", 0, false},
		"another process":   {"43", "1", "a", 0, false},
		"a sign":            {"42", "+1", "a", 0, true},
		"a zero before":     {"42", "01", "a", 0, true},
		"below zero":        {"42", "-1", "a", 0, true},
		"no number":         {"42", "x", "a", 0, true},
		"too many":          {"42", "1025", "a", 0, true},
		"no names":          {"42", "1", "", 0, true},
		"a name too many":   {"42", "1", "a:b", 0, true},
		"an empty name":     {"42", "2", "a:", 0, true},
		"a control in name": {"42", "1", "a\n", 0, true},
	} {
		env := map[string]string{"LISTEN_PID": c.pid, "LISTEN_FDS": c.fds, "LISTEN_FDNAMES": c.names}
		names, err := passed(func(key string) string { return env[key] }, pid)
		if len(names) != c.want || (err != nil) != c.fails || err != nil && !errors.Is(err, ErrEnvironment) {
			t.Errorf("%s: %q, %v", name, names, err)
		}
	}
}

func FuzzPassed(f *testing.F) {
	f.Add("1", "a")
	f.Add("2", "a:b")
	f.Add("-1", ":")
	f.Fuzz(func(t *testing.T, fds, fdnames string) {
		env := map[string]string{"LISTEN_PID": "42", "LISTEN_FDS": fds, "LISTEN_FDNAMES": fdnames}
		names, err := passed(func(key string) string { return env[key] }, 42)
		if err == nil && fds != "" && strconv.Itoa(len(names)) != fds || len(names) > maxPassed {
			t.Errorf("%d names of %q", len(names), fds)
		}
	})
}
