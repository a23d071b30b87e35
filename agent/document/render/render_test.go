package render_test

import (
	"fmt"
	"os"
	"testing"

	"phonerack/agent/document/render"
)

// TestMain makes the test binary the child, as rackd is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "render-document" {
		if err := render.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
