package registry

import (
	"os"
	"strings"
	"testing"

	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/model"
	"phonerack/agent/tools"
)

// pageBlocks are the indented blocks of the page, without the indent. A blank line
// ends a block unless it is in a SKILL.md.
func pageBlocks(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/registry.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	open, inFile := false, false
	for line := range strings.Lines(string(page)) {
		text, indented := strings.CutPrefix(line, "    ")
		switch {
		case indented && !open:
			blocks = append(blocks, text)
			open, inFile = true, text == "---\n"
		case indented || inFile && line == "\n":
			blocks[len(blocks)-1] += text // of a blank line: itself
		default:
			open, inFile = false, false
		}
	}
	return blocks
}

func TestPageExamplesAreTrue(t *testing.T) {
	table := &Tools{}
	for _, tool := range tools.Default().Tools() {
		if err := table.Add(Tool{Name: tool.Name, Source: Builtin}); err != nil {
			t.Fatal(err)
		}
	}
	r := openRegistry(t, newFile(t), table)
	var skills, listings, files int
	for _, block := range pageBlocks(t) {
		switch {
		case strings.HasPrefix(block, "name: "):
			skills++
			add(t, r, block)
		case strings.HasPrefix(block, "tools of "):
			listings++
			head, body, _ := strings.Cut(block, ":\n")
			name := strings.TrimPrefix(head, "tools of ")
			resolved := resolve(t, r, name)
			if got, want := names(resolved.Entries), strings.Join(strings.Fields(body), " "); got != want {
				t.Errorf("%s is\n%s\nand the page says\n%s", name, got, want)
			}
			if got := r.ValidatePlan(Plan{Skills: []string{name}}, nil); len(got) != 0 {
				t.Errorf("%s: %q", name, got)
			}
			tap := entry(t, resolved, "tap")
			if tap.SourceSkill != "demo/typing" || len(tap.Overrides) != 1 || string(tap.Overrides["writes"]) != "true" {
				t.Errorf("tap is not as the page says: %+v", tap)
			}
		case strings.HasPrefix(block, "---"):
			files++
			if s, err := folder.Parse([]byte(block), "price-check", folder.Strict); err != nil || s.Version != "1.2" || !strings.HasPrefix(s.Body, "\n# Price check\n\n") {
				t.Errorf("the SKILL.md: %+v, %v", s, err)
			}
		}
	}
	if skills != 3 || listings != 1 || files != 1 {
		t.Errorf("the page has %d skills, %d listings, %d files", skills, listings, files)
	}
	if MaxSkills != 5000 || maxResolved != 20_000 || maxFaults != 20 || model.MaxYAMLBytes != 64<<10 {
		t.Error("the page says other bounds")
	}
}
