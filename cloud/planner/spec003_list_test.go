package planner_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestSpec003_EachTitleIsASubTest holds the list of docs/proxy.md against the tests: 7 requirements and 14 scenarios, each
// of them the name of a sub-test here.
func TestSpec003_EachTitleIsASubTest(t *testing.T) {
	page, err := os.ReadFile("../../docs/proxy.md")
	ok(t, err)
	tests, err := os.ReadFile("spec003_test.go")
	ok(t, err)
	_, list, there := strings.Cut(string(page), "| requirement, scenario |")
	if !there {
		t.Fatal("docs/proxy.md has no list of requirements")
	}
	list, _, _ = strings.Cut(list, "\n## ")
	counts := map[bool]int{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\*\*)?([A-Z][^|*]*?)(?:\*\*)? \|`).FindAllStringSubmatch(list, -1) {
		requirement, title := row[1] != "", row[2]
		counts[requirement]++
		name := `t.Run("` + title + `", `
		if requirement {
			name = `{"` + title + `", `
		}
		if n := strings.Count(string(tests), name); n != 1 {
			t.Errorf("%q is the name of %d sub-tests", title, n)
		}
	}
	equal(t, "requirements", counts[true], 7)
	equal(t, "scenarios", counts[false], 14)
}
