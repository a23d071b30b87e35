package supervise

import (
	"iter"
	"strings"
)

// places are the files and lines of a stack as debug.Stack writes it: "\t/path/file.go:12 +0x1b".
func places(stack string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(stack) {
			place, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "\t")
			if !ok {
				continue
			}
			place, _, _ = strings.Cut(place, " ")
			if !yield(place) {
				return
			}
		}
	}
}
