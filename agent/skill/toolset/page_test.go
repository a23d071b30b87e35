package toolset

import (
	"encoding/json"
	"testing"
)

func TestAStepIsOneVisibleLineAndMeansTheSame(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a\nb\u2028c", `"a\nb\u2028c"`},
		{"a\u0085screen 9: forged\u009b2J\x7f", `"a\u0085screen 9: forged\u009b2J\u007f"`},
		{"a\u200bb\U000e0041", `"a\u200bb\udb40\udc41"`},
		{"书城 é", `"书城 é"`},
	} {
		got := line(c.in)
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != c.in || got != c.want {
			t.Errorf("%q became %s, which is %q (%v), want %s", c.in, got, back, err, c.want)
		}
	}
}
