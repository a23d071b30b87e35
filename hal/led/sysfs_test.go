package led

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// kernelLED is one LED of the kernel's class with its triggers none, timer and transient, as ledtrig-transient.c has
// them: a start is ignored while the timer runs, and its end restores a dark LED.
type kernelLED struct {
	mu       sync.Mutex
	name     string
	max      int
	triggers []string

	trigger    string
	brightness int
	duration   time.Duration
	active     *time.Timer
	lit        time.Time // since when it is lit
	longest    time.Duration
	dead       bool // nothing arrives any more, as from a process that died
	stuck      bool // brightness is accepted and not shown (raspberrypi/linux#7250)
}

func (k *kernelLED) ReadFile(path string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch file, ok := strings.CutPrefix(path, "/s/class/leds/"+k.name+"/"); {
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	case file == "max_brightness":
		return fmt.Appendln(nil, k.max), nil
	case file == "brightness":
		return fmt.Appendln(nil, k.brightness), nil
	case file == "trigger":
		var b []byte
		for _, t := range k.triggers {
			if t == k.trigger {
				t = "[" + t + "]"
			}
			b = fmt.Appendf(b, "%s ", t)
		}
		return b, nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func (k *kernelLED) WriteFile(path string, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return nil
	}
	value := 0
	fmt.Sscan(string(data), &value)
	switch filepath.Base(path) {
	case "trigger":
		k.trigger = string(data)
		if k.trigger == "transient" {
			k.duration = 0
		}
		return nil
	case "brightness":
		if value == 0 {
			k.trigger = "none"
		}
		k.show(value)
		return nil
	}
	if k.trigger != "transient" {
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	switch filepath.Base(path) {
	case "duration":
		k.duration = time.Duration(value) * time.Millisecond
	case "state":
		if value != 1 {
			return errors.New("invalid argument")
		}
	case "activate":
		switch {
		case value == 1 && k.active == nil && k.duration > 0:
			k.show(k.max)
			k.active = time.AfterFunc(k.duration, func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.active = nil
				k.show(0)
			})
		case value == 0 && k.active != nil:
			k.active.Stop()
			k.active = nil
			k.show(0)
		}
	}
	return nil
}

func (k *kernelLED) show(n int) {
	if k.stuck {
		return
	}
	if k.brightness == 0 && n > 0 {
		k.lit = time.Now()
	}
	if n == 0 && k.brightness > 0 && !k.lit.IsZero() {
		k.longest = max(k.longest, time.Since(k.lit))
	}
	k.brightness = min(n, k.max)
}

func (k *kernelLED) level() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.brightness
}

func TestTheLightGoesOffWhenItsProgramDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernelLED{name: "ACT", max: 1, brightness: 1, trigger: "mmc0", triggers: []string{"none", "mmc0", "timer", "transient"}}
		lamp, err := OpenClass("/s", []string{"led0", "ACT"}, k)
		if err != nil {
			t.Fatal(err)
		}
		if !lamp.Ends() || lamp.Name() != "ACT" {
			t.Fatalf("%s ends: %v", lamp.Name(), lamp.Ends())
		}
		l := New(lamp, nil, nil)
		l.Set(Well, true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if k.level() != 1 || k.longest > 2*time.Second {
			t.Errorf("brightness %d, once not lit anew for %v", k.level(), k.longest)
		}
		k.mu.Lock()
		k.dead = true
		k.mu.Unlock()
		time.Sleep(Grace)
		synctest.Wait()
		if k.level() != 0 {
			t.Error("the light shines on without its program")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestClassHonoursTheKernelItFinds(t *testing.T) {
	for _, c := range []struct {
		name   string
		led    *kernelLED
		lit    int
		wanted string
	}{
		{"full brightness is max_brightness", &kernelLED{max: 255, trigger: "heartbeat", triggers: []string{"none", "heartbeat"}}, 255, ""},
		{"one step (raspberrypi/linux#800)", &kernelLED{max: 1, trigger: "none", triggers: []string{"none"}}, 1, ""},
		{"transient", &kernelLED{max: 255, trigger: "timer", triggers: []string{"none", "timer", "transient"}}, 255, ""},
		{"ignored writes (raspberrypi/linux#7250)", &kernelLED{max: 255, stuck: true, trigger: "none", triggers: []string{"none"}}, 0, "its brightness reads 0 after it was set to lit=true"},
		{"trigger that sticks (raspberrypi/firmware#1068)", &kernelLED{max: 255, trigger: "none", triggers: []string{"mmc0"}}, 0, "its trigger did not become none"},
		{"no brightness", &kernelLED{max: 0, triggers: []string{"none"}}, 0, "max_brightness is 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := c.led
				k.name = "led0"
				lamp, err := OpenClass("/s", []string{"led0", "ACT"}, k)
				if err == nil {
					err = lamp.Set(true)
				}
				switch {
				case c.wanted == "" && err != nil, c.wanted != "" && (err == nil || !strings.Contains(err.Error(), c.wanted)):
					t.Fatalf("got %v, want %q", err, c.wanted)
				case k.level() != c.lit:
					t.Errorf("brightness %d", k.level())
				case err == nil:
					if err := lamp.Set(false); err != nil || k.level() != 0 {
						t.Errorf("off: %v, brightness %d", err, k.level())
					}
				}
			})
		})
	}
}

func TestClassOnPlainFiles(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "class/leds/ACT")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"max_brightness": "255\n", "brightness": "0", "trigger": "[none]"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A plain file keeps what was written to it, where the kernel would put the brackets: the check says so.
	lamp, err := OpenClass(root, []string{"ACT"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := lamp.Set(true); err == nil || !strings.Contains(err.Error(), "its trigger did not become none") {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "trigger")); !strings.HasPrefix(string(got), "none") {
		t.Errorf("trigger holds %q", got)
	}
	if _, err := OpenClass(root, []string{"led0"}, nil); !errors.Is(err, ErrNoLED) {
		t.Errorf("no such LED: %v", err)
	}
	if _, err := OpenClass(root, []string{"../../x"}, nil); err == nil {
		t.Error("a name that leaves the folder was taken")
	}
}
