package template_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"phonerack/agent/skill/model"
	"phonerack/agent/tools"
)

// TestTheExampleOfThePageCanBeUsed: who copies the flow template of docs/skills.md has a skill whose calls a rack can make.
func TestTheExampleOfThePageCanBeUsed(t *testing.T) {
	page, err := os.ReadFile("../../../docs/skills.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n    id: xhs-search")
	text, _, ends := strings.Cut("id: xhs-search"+text, "\n\n")
	if !found || !ends {
		t.Fatal("the page has no example")
	}
	s, err := model.ParseDraft("skills.yaml", []byte(strings.ReplaceAll(text, "\n    ", "\n")))
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]string{}
	for _, tool := range tools.Default().Tools() {
		schemas[tool.Name] = string(tool.Schema)
	}
	flow, known := parsed(t, s), registered(t, schemas)
	if err := flow.Check(known); err != nil {
		t.Error(err)
	}
	calls, err := flow.Resolve(json.RawMessage(`{"query":"kettle"}`), known)
	if err != nil || lines(calls)[2] != `input_text {"text":"kettle {new}"}` {
		t.Errorf("%v, %v", lines(calls), err)
	}
}
