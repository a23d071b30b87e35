package foreign_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"phonerack/firmware/rig/cloudrig"
)

// figures are the counts of refused and repeated frames as /metrics has them.
type figures map[string]int

// What is counted apart from the reasons.
const (
	repeated = "repeated"
	oversize = "oversize on the bus"
)

func readFigures(t *testing.T, cloud *cloudrig.Cloud) figures {
	t.Helper()
	text, err := cloud.Figures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := figures{}
	for line := range strings.Lines(text) {
		var n int
		if _, err := fmt.Sscanf(line, "phonerack_api_frames_repeated_total %d", &n); err == nil {
			f[repeated] = n
		}
		if _, err := fmt.Sscanf(line, `phonerack_bus_frames_total{what="oversize"} %d`, &n); err == nil {
			f[oversize] = n
		}
		rest, ok := strings.CutPrefix(line, `phonerack_api_frames_refused_total{reason="`)
		if reason, count, cut := strings.Cut(rest, `"} `); ok && cut {
			if _, err := fmt.Sscan(count, &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			f[reason] = n
		}
	}
	if len(f) < 10 {
		t.Fatalf("only %v are counted: reasons have to be there before anything is refused", f)
	}
	return f
}

// counted waits until exactly one more frame is counted, under the reason, and notes it in f.
func (f figures) counted(t *testing.T, cloud *cloudrig.Cloud, reason string) {
	t.Helper()
	f[reason]++
	var now figures
	eventually(t, "a frame is counted as "+reason, func() bool {
		now = readFigures(t, cloud)
		return now[reason] >= f[reason]
	})
	f.same(t, cloud)
}

// same wants the counts as they are noted.
func (f figures) same(t *testing.T, cloud *cloudrig.Cloud) {
	t.Helper()
	if now := readFigures(t, cloud); !maps.Equal(f, now) {
		t.Errorf("counted: %v; wanted: %v", now, f)
		maps.Copy(f, now)
	}
}
