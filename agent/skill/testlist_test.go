package skill_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheListOfTests holds docs/skills-tests.md against the tests: each file that it names has the test, and the part once; and
// each test of the two specifications is in the list, but for those with whole programs, which show much at once.
func TestTheListOfTests(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "skills-tests.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| ([^|]+) \\| `([^`|]+)` \\| `([^`|]+)` \\| (?:`([^|]+)` )?\\|$").FindAllStringSubmatch(string(page), -1)
	lines := regexp.MustCompile("(?m)^\\|.*`(?:Test|Benchmark|Fuzz)\\w+`.*$").FindAllString(string(page), -1)
	if len(rows) < 100 || len(rows) != len(lines) {
		t.Errorf("%d rows are read of %d", len(rows), len(lines))
	}
	listed := map[string]bool{}
	for _, row := range rows {
		file, test, part := row[2], row[3], row[4]
		listed[test] = true
		code, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(code), "func "+test+"(") {
			t.Errorf("%s has no %s", file, test)
		}
		if part != "" && strings.Count(string(code), `"`+part+`"`)+strings.Count(string(code), "`"+part+"`") != 1 {
			t.Errorf("%s, %s: no part, or more than one, has the name %q", file, test, part)
		}
	}
	name := regexp.MustCompile(`(?m)^func (TestSpec00[04]_\w+)\(`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || path == filepath.Join(root, "firmware", "rig")):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		code, err := os.ReadFile(path)
		for _, m := range name.FindAllSubmatch(code, -1) {
			if !listed[string(m[1])] {
				t.Errorf("%s is not in the list", m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
