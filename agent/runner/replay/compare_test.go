package replay

import (
	"strings"
	"testing"

	"phonerack/agent/runner/record"
)

func TestChangesAreComparedWithoutWhatPicturesTell(t *testing.T) {
	step := func(lines ...string) *record.Step {
		return &record.Step{Effect: "screen changed: +1 -0 ~0", Changes: lines}
	}
	const screen = "~ screen app a.shop activity .Main size 1080x2400 keyboard hidden"
	was := step(screen+" picture 720x1600", `+ [3] text "now 10:41, picture 1x1"`)
	if lines := compareEffects(was, step(screen, `+ [3] text "now 10:42, picture 1x1"`)); lines != nil {
		t.Errorf("%q", lines)
	}
	for _, other := range []*record.Step{
		step(strings.Replace(screen, "hidden", "shown", 1), was.Changes[1]),
		step(screen, `+ [3] text "now 10:42, picture 2x2"`),
		step(screen),
	} {
		if lines := compareEffects(was, other); lines == nil {
			t.Errorf("%q is taken for %q", other.Changes, was.Changes)
		}
	}
}
