package android

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What every command prints on every Android: standard output, then lines of standard error
// after "!", then the status after "=" if it is not 0.
func TestCommandsPrintWhatAndroidPrints(t *testing.T) {
	commands, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for version := range releases {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			p := newPhone(t, version, func(c *Config) { c.Latency = 1 })
			var got bytes.Buffer
			for line := range strings.Lines(string(commands)) {
				line = strings.TrimSuffix(line, "\n")
				if strings.HasPrefix(line, "#") {
					continue
				}
				out, errOut, status := p.sh(line)
				fmt.Fprintf(&got, "$ %s\n%s", line, out)
				if out != "" && !strings.HasSuffix(out, "\n") {
					got.WriteString("(no newline)\n")
				}
				for l := range strings.Lines(errOut) {
					got.WriteString("! " + l)
				}
				if status != 0 {
					fmt.Fprintf(&got, "= %d\n", status)
				}
				if did := p.screen.take(); did != "" {
					fmt.Fprintf(&got, "> %s\n", did)
				}
			}
			file := filepath.Join("testdata", fmt.Sprintf("android%d.golden", version))
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
