package firmware

import (
	"testing"
	"time"

	"phonerack/sync/link"
)

// TestTheCloudsTimeSetsNoClock: a board without a clock of its own and without NTP knows the time from the link, and shows another.
func TestTheCloudsTimeSetsNoClock(t *testing.T) {
	for name, c := range map[string]struct {
		status link.Status
		want   bool
	}{
		"right":              {link.Status{Trusted: true, Offset: -2 * time.Second}, true},
		"an hour behind":     {link.Status{Trusted: true, Offset: time.Hour}, false},
		"a year ahead":       {link.Status{Trusted: true, Offset: -365 * 24 * time.Hour}, false},
		"nobody has told it": {link.Status{}, false},
	} {
		if got := confirms(c.status); got != c.want {
			t.Errorf("%s: the board's clock is taken for right: %v", name, got)
		}
	}
}
