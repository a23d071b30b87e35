package health

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"
)

const maxFile = 64 << 10 // bytes of a file of /proc or /sys that are read

// ReadSystem reads what the kernel says below /proc and /sys. The error joins what could not be read; a file that this
// board does not have is no error, and its value is not known. DiskFree is the caller's to fill in.
func ReadSystem(proc, sys fs.FS) (System, error) {
	s := System{MemoryFree: -1, DiskFree: -1, DiskWear: -1, Celsius: Unread}
	var errs []error
	keep := func(err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	keep(memoryOf(proc, &s))
	keep(wear(sys, &s))
	keep(temperature(sys, &s))
	keep(voltage(sys, &s))
	return s, errors.Join(errs...)
}

func read(root fs.FS, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// memoryOf reads MemAvailable and MemTotal of /proc/meminfo, in KiB.
func memoryOf(proc fs.FS, s *System) error {
	text, err := read(proc, "meminfo")
	if err != nil {
		return err
	}
	values := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if key != "MemTotal" && key != "MemAvailable" {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 53)
		if err != nil {
			return fmt.Errorf("meminfo: %s is %.40q", key, value)
		}
		values[key] = float64(n)
	}
	if total := values["MemTotal"]; total > 0 && values["MemAvailable"] <= total {
		s.MemoryFree = values["MemAvailable"] / total * 100
	}
	return nil
}

// wear reads an eMMC's life_time: two estimates in steps of a tenth, 0x01 for up to 10 % used, 0x0b for more than
// all (JEDEC 84-B51, EXT_CSD 268 and 269). Plain SD cards do not tell.
func wear(sys fs.FS, s *System) error {
	found, err := fs.Glob(sys, "block/mmcblk*/device/life_time")
	for _, name := range found {
		text, readErr := read(sys, name)
		err = errors.Join(err, readErr)
		for word := range strings.FieldsSeq(text) {
			n, parseErr := strconv.ParseUint(strings.TrimPrefix(word, "0x"), 16, 8)
			if parseErr != nil || n > 0x0b {
				err = errors.Join(err, fmt.Errorf("%s is %.40q", name, text))
				continue
			}
			s.DiskWear = max(s.DiskWear, min(float64(n)*10, 100))
		}
	}
	return err
}

// temperature takes the hottest thermal zone, in thousandths of a degree.
func temperature(sys fs.FS, s *System) error {
	found, err := fs.Glob(sys, "class/thermal/thermal_zone*/temp")
	for _, name := range found {
		text, readErr := read(sys, name)
		if readErr != nil {
			continue // a zone that is switched off gives EAGAIN
		}
		n, parseErr := strconv.Atoi(text)
		if parseErr != nil || n < -60_000 || n > 200_000 {
			err = errors.Join(err, fmt.Errorf("%s is %.40q", name, text))
			continue
		}
		s.Celsius = max(s.Celsius, float64(n)/1000)
	}
	return err
}

// voltage reads the alarm of the hwmon device rpi_volt: set while the supply is below 4.63 V.
func voltage(sys fs.FS, s *System) error {
	found, err := fs.Glob(sys, "class/hwmon/hwmon*/name")
	for _, name := range found {
		is, readErr := read(sys, name)
		if readErr != nil || strings.TrimFunc(is, unicode.IsSpace) != "rpi_volt" {
			continue
		}
		text, readErr := read(sys, path.Join(path.Dir(name), "in0_lcrit_alarm"))
		err = errors.Join(err, readErr)
		s.UnderVoltage = s.UnderVoltage || text == "1"
	}
	return err
}
