package systemd

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the test binary a service that systemd passed descriptors to, where it is started as one.
func TestMain(m *testing.M) {
	if os.Getenv("SYSTEMD_TEST_SERVICE") != "" {
		service()
		return
	}
	goleak.VerifyTestMain(m)
}

// service prints the names and contents of what it was passed, and whether its environment is clean.
func service() {
	files, err := Adopt()
	fmt.Printf("err %v, left %q\n", err, os.Getenv("LISTEN_FDS")+os.Getenv("LISTEN_FDNAMES")+os.Getenv("LISTEN_PID"))
	for _, f := range files {
		text, err := io.ReadAll(f)
		fmt.Printf("%s %s %v\n", f.Name(), text, err)
	}
}
