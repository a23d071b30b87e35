package model_test

import (
	"strings"
	"testing"

	"phonerack/agent/skill/model"
)

func TestSpec000_D1_OneModelWithAKind(t *testing.T) {
	const shared = "id: x\nname: X\ndescription: d\nversion: \"3\"\ntags: [a]\n"
	const text = "kind: knowledge\ncontent: Look twice.\n"
	const steps = "kind: flow_template\nparameters: [{name: q, type: string, required: true}]\nsteps: [{tool: input_text, args_template: {text: \"{q}\"}}]\n"
	t.Run("both kinds share their metadata", func(t *testing.T) {
		k, f := published(t, "k.yaml", shared+text), published(t, "f.yaml", shared+steps)
		if k.Kind != model.Knowledge || f.Kind != model.FlowTemplate {
			t.Errorf("kinds %s and %s", k.Kind, f.Kind)
		}
		for _, s := range []*model.Skill{k, f} {
			raw, err := s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range []string{`"id":"x"`, `"name":"X"`, `"description":"d"`, `"version":"3"`, `"tags":["a"]`, `"subscription_id":"social"`, `"updated_at":"2026-11-30T08:40:00.12Z"`} {
				if !strings.Contains(string(raw), field) {
					t.Errorf("%s has no %s", raw, field)
				}
			}
		}
	})
	t.Run("what belongs to one kind is refused in the other", func(t *testing.T) {
		for _, wrong := range []string{
			strings.Replace(text, "knowledge", "flow_template", 1), strings.Replace(steps, "flow_template", "knowledge", 1), text + "steps: []\n", steps + "content: Look.\n",
			strings.Replace(text, "knowledge", "script", 1), "content: Look.\n",
		} {
			if _, err := model.ParseDraft("x.yaml", []byte(shared+wrong)); err == nil {
				t.Errorf("taken:\n%s", wrong)
			}
		}
	})
}
