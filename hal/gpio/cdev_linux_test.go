package gpio

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warthog618/go-gpiocdev/uapi"
)

func TestValueTravelsWithTheDirection(t *testing.T) {
	for _, active := range []bool{true, false} {
		c := lineConfig(Config{Output: true, Active: active, ActiveLow: true})
		if c.Flags != uapi.LineFlagV2Output|uapi.LineFlagV2ActiveLow || c.NumAttrs != 1 || c.Attrs[0].Mask != 1 {
			t.Errorf("%+v", c)
		}
		var values uapi.OutputValues
		if values.Decode(c.Attrs[0].Attr); (values == 1) != active || c.Attrs[0].Attr.ID != uapi.LineAttributeIDOutputValues {
			t.Errorf("active %v: value %v", active, values)
		}
	}
	if c := lineConfig(Config{ActiveLow: true}); c.Flags != uapi.LineFlagV2ActiveLow || c.NumAttrs != 0 {
		t.Errorf("as it is: %+v", c)
	}
	c := lineConfig(Config{Input: true, Pull: PullUp, Rising: true, Falling: true})
	if c.Flags != uapi.LineFlagV2Input|uapi.LineFlagV2BiasPullUp|uapi.LineFlagV2EdgeBoth || c.NumAttrs != 0 {
		t.Errorf("input: %+v", c)
	}
}

func TestOtherFilesAreNoChipsAndNoHandles(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{os.Symlink("/dev/null", filepath.Join(dir, "gpiochip4")), os.WriteFile(filepath.Join(dir, "gpiochip0"), nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	k := &Cdev{Dev: dir}
	if names, err := k.Chips(); len(names) != 0 || err != nil {
		t.Errorf("chips %v, %v", names, err)
	}
	if c, err := k.Open("gpiochip0"); err == nil {
		t.Errorf("a plain file is chip %v", c.Name())
	}
	f, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := k.Adopt(f); err == nil || !strings.Contains(err.Error(), `the file is "/dev/null", no handle`) {
		t.Error(err)
	}
	if _, err := New(k, nil).Output(Spec{Name: "X"}, Initial{}); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "no GPIO chip") {
		t.Error(err)
	}
}

func TestPlaceIsReadFromFdinfo(t *testing.T) {
	for text, c := range map[string]struct {
		want Place
		ok   bool
		bad  bool
	}{
		"pos:\t0\nflags:\t02000000\nmnt_id:\t15\ngpio-chip:\tgpiochip1\ngpio-line:\t17\n": {Place{"gpiochip1", 17}, true, false},
		"pos:\t0\nflags:\t02000000\n":                   {},
		"gpio-chip:\tgpiochip1\ngpio-line:\tx\n":        {bad: true},
		"gpio-chip:\tgpiochip1\ngpio-line:\t-1\n":       {bad: true},
		"gpio-chip:\tgpiochip1\n":                       {bad: true},
		"gpio-chip:\tc\ngpio-line:\t1\ngpio-line:\t2\n": {bad: true},
	} {
		p, ok, err := parsePlace(text)
		if p != c.want && !c.bad || ok != c.ok || (err != nil) != c.bad {
			t.Errorf("%q: %v, %v, %v", text, p, ok, err)
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add("gpio-chip:\tgpiochip1\ngpio-line:\t17\n")
	f.Add("gpio-line: 99999999999999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok, err := parsePlace(text); ok && (err != nil || p.Offset < 0 || p.Chip == "") {
			t.Errorf("%v, %v", p, err)
		}
	})
}
