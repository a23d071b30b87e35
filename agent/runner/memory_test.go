//go:build !race

package runner

import "testing"

// TestFortyAgentsFitInTheirMemory: at most 256 MiB for all of the process. The race detector multiplies memory, so that
// make test runs this one without it.
func TestFortyAgentsFitInTheirMemory(t *testing.T) {
	m := measure(t, 40, 120, 80)
	if m.MiB <= 0 || m.MiB > 256 || m.Steps < 80 || m.Elements < 50 {
		t.Errorf("%+v", m)
	}
	t.Logf("%+v", m)
}
