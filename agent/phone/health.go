package phone

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Thermal is how hot the phone is.
type Thermal struct {
	Status       int           `json:"status"` // 0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown
	Temperatures []Temperature `json:"temperatures,omitempty"`
}

// Temperature is one sensor of the phone.
type Temperature struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"` // "cpu", "gpu", "battery", "skin"...; "other"
	Celsius float64 `json:"celsius"`
	Status  int     `json:"status"` // as Thermal.Status
}

// thermalSDK is the first Android with a thermal service: Android 10.
const thermalSDK = 29

var (
	thermalSource = source{"thermal", "dumpsys thermalservice"}

	thermalStatus = regexp.MustCompile(`(?m)^\s*Thermal Status: (\d)\s*$`)
	thermalLine   = regexp.MustCompile(`Temperature\{mValue=(-?[0-9.]{1,20}(?:E[+-]?\d{1,3})?), mType=(-?\d{1,3}), mName=([^,{}]{1,100}), mStatus=(\d)\}`)
)

// thermalKinds are the types of Temperature that are of use (android.os.Temperature).
var thermalKinds = []string{"cpu", "gpu", "battery", "skin", "usb", "amplifier"}

// Bounds of a sensor of a phone, in degrees Celsius. Unused sensors tell 0.
const (
	coldest = -40
	hottest = 150
)

const maxSensors = 100

// Thermal reads the thermal state. Phones before Android 10 have none:
// errors.ErrUnsupported. Sensors that tell nothing, or what cannot be, are left
// out.
func (p *Phone) Thermal(ctx context.Context) (Thermal, error) {
	if p.info.SDK < thermalSDK {
		return Thermal{}, fmt.Errorf("read temperatures: before Android 10: %w", errors.ErrUnsupported)
	}
	out, err := p.one(ctx, thermalSource)
	if err != nil {
		return Thermal{}, fmt.Errorf("read temperatures: %w", err)
	}
	t, err := parseThermal(out)
	if err != nil {
		return Thermal{}, fmt.Errorf("read temperatures: %w", err)
	}
	return t, nil
}

// parseThermal reads the thermal service's dump: what the hardware tells now,
// else what it told last.
func parseThermal(out string) (Thermal, error) {
	m := thermalStatus.FindStringSubmatch(out)
	if m == nil {
		return Thermal{}, fmt.Errorf("no thermal status: %w", ErrMalformed)
	}
	t := Thermal{Status: number(m[1])}
	_, now, ok := strings.Cut(out, "Current temperatures from HAL:")
	if !ok || !thermalLine.MatchString(now) {
		now = out
	}
	now, _, _ = strings.Cut(now, "cooling devices")
	seen := map[string]bool{}
	for _, m := range thermalLine.FindAllStringSubmatch(now, maxSensors) {
		value, err := strconv.ParseFloat(m[1], 64)
		name := excerpt([]byte(m[3]))
		if err != nil || math.IsNaN(value) || value < coldest || value > hottest || value == 0 || seen[name] {
			continue
		}
		seen[name] = true
		kind := "other"
		if n, _ := strconv.Atoi(m[2]); n >= 0 && n < len(thermalKinds) {
			kind = thermalKinds[n]
		}
		t.Temperatures = append(t.Temperatures, Temperature{Name: name, Kind: kind, Celsius: value, Status: number(m[4])})
	}
	return t, nil
}

// Storage is the room for apps and files.
type Storage struct {
	Total int64 `json:"total"` // bytes
	Free  int64 `json:"free"`  // bytes
}

var (
	storagePart = part[Storage]{
		name: "storage",
		ways: []way[Storage]{
			{"df", []source{dfSource}, func(a *answers, s *Storage) (err error) {
				*s, err = parseDF(a.text(dfSource))
				return err
			}},
			{"stat", []source{statSource}, func(a *answers, s *Storage) (err error) {
				*s, err = parseStat(a.text(statSource))
				return err
			}},
		},
	}
	dfSource   = source{"df", "df -k /data"}
	statSource = source{"stat", "stat -f -c '%S %b %a' /data"}

	dfRow   = regexp.MustCompile(`(?m)\s(\d{1,15})\s+(\d{1,15})\s+(\d{1,15})\s+\d{1,3}%\s+(/\S*)\s*$`)
	statRow = regexp.MustCompile(`(?m)^(\d{1,7}) (\d{1,13}) (\d{1,13})\s*$`)
)

// maxStorage bounds what is believed, in bytes: 64 TiB.
const maxStorage = 64 << 40

// Storage reads how much room there is.
func (p *Phone) Storage(ctx context.Context) (Storage, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var (
		s   Storage
		err error
	)
	wanted := storagePart
	wanted.fail = func(_ *Storage, why error) { err = fmt.Errorf("read storage: %w", why) }
	read(ctx, p, newAnswers(), &s, []part[Storage]{wanted})
	return s, err
}

// parseDF reads what df prints in units of 1024 bytes: total, used, free, and
// where it is mounted. The name of a long device stands on a line of its own.
func parseDF(out string) (Storage, error) {
	rows := dfRow.FindAllStringSubmatch(out, 64)
	at := slices.IndexFunc(rows, func(m []string) bool { return m[4] == "/data" })
	if at < 0 && len(rows) == 1 {
		at = 0 // the same by another name
	}
	if at < 0 || !strings.Contains(out, "1K-blocks") {
		return Storage{}, fmt.Errorf("no size: %w", ErrMalformed)
	}
	m := rows[at]
	total, _ := strconv.ParseInt(m[1], 10, 64)
	free, _ := strconv.ParseInt(m[3], 10, 64)
	return storage(total, free, 1024)
}

// parseStat reads the size of a block, the number of blocks, and of those that
// are free.
func parseStat(out string) (Storage, error) {
	m := statRow.FindStringSubmatch(out)
	if m == nil {
		return Storage{}, fmt.Errorf("no size: %w", ErrMalformed)
	}
	block, _ := strconv.ParseInt(m[1], 10, 64)
	total, _ := strconv.ParseInt(m[2], 10, 64)
	free, _ := strconv.ParseInt(m[3], 10, 64)
	return storage(total, free, block)
}

func storage(total, free, block int64) (Storage, error) {
	if block < 1 || total < 1 || free < 0 || free > total || total > maxStorage/block {
		return Storage{}, fmt.Errorf("%d of %d blocks of %d bytes are free: %w", free, total, block, ErrMalformed)
	}
	return Storage{Total: total * block, Free: free * block}, nil
}

// Power is whether the phone is awake.
type Power struct {
	Wakefulness string `json:"wakefulness"` // "Awake", "Asleep", "Dozing" or "Dreaming"
	Screen      bool   `json:"screen"`      // the display is on
	StayAwake   bool   `json:"stay_awake"`  // the screen stays on while the phone is plugged in
}

var (
	powerSource = source{"power_state", "dumpsys power | grep -E 'mWakefulness=|Display Power: state=|mStayOn='"}

	wakefulness = regexp.MustCompile(`(?m)^\s*mWakefulness=(Awake|Asleep|Dozing|Dreaming)\s*$`)
	screenPower = regexp.MustCompile(`(?m)^\s*Display Power: state=(\w+)`)
	stayOn      = regexp.MustCompile(`(?m)^\s*mStayOn=(true|false)\b`)
)

// Power reads whether the phone is awake.
func (p *Phone) Power(ctx context.Context) (Power, error) {
	out, err := p.one(ctx, powerSource)
	if err != nil {
		return Power{}, fmt.Errorf("read power: %w", err)
	}
	s, err := parsePower(out)
	if err != nil {
		return Power{}, fmt.Errorf("read power: %w", err)
	}
	return s, nil
}

// parsePower reads the power manager's dump. A phone that does not tell of its
// display has it on while it is awake.
func parsePower(out string) (Power, error) {
	m := wakefulness.FindStringSubmatch(out)
	if m == nil {
		return Power{}, fmt.Errorf("no wakefulness: %w", ErrMalformed)
	}
	s := Power{Wakefulness: m[1], Screen: m[1] == "Awake" || m[1] == "Dreaming"}
	if m := screenPower.FindStringSubmatch(out); m != nil {
		s.Screen = m[1] == "ON"
	}
	if m := stayOn.FindStringSubmatch(out); m != nil {
		s.StayAwake = m[1] == "true"
	}
	return s, nil
}
