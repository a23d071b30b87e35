package model_test

import (
	"strings"
	"testing"

	"phonerack/agent/skill/model"
)

// TestExamplesOfThePage reads the examples of docs/skills.md as people would who copy them.
func TestExamplesOfThePage(t *testing.T) {
	page := string(readFile(t, "../../../docs/skills.md"))
	if s, err := model.ParseDraft("skills.yaml", []byte(example(t, page, "    id: xhs-search"))); err != nil || len(s.Steps) != 3 || len(s.Parameters) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := model.ParseDraft("tips.md", []byte(example(t, page, "    ---\n    id: shop-tips"))); err != nil || s.Kind != model.Knowledge || !strings.HasPrefix(s.Content, "# Tips") {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := model.ParseRegistryYAML("skills.yaml", []byte(example(t, page, "    name: local/devops"))); err != nil || len(s.Items) != 6 {
		t.Errorf("%+v, %v", s, err)
	}
}

// example is the indented block that begins with a line.
func example(t *testing.T, page, first string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+first)
	if !found {
		t.Fatalf("the page has no %q", first)
	}
	var lines []string
	for line := range strings.SplitSeq(first+rest, "\n") {
		inner, indented := strings.CutPrefix(line, "    ")
		if !indented && line != "" {
			break
		}
		lines = append(lines, inner)
	}
	return strings.Join(lines, "\n") + "\n"
}
