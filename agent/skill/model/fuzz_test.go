package model_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"phonerack/agent/skill/model"
)

func seeds(f *testing.F, folder string) {
	paths, _ := filepath.Glob(filepath.Join("testdata", folder, "valid", "*.json"))
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
}

// stable: what was taken is encoded, and what was encoded is taken as the same.
func stable(t *testing.T, again func([]byte) ([]byte, error), raw []byte) {
	first, err := again(raw)
	if err != nil {
		return
	}
	second, err := again(first)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("%v\n%s\n%s", err, first, second)
	}
}

func FuzzParseSkill(f *testing.F) {
	seeds(f, "skill")
	f.Fuzz(func(t *testing.T, raw []byte) { stable(t, documents[0].again, raw) })
}

func FuzzParseRegistry(f *testing.F) {
	seeds(f, "registry-skill")
	f.Fuzz(func(t *testing.T, raw []byte) { stable(t, documents[1].again, raw) })
}

func FuzzParseManifest(f *testing.F) {
	seeds(f, "manifest")
	f.Fuzz(func(t *testing.T, raw []byte) { stable(t, documents[2].again, raw) })
}

func FuzzParseDraft(f *testing.F) {
	f.Add(0, []byte(search))
	f.Add(1, []byte("---\nid: a\nname: b\ndescription: c\nversion: 1\n---\ntext"))
	f.Add(0, []byte("a: &x [*x]\n<<: 1\n? [k]\n: !!binary AA=="))
	f.Fuzz(func(t *testing.T, kind int, raw []byte) {
		s, err := model.ParseDraft([]string{"a.yaml", "a.md", "a.json"}[uint(kind)%3], raw)
		if err != nil {
			if len(err.Error()) > 4096 || !utf8.ValidString(err.Error()) {
				t.Errorf("not a sentence: %q", err)
			}
			return
		}
		s.Subscription = "s"
		s.UpdatedAt = published(t, "search.yaml", search).UpdatedAt
		if err := s.Validate(); err != nil {
			t.Errorf("the draft is taken and the skill is not: %v", err)
		}
	})
}

func FuzzParseRegistryYAML(f *testing.F) {
	f.Add([]byte("name: local/x\ndescription: d\nitems:\n- {type: tool_ref, name: tap, overrides: {writes: true}}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if s, err := model.ParseRegistryYAML("x.yaml", raw); err == nil {
			if err := s.Validate(); err != nil {
				t.Errorf("taken as YAML and not as JSON: %v", err)
			}
		}
	})
}

// TestCanonicalDoesNotDependOnTheWriting: blanks and the order of keys do not matter.
func TestCanonicalDoesNotDependOnTheWriting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z{}é茶 ]{1,4}`), 1, 6, rapid.ID[string]).Draw(t, "keys")
		write := func(order []string, blank string) []byte {
			var b bytes.Buffer
			b.WriteString("{")
			for i, k := range order {
				if i > 0 {
					b.WriteString("," + blank)
				}
				b.WriteString(blank + `"` + k + `":` + blank + "[1.50,null]")
			}
			b.WriteString(blank + "}")
			return b.Bytes()
		}
		one, err := model.Canonical(write(keys, ""))
		if err != nil {
			t.Fatal(err)
		}
		other, err := model.Canonical(write(rapid.Permutation(keys).Draw(t, "order"), " \n"))
		if err != nil || !bytes.Equal(one, other) {
			t.Fatalf("%v\n%s\n%s", err, one, other)
		}
	})
}

func TestJSONIsReadStrictly(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":1,"a":2}`:                 `line 1: the key "a" is there twice`,
		"{\"a\":\n{\"b\":1,\n\"b\":2}}": `line 3: the key "b" is there twice`,
		`{"a":1} x`:                     "line 1: something follows the value",
		`{"a":1`:                        "line 1: the JSON ends too early",
		``:                              "line 1: the JSON ends too early",
		`{"a":01}`:                      "line 1: it is not valid JSON",
		`{"a":1e999}`:                   "line 1: the number 1e999 is too large or too long",
		`{"a":1e-999999}`:               "line 1: the number 1e-999999 is too large or too long",
		`"\ud800"`:                      "line 1: it is not valid UTF-8, or half of a surrogate pair is escaped",
		"\n\"\xff\"":                    "line 2: it is not valid UTF-8, or half of a surrogate pair is escaped",
		`"\\ud800 \ud83d\ude00"`:        "",
		`{"b":1.0,"a":[]}`:              "",
	} {
		_, err := model.Canonical([]byte(raw))
		if got := message(err); got != want {
			t.Errorf("%q: got %s, want %s", raw, got, want)
		}
	}
	fields, err := model.Fields([]byte(`{"b": {"z": 1, "y": 2}, "a": null}`))
	if diff := cmp.Diff(map[string]string{"a": "null", "b": `{"y":2,"z":1}`}, asText(fields)); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := model.Fields([]byte(`[]`)); message(err) != "line 1: must be an object, and is a list" {
		t.Error(err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func asText[V ~[]byte](m map[string]V) map[string]string {
	texts := map[string]string{}
	for k, v := range m {
		texts[k] = string(v)
	}
	return texts
}
