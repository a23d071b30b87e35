package android

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// slowWords are in command lines that take long, or for ever, by design.
var slowWords = []string{"zero", "random", "full", "sleep", "logcat", "timeout", "seq", "waitfor"}

// begin returns the context of a command line that may take 30 seconds. One that takes long by design is cut off after a
// moment, and has 30 seconds to notice. ended fails the test if more went by.
func begin(t *testing.T, line string) (ctx context.Context, ended func()) {
	t.Helper()
	limit, began := 30*time.Second, time.Now()
	if slices.ContainsFunc(slowWords, func(w string) bool { return strings.Contains(line, w) }) {
		limit = 20 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	return ctx, func() {
		t.Helper()
		cancel()
		if took := time.Since(began); took >= 30*time.Second {
			t.Fatalf("%q took %s", line, took)
		}
	}
}

// FuzzRun gives the phone any command line: it must answer, and be as well as before.
func FuzzRun(f *testing.F) {
	commands, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(commands)) {
		f.Add(uint8(14), strings.TrimSpace(line))
	}
	for _, line := range []string{"sleep 1000", "cat /dev/zero", "logcat", "seq 1 1000000000 | wc -l", "while :; do sleep 1; done; echo x"} {
		f.Add(uint8(14), line)
	}
	f.Fuzz(func(t *testing.T, version uint8, line string) {
		versions := []int{7, 9, 11, 14, 15}
		p := newPhone(t, versions[int(version)%len(versions)], func(c *Config) { c.Storage = 4 << 20 })
		ctx, ended := begin(t, line)
		var out, errOut bytes.Buffer
		status := p.Run(ctx, line, strings.NewReader("line one\nline two\n"), &out, &errOut)
		ended()
		if status < 0 || status > 255 {
			t.Fatalf("status %d", status)
		}
		if got := p.ok("getprop ro.serialno"); got != "SIM42\n" {
			t.Fatalf("afterwards: %q", got)
		}
	})
}

// FuzzArguments gives a command any arguments, past the shell.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		"settings\x00put\x00global\x00x\x00y", "settings\x00--user", "input\x00swipe\x001\x002\x003", "input\x00-d", "input\x00keyevent\x00--delay",
		"am\x00start\x00-n", "am\x00start\x00-n\x00/", "wm\x00size\x00x", "wm\x00size\x00-d\x001", "dumpsys\x00-t", "dumpsys\x00battery\x00-f",
		"screencap\x00-d", "uiautomator\x00dump\x00--windows", "content\x00query\x00--uri", "ps\x00-o", "monkey\x00-p", "cmd\x00battery\x00get\x00x",
		"svc\x00power", "ime\x00set", "pm\x00list", "logcat\x00-d\x00-t", "df\x00-h", "kill\x00-9", "setprop\x00a\x00b", "service\x00call",
		"grep\x00-e", "cut\x00-f\x00-", "tail\x00-c\x00+", "printf\x00%", "xargs\x00-n", "stat\x00-c\x00%", "dd\x00bs=0", "date\x00+%", "chmod\x00u\x00x",
		"tr\x00a-\x00\\", "find\x00-name", "head\x00-1", "seq\x001\x000\x002", "sleep\x00inf", "logcat", "base64\x00-w", "sort\x00-k", "ls\x00--",
	} {
		f.Add(s)
	}
	p := newPhone(f, 15, func(c *Config) { c.Storage = 4 << 20 })
	sys := (*system)(p.Device)
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		if _, ok := sys.Which(args[0]); !ok || len(args) > 20 {
			return // no command: FuzzRun gives those to the shell
		}
		ctx, ended := begin(t, line)
		quoted := make([]string, len(args))
		for i, a := range args {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		var out, errOut bytes.Buffer
		p.Run(ctx, strings.Join(quoted, " "), strings.NewReader("in\n"), &out, &errOut)
		ended()
		if strings.Contains(errOut.String(), "Segmentation fault") {
			t.Fatalf("%q: a panic", args)
		}
	})
}

func TestManyCommandsAtOnce(t *testing.T) {
	p := newPhone(t, 14, nil)
	var wg sync.WaitGroup
	for _, line := range []string{
		"uiautomator dump; cat /sdcard/window_dump.xml", "screencap | gzip -1 | wc -c", "dumpsys window displays; am start -n com.phonerack.shop/.MainActivity",
		"input text abc; input tap 1 2; input keyevent 26 26", "settings put global k v; settings list global", "dumpsys battery set level 3; dumpsys battery reset",
		"echo x > /sdcard/f; cat /sdcard/f; rm -f /sdcard/f", "logcat -d; pm list packages; ps -A", "cat /proc/uptime; head -c 10 /dev/urandom | wc -c",
	} {
		wg.Go(func() {
			for range 10 {
				var out, errOut bytes.Buffer
				p.Run(t.Context(), line, nil, &out, &errOut)
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			p.ChangeFaults(func(f *Faults) { f.StorageFull = !f.StorageFull; f.DropText = 0.5 - f.DropText })
			p.SetBattery(p.Battery())
			p.Restart()
		}
	})
	wg.Wait()
}

func FuzzUnicodeKeyboard(f *testing.F) {
	f.Add("a&AOk-&-&2D3eAA-")
	f.Add("&")
	f.Fuzz(func(t *testing.T, text string) {
		p := newPhone(t, 14, nil)
		p.typeUTF7(text)
		if len(p.shifted) > maxShifted {
			t.Errorf("collected %d characters", len(p.shifted))
		}
		if s := "&" + text + "-"; !strings.HasPrefix(decodeUTF7("&-"), "&") || decodeUTF7(s) == "" && text != "" {
			t.Errorf("%q became nothing", s)
		}
	})
}
