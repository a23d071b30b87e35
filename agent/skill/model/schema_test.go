package model_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"phonerack/agent/skill/model"
)

// document is one kind of document: its schema's and folder's name, and what
// reads it and writes it again.
type document struct {
	name  string
	again func(raw []byte) ([]byte, error)
}

var documents = []document{
	{"skill", func(raw []byte) ([]byte, error) {
		s, err := model.ParseSkill(raw)
		if err != nil {
			return nil, err
		}
		return s.Encode()
	}},
	{"registry-skill", func(raw []byte) ([]byte, error) {
		s, err := model.ParseRegistryJSON(raw)
		if err != nil {
			return nil, err
		}
		return s.Encode()
	}},
	{"manifest", func(raw []byte) ([]byte, error) {
		m, err := model.ParseManifest(raw)
		if err != nil {
			return nil, err
		}
		return m.Encode()
	}},
}

func schema(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(readFile(t, filepath.Join("../../../docs/schemas", name+".schema.json")), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// judged is what the schema says of a document.
func judged(t *testing.T, s *jsonschema.Resolved, raw []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return s.Validate(v)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestSchemasAndParsersAgree judges the same documents by docs/schemas and by the
// parsers: both take the valid ones, both refuse the invalid ones, and what lies
// beyond a schema, as its description says, is refused by the parser alone.
func TestSchemasAndParsersAgree(t *testing.T) {
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			s := schema(t, d.name)
			valid := map[string]string{}
			paths, _ := filepath.Glob(filepath.Join("testdata", d.name, "valid", "*.json"))
			if len(paths) < 2 {
				t.Fatalf("%d valid examples", len(paths))
			}
			for _, path := range paths {
				raw := readFile(t, path)
				valid[strings.TrimSuffix(filepath.Base(path), ".json")] = string(raw)
				if err := judged(t, s, raw); err != nil {
					t.Errorf("%s: the schema refuses it: %v", path, err)
				}
				encoded, err := d.again(raw)
				if err != nil {
					t.Errorf("%s: the parser refuses it: %v", path, err)
					continue
				}
				if err := judged(t, s, encoded); err != nil {
					t.Errorf("%s: the schema refuses what was encoded: %v", path, err)
				}
				if twice, err := d.again(encoded); err != nil || string(twice) != string(encoded) {
					t.Errorf("%s: encoding is not stable: %v", path, err)
				}
			}
			var refused struct {
				Invalid, Beyond []struct{ Why, Base, Old, New, Says string }
			}
			if err := json.Unmarshal(readFile(t, filepath.Join("testdata", d.name, "refused.json")), &refused); err != nil {
				t.Fatal(err)
			}
			for i, c := range append(refused.Invalid, refused.Beyond...) {
				if !strings.Contains(valid[c.Base], c.Old) {
					t.Errorf("%s: %s has no %s", c.Why, c.Base, c.Old)
					continue
				}
				raw := []byte(strings.Replace(valid[c.Base], c.Old, c.New, 1))
				if err := judged(t, s, raw); (err == nil) != (i >= len(refused.Invalid)) {
					t.Errorf("%s: the schema says %v", c.Why, err)
				}
				if _, err := d.again(raw); err == nil || !strings.Contains(err.Error(), c.Says) {
					t.Errorf("%s: the parser says %v\nwant %s", c.Why, err, c.Says)
				}
			}
		})
	}
}

// TestSpec004_RegistrySkill shows what is written of a skill and its items.
func TestSpec004_RegistrySkill(t *testing.T) {
	t.Run("Each skill stores its components as ordered items", func(t *testing.T) {
		raw := readFile(t, "testdata/registry-skill/valid/all-items.json")
		s, err := model.ParseRegistryJSON(raw)
		if err != nil {
			t.Fatal(err)
		}
		var types, names []string
		for _, it := range s.Items {
			types, names = append(types, string(it.Type())), append(names, it.Name())
		}
		if diff := cmp.Diff([]string{"tool_ref", "include", "inline_tool", "inline_tool", "mcp_source", "include", "mcp_source", "agent_source", "tool_ref"}, types); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"tap", "catalog/xhs-search", "", "", "files", "agent_skills/pdf", "maps", "~/skills/pdf", "mcp:files/read"}, names); diff != "" {
			t.Error(diff)
		}
		encoded, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var lenient model.RegistrySkill
		if err := json.Unmarshal(encoded, &lenient); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, &lenient); diff != "" {
			t.Errorf("a field is lost:\n%s", diff)
		}
		var want, got any // but for the source that an inline tool has without saying it
		text := strings.Replace(string(raw), `"writes", "writes"`, `"writes", "source": "custom", "writes"`, 1)
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a field is lost:\n%s", diff)
		}
	})
	t.Run("Names must match ^[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+$", func(t *testing.T) {
		for name, want := range map[string]bool{
			"local/code-tools": true, "A_1/b-2": true, "local": false, "local/": false, "/x": false, "a/b/c": false, "a.b/c": false, "a/b\n": false, "": false,
			strings.Repeat("n", 100) + "/" + strings.Repeat("s", 150): true,
			strings.Repeat("n", 101) + "/s":                           false,
			"n/" + strings.Repeat("s", 151):                           false,
		} {
			if namespace, short, err := model.SplitName(name); (err == nil) != want || err == nil && namespace+"/"+short != name {
				t.Errorf("%.40q: %q, %q, %v", name, namespace, short, err)
			}
		}
	})
	t.Run("Registered from YAML", func(t *testing.T) {
		s, err := model.ParseRegistryYAML("x.yaml", []byte("name: local/x\ndescription: d\nversion: 1.0\nitems:\n- {type: tool_ref, name: tap}\n- {type: include, name: catalog/tips}\n"))
		if err != nil {
			t.Fatal(err)
		}
		want := &model.RegistrySkill{Name: "local/x", Description: "d", Version: "1.0", Items: []model.Item{
			{ToolRef: &model.ToolRef{Name: "tap"}}, {Include: &model.Include{Name: "catalog/tips"}},
		}}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCatalogNames(t *testing.T) {
	for name, want := range map[string]string{"catalog/xhs-tips": "xhs-tips", "catalog/": "", "catalog/A": "", "local/x": "", "catalogue/x": "", "catalog/a/b": ""} {
		if id, ok := model.CatalogID(name); ok != (want != "") || ok && id != want {
			t.Errorf("%s: %q, %v", name, id, ok)
		}
	}
	if name := model.CatalogName("x"); name != "catalog/x" || !model.Reserved("catalog") || !model.Reserved("agent_skills") || model.Reserved("local") {
		t.Error(name)
	}
}
