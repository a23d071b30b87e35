package led

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoLED means that the kernel has none of the LEDs that a board file names.
var ErrNoLED = errors.New("no such LED")

const maxBrightness = 1 << 16 // more is no value of the LED class

// Files is how a Class reads and writes its files.
type Files interface {
	ReadFile(path string) ([]byte, error)
	// WriteFile writes to a file that exists.
	WriteFile(path string, data []byte) error
}

// osFiles are the files of this machine.
type osFiles struct{}

func (osFiles) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

func (osFiles) WriteFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Class is a lamp of the kernel's LED class, /sys/class/leds (Documentation/ABI/testing/sysfs-class-led).
type Class struct {
	files     Files
	dir, name string
	full      int  // brightness when lit
	transient bool // the kernel switches it off after Grace
	ready     bool // the trigger was chosen
}

// OpenClass returns the first of the candidates that the LED class below root has; names differ between kernels (led0,
// ACT). root is where sysfs is mounted, files is nil for those of this machine. Its trigger is changed by the first Set.
func OpenClass(root string, candidates []string, files Files) (*Class, error) {
	if files == nil {
		files = osFiles{}
	}
	for _, name := range candidates {
		if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
			return nil, fmt.Errorf("LED %q: a name has no slash and is not empty", name)
		}
		c := &Class{files: files, dir: filepath.Join(root, "class/leds", name), name: name}
		full, err := c.number("max_brightness")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("LED %s: %w", name, err)
		}
		if full < 1 || full > maxBrightness {
			return nil, fmt.Errorf("LED %s: max_brightness is %d", name, full)
		}
		triggers, err := files.ReadFile(c.path("trigger"))
		if err != nil {
			return nil, fmt.Errorf("LED %s: %w", name, err)
		}
		c.full, c.transient = full, slices.Contains(fields(triggers), "transient")
		return c, nil
	}
	return nil, fmt.Errorf("%w: none of %s", ErrNoLED, strings.Join(candidates, ", "))
}

// fields are the triggers that a LED can have; the chosen one stands in brackets.
func fields(triggers []byte) []string {
	return strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(string(triggers)))
}

// Name implements Lamp.
func (c *Class) Name() string { return c.name }

// Ends implements Lamp.
func (c *Class) Ends() bool { return c.transient }

// Set implements Lamp.
func (c *Class) Set(on bool) error {
	if err := c.set(on); err != nil {
		c.ready = false // somebody else may have taken the LED: choose the trigger again
		return fmt.Errorf("LED %s: %w", c.name, err)
	}
	return nil
}

func (c *Class) set(on bool) error {
	if !c.ready {
		if err := c.choose(); err != nil {
			return err
		}
	}
	var err error
	switch {
	case !c.transient && on:
		err = c.write("brightness", c.full)
	case !c.transient:
		err = c.write("brightness", 0)
	default:
		// A timer that runs ignores a second start: it is stopped first, which darkens the LED for some microseconds.
		if err = c.write("activate", 0); err == nil && on {
			err = c.write("activate", 1)
		}
	}
	if err != nil {
		return err
	}
	return c.verify(on)
}

// choose takes the LED from whatever trigger it has.
func (c *Class) choose() error {
	trigger := "none"
	if c.transient {
		trigger = "transient"
	}
	if err := c.files.WriteFile(c.path("trigger"), []byte(trigger)); err != nil {
		return err
	}
	if now, err := c.files.ReadFile(c.path("trigger")); err != nil || !strings.Contains(string(now), "["+trigger+"]") {
		return fmt.Errorf("its trigger did not become %s (%q, %v)", trigger, strings.TrimSpace(string(now)), err)
	}
	if c.transient {
		// A timer that was started and stopped leaves the LED dark, whatever it showed before.
		for _, step := range []struct {
			file  string
			value int
		}{{"duration", int(Grace.Milliseconds())}, {"state", 1}, {"activate", 1}, {"activate", 0}} {
			if err := c.write(step.file, step.value); err != nil {
				return err
			}
		}
	}
	c.ready = true
	return nil
}

// verify reads back what the LED shows.
func (c *Class) verify(on bool) error {
	got, err := c.number("brightness")
	if err != nil {
		return err
	}
	if (got > 0) != on {
		return fmt.Errorf("its brightness reads %d after it was set to lit=%v", got, on)
	}
	return nil
}

func (c *Class) path(file string) string { return filepath.Join(c.dir, file) }

func (c *Class) write(file string, n int) error {
	return c.files.WriteFile(c.path(file), []byte(strconv.Itoa(n)))
}

func (c *Class) number(file string) (int, error) {
	raw, err := c.files.ReadFile(c.path(file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, fmt.Errorf("%s reads %.20q", file, raw)
	}
	return n, nil
}
