//go:build rig

package demo_test

import (
	"strings"
	"testing"
)

// TestDemoOnTheBoard is make demo. How long it takes is logged, not judged: it depends on what else the machine does.
func TestDemoOnTheBoard(t *testing.T) {
	printed, took := runDemo(t, false, 50)
	for _, port := range []string{"port 1-1.1", "port 1-1.2", "port 1-2.1", "port 1-2.4"} {
		if !strings.Contains(printed, port) {
			t.Errorf("the demo does not print %q", port)
		}
	}
	t.Logf("%.1f s\n%s", took.Seconds(), printed)
}
