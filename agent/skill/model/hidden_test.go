package model_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"phonerack/agent/skill/model"
)

func TestHiddenCharactersAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"plain, 中文, 한국어, かな":              "",
		"a\u200bb":                        "U+200B zero width space at byte 1",
		"\u202eevil\u202c":                "U+202E right-to-left override at byte 0; U+202C pop directional formatting at byte 7",
		"x\U000e0069\U000e0067\U000e007f": `U+E0069 tag 'i' at byte 1; U+E0067 tag 'g' at byte 5; U+E007F cancel tag at byte 9`,
		"a\ufeffb":                        "U+FEFF zero width no-break space at byte 1",
		"👩\u200d💻 ❤\ufe0f 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈": "",
		"a\u200d💻":        "U+200D zero width joiner at byte 1",
		"👩\u200da":        "U+200D zero width joiner at byte 4",
		"a\ufe0f":         "U+FE0F variation selector 16 at byte 1",
		"❤\ufe0f\ufe0f":   "U+FE0F variation selector 16 at byte 6",
		"😀\U000e0101":     "U+E0101 variation selector 18 at byte 4",
		"a\u3164b\u2800c": "U+3164 Hangul filler at byte 1; U+2800 Braille pattern blank at byte 5",
	} {
		var got []string
		for _, h := range model.FindHidden(text) {
			got = append(got, h.String())
		}
		if joined := strings.Join(got, "; "); joined != want {
			t.Errorf("%+q:\ngot  %s\nwant %s", text, joined, want)
		}
	}
}

func TestSmuggledTextIsFoundInEveryField(t *testing.T) {
	s := published(t, "search.yaml", search)
	if found := s.Smuggled(); found != nil {
		t.Errorf("%v", found)
	}
	s.Description = "a\u200b\u200b\u200b\u200b"
	s.Tags = append(s.Tags, "b\u202e")
	s.Steps[0].ArgsTemplate = []byte(`{"k\u200b":{"x":["\udb40\udc61"]}}`)
	var got []string
	for _, f := range s.Smuggled() {
		got = append(got, f.String())
	}
	want := []string{
		"description: U+200B zero width space at byte 1, U+200B zero width space at byte 4, U+200B zero width space at byte 7, 1 more",
		"tags[2]: U+202E right-to-left override at byte 1",
		"steps[0].args_template.k\u200b (the key): U+200B zero width space at byte 1",
		"steps[0].args_template.k\u200b.x[0]: U+E0061 tag 'a' at byte 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r := &model.RegistrySkill{Name: "a/b", Description: "d", Items: []model.Item{{InlineTool: &model.InlineTool{Description: "x\u2066"}}}}
	if found := r.Smuggled(); len(found) != 1 || found[0].Path != "items[0].description" {
		t.Errorf("%v", found)
	}
}
