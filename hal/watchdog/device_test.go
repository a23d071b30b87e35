package watchdog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"phonerack/hal/watchdog"
)

// driver answers the requests of a device whose file is a plain one.
type driver struct {
	options uint32
	most    int // seconds that it takes; 0 for any
	seconds int
	boot    int
	fed     int
	fault   error
}

func (d *driver) SetTimeout(_, seconds int) error {
	if d.most != 0 && seconds > d.most {
		return unix.EINVAL
	}
	d.seconds = seconds
	return nil
}
func (d *driver) GetTimeout(int) (int, error)      { return d.seconds, nil }
func (d *driver) BootStatus(int) (int, error)      { return d.boot, nil }
func (d *driver) Info(int) (uint32, string, error) { return d.options, "Broadcom BCM2835", d.fault }
func (d *driver) KeepAlive(int) error              { d.fed++; return nil }

const usual = unix.WDIOF_SETTIMEOUT | unix.WDIOF_MAGICCLOSE | unix.WDIOF_KEEPALIVEPING

func TestTheEffectiveTimeoutCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		driver driver
		ask    time.Duration
		want   time.Duration
		fault  string
	}{
		{"as asked", driver{options: usual}, 12 * time.Second, 12 * time.Second, ""},
		{"30 s on hardware with 15 (systemd#27427)", driver{options: usual, most: 15}, 30 * time.Second, 15 * time.Second, ""},
		{"12 s on hardware with 5", driver{options: usual, most: 5}, 12 * time.Second, 5 * time.Second, ""},
		{"one that takes none of them", driver{options: usual, most: 1}, 12 * time.Second, 0, "set its timeout: invalid argument"},
		{"one with a fixed timeout", driver{options: unix.WDIOF_MAGICCLOSE, seconds: 60}, 12 * time.Second, time.Minute, ""},
		{"one that says nothing of use", driver{options: unix.WDIOF_MAGICCLOSE}, 12 * time.Second, 0, "its timeout reads 0 s"},
		{"no watchdog behind the file", driver{fault: unix.ENOTTY}, 12 * time.Second, 0, "ask what it can do: inappropriate ioctl"},
		{"less than a second", driver{options: usual}, time.Millisecond, 0, "less than a second"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t)
			k, err := watchdog.Open(path, t.TempDir(), c.ask, &c.driver)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || k.Timeout() != c.want || k.Identity() != "Broadcom BCM2835" {
				t.Fatalf("%v, %+v", err, k)
			}
			if err := errors.Join(k.Feed(), k.Close(false)); err != nil || c.driver.fed != 1 {
				t.Errorf("fed %d, %v", c.driver.fed, err)
			}
			if raw, _ := os.ReadFile(path); len(raw) != 0 {
				t.Errorf("%q was written to a device that is not to be disarmed", raw)
			}
		})
	}
}

func file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "watchdog")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMagicCloseAndNowayout(t *testing.T) {
	for _, c := range []struct {
		name     string
		options  uint32
		nowayout string
		stays    bool
	}{
		{"can be stopped", usual, "0\n", false},
		{"nowayout", usual, "1\n", true},
		{"a driver without magic close", unix.WDIOF_SETTIMEOUT, "0\n", true},
		{"a kernel that does not tell", usual, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, sysfs := file(t), t.TempDir()
			dir := filepath.Join(sysfs, "class/watchdog/watchdog0")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if c.nowayout != "" {
				if err := os.WriteFile(filepath.Join(dir, "nowayout"), []byte(c.nowayout), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			k, err := watchdog.Open(path, sysfs, 15*time.Second, &driver{options: c.options, seconds: 15, boot: unix.WDIOF_CARDRESET | unix.WDIOF_POWERUNDER})
			if err != nil {
				t.Fatal(err)
			}
			if k.Stays() != c.stays {
				t.Errorf("stays: %v", k.Stays())
			}
			if want := (watchdog.Boot{ByWatchdog: true, UnderVoltage: true}); k.Boot() != want {
				t.Errorf("boot %+v", k.Boot())
			}
			if err := k.Close(true); err != nil {
				t.Error(err)
			}
			if raw, _ := os.ReadFile(path); string(raw) != "V" {
				t.Errorf("%q was written", raw)
			}
		})
	}
}

func TestAPlainFileIsNoWatchdog(t *testing.T) {
	if _, err := watchdog.Open(file(t), t.TempDir(), time.Minute, nil); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("got %v", err)
	}
	if _, err := watchdog.Open(filepath.Join(t.TempDir(), "none"), t.TempDir(), time.Minute, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
