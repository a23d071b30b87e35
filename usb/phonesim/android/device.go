package android

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"phonerack/usb/phonesim/android/memfs"
	"phonerack/usb/phonesim/android/mksh"
	"phonerack/usb/phonesim/screen"
)

// Config describes a phone. Only Screen must be given.
type Config struct {
	// Version is the Android: 7 to 12, 14 or 15. 0 is 14.
	Version int
	// Serial, Model and Manufacturer fill the properties; so does Name, the product's short name.
	Serial, Model, Manufacturer, Name string
	// Screen is the display.
	Screen Display
	// Second adds another physical display, as foldables have.
	Second bool
	// Locked starts the phone at the lock screen, and locks it whenever the display goes off.
	// A swipe up, the MENU key or "wm dismiss-keyguard" unlocks it, or with PIN lead to where that is typed.
	Locked bool
	PIN    string
	// Storage is the size of the data partition in bytes, the bound of the memory that files take;
	// 0 is 512 MiB.
	Storage int64
	// Properties are set over the usual ones.
	Properties map[string]string
	// Zone is the phone's time zone; nil is UTC.
	Zone *time.Location

	// Latency scales what commands cost on a real phone: 0 nothing, 1 as much. What a command is
	// told to wait for (sleep, an idle screen) is not scaled.
	Latency float64
	// Clock gives the time, Sleep waits for it to pass and returns the context's error if that ends
	// first. nil is the system's clock; set both or neither, and give the screen the same clock.
	Clock func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// Seed decides what is random: hashes in dumps, and which typed characters and dumps the Faults hit.
	Seed uint64

	// Browser is the package that opens links of http and https, "" for none; Visited, if set, is told of each.
	Browser string
	Visited func(url string)

	// Reboot, if set, is called by the commands that reboot, with "" or a target such as "bootloader".
	Reboot func(target string)
	// Faults is what is wrong at first.
	Faults Faults
}

// Device is a phone. All methods are safe for concurrent use.
type Device struct {
	config  Config
	release release
	screen  Display
	files   *memfs.FS
	shell   *memfs.View // the files as the shell user may use them
	now     func() time.Time

	mu         sync.Mutex // guards what follows; never held while the screen or a writer is called
	faults     Faults
	rng        *rand.Rand
	properties map[string]string
	settings   map[string]map[string]string // by namespace
	battery    battery
	thermal    int             // status, 0 to 6
	methods    map[string]bool // input methods: enabled or not
	disabled   map[string]bool // packages
	installed  map[string]*installed
	gone       map[string]bool            // packages that came with the phone and are not there any more
	grants     map[string]map[string]bool // permissions by package
	uids       map[string]int
	installs   int // ever
	sessions   map[int]*session
	shifted    string // what Appium's Unicode keyboard collects
	settingsUp bool   // Appium's Settings app runs
	// settingsStopped: it was stopped, or has not been started since it was installed.
	settingsStopped bool
	automation      *automation          // nil: nobody has it
	fresh           map[string]time.Time // input methods that are not known before a time
	lastFocus       focus                // the last one that was not null
	log             []string
	logged          int // lines ever written
	booted          time.Time
	bootID          string
	pids            map[string]int // of packages that have run
}

// New makes a phone that has just booted and shows its home screen.
func New(c Config) (*Device, error) {
	if c.Screen == nil {
		return nil, errors.New("android: a phone needs a screen")
	}
	if c.Version == 0 {
		c.Version = 14
	}
	r, ok := releases[c.Version]
	if !ok {
		return nil, fmt.Errorf("android: no Android %d; there are 7 to 12, 14 and 15", c.Version)
	}
	if c.Storage == 0 {
		c.Storage = 512 << 20
	}
	if c.Storage < 1<<20 {
		return nil, fmt.Errorf("android: a storage of %d bytes; 1 MiB is the least", c.Storage)
	}
	if (c.Clock == nil) != (c.Sleep == nil) {
		return nil, errors.New("android: Clock and Sleep go together")
	}
	if c.Clock == nil {
		c.Clock, c.Sleep = time.Now, sleep
	}
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	setDefault(&c.Serial, "SIM0000001")
	setDefault(&c.Model, "Sim Phone")
	setDefault(&c.Manufacturer, "phonerack")
	setDefault(&c.Name, "simphone")
	d := &Device{
		config: c, release: r, screen: c.Screen, now: c.Clock,
		faults: c.Faults, rng: rand.New(rand.NewPCG(c.Seed, 0x70686f6e65)),
		battery: newBattery(c.Clock()), disabled: map[string]bool{}, pids: map[string]int{},
		installed: map[string]*installed{}, gone: map[string]bool{}, grants: map[string]map[string]bool{}, uids: map[string]int{},
		sessions: map[int]*session{}, fresh: map[string]time.Time{},
	}
	d.properties = d.defaultProperties()
	d.settings = d.defaultSettings()
	d.methods = map[string]bool{latinIME: true, voiceIME: true, pinyinIME: false}
	if err := d.buildFiles(); err != nil {
		return nil, fmt.Errorf("android: build the file system: %w", err)
	}
	d.boot()
	d.showTyping()
	return d, nil
}

func setDefault(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// sleep waits in real time.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// boot starts the phone's life anew: a boot id, the time since boot, a faked battery forgotten.
func (d *Device) boot() {
	d.killServer()
	d.screen.SetScreenOn(true)
	d.screen.SetKeyguard(screen.Keyguard{On: d.config.Locked, PIN: d.config.PIN})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.booted = d.now()
	a, b := d.rng.Uint64(), d.rng.Uint64()
	d.bootID = fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
	d.battery.reset()
	d.settingsUp, d.shifted = false, ""
	d.log = nil
	d.lastFocus = focus{}
	clear(d.pids)
	d.logLocked("I", "boot", "Boot completed")
}

// Restart boots the phone again: apps are stopped; files, settings and persistent properties stay.
func (d *Device) Restart() {
	for _, pkg := range d.screen.Running() {
		d.screen.Stop(pkg)
	}
	d.screen.Key(keyHome)
	d.boot()
}

// Run executes a command line as adbd's shell service does; an empty one reads lines
// from stdin. It blocks until the script ends or ctx does, and returns the exit status.
// A write that blocks for ever blocks it.
func (d *Device) Run(ctx context.Context, cmd string, stdin io.Reader, stdout, stderr io.Writer) (exit int) {
	c := mksh.Config{
		System: (*system)(d), Env: d.environment(), Dir: "/",
		Stdin: stdin, Stdout: stdout, Stderr: stderr, NotFound: "inaccessible or not found",
	}
	if d.release.version < 10 {
		c.NotFound = "not found"
	}
	if cmd == "" {
		return mksh.Interact(ctx, c)
	}
	return mksh.Run(ctx, c, cmd)
}

func (d *Device) environment() map[string]string {
	return map[string]string{
		"ANDROID_DATA": "/data", "ANDROID_ROOT": "/system", "ANDROID_STORAGE": "/storage", "EXTERNAL_STORAGE": "/sdcard",
		"HOME": "/", "HOSTNAME": d.config.Name, "LOGNAME": "shell", "USER": "shell", "SHELL": "/bin/sh", "TERM": "dumb",
		"PATH":   "/product/bin:/apex/com.android.runtime/bin:/system/bin:/system/xbin:/vendor/bin",
		"TMPDIR": "/data/local/tmp",
	}
}

// cost waits for as long as a real phone takes for something, scaled by Config.Latency.
func (d *Device) cost(ctx context.Context, t time.Duration) error {
	return d.wait(ctx, time.Duration(float64(t)*d.config.Latency))
}

// wait waits for a time that is not scaled.
func (d *Device) wait(ctx context.Context, t time.Duration) error {
	if t <= 0 {
		return ctx.Err()
	}
	return d.config.Sleep(ctx, t)
}

// uptime is the time since boot.
func (d *Device) uptime() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(d.now().Sub(d.booted), 0)
}

// hash makes a number that looks like Android's identity hashes and stays the same for a name.
func (d *Device) hash(name string) uint32 {
	h := uint32(2166136261) ^ uint32(d.config.Seed)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h & 0xfffffff
}
