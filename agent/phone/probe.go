package phone

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// property is a system property and where it goes.
type property struct {
	name string
	to   *string
}

// properties lists what is read of a phone. The version of its interface goes
// to sdk.
func (i *Info) properties(sdk *string) []property {
	return []property{
		{"ro.serialno", &i.Serial},
		{"ro.product.manufacturer", &i.Manufacturer},
		{"ro.product.model", &i.Model},
		{"ro.product.device", &i.Device},
		{"ro.build.version.release", &i.Release},
		{"ro.build.version.sdk", sdk},
		{"ro.product.cpu.abi", &i.ABI},
		{"ro.build.display.id", &i.Build},
		{"ro.product.locale", &i.Locale},
	}
}

// propertySource reads the properties and removes what earlier attachments have
// left.
func propertySource() source {
	var cmd strings.Builder
	for _, p := range new(Info).properties(new(string)) {
		cmd.WriteString("getprop " + p.name + "; ")
	}
	return source{"properties", cmd.String() + "rm -f " + tempStem + "*"}
}

// parse reads the properties, one a line.
func (i *Info) parse(out string) error {
	var sdk string
	wanted := i.properties(&sdk)
	lines := strings.Split(out, "\n")
	if len(lines) < len(wanted) {
		return fmt.Errorf("%d of %d: %w", len(lines), len(wanted), ErrTruncated)
	}
	for n, w := range wanted {
		*w.to = excerpt([]byte(lines[n]))
	}
	var err error
	i.SDK, err = strconv.Atoi(sdk)
	if err != nil || i.SDK < 1 || i.SDK > 10000 {
		return fmt.Errorf("version %q: %w", sdk, ErrMalformed)
	}
	return nil
}

// probe reads what the phone is, its display, its input method and what of its
// settings is not as it was, in one round trip unless its display is told in an
// odd form.
func (p *Phone) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	a := newAnswers()
	properties := propertySource()
	err := p.ask(ctx, a, []source{properties, displaysSource, windowsSource, keyboardSource, scalesSource})
	if err == nil {
		err = a.err([]source{properties})
	}
	if err == nil {
		err = p.info.parse(a.text(properties))
	}
	if err != nil {
		return fmt.Errorf("read properties: %w", err)
	}
	if p.options.Serial != "" {
		p.info.Serial = p.options.Serial
	}
	var s State
	read(ctx, p, a, &s, []part[State]{displayPart})
	if s.DisplayErr != nil {
		return s.DisplayErr
	}
	p.info.Display = s.Display
	p.display.Store(&s.Display)
	p.knowKeyboard(a.text(keyboardSource))
	p.scales.Store(parseScales(a.text(scalesSource)))
	return nil
}
