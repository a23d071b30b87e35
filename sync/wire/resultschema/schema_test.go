package resultschema_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"phonerack/sync/wire/resultschema"
)

const basket = `{"type":"object","required":["items"],"additionalProperties":false,"properties":{
	"items":{"type":"array","minItems":1,"items":{"type":"object","required":["price"],"properties":{"price":{"type":"number","minimum":0}}}},
	"note":{"anyOf":[{"type":"null"},{"type":"string","pattern":"^[a-z ]*$"}]}}}`

func TestResultsAreHeldToTheirSchema(t *testing.T) {
	s, err := resultschema.Parse(json.RawMessage(basket))
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(s.String(), "\n\t") {
		t.Errorf("%q", s)
	}
	for result, want := range map[string]string{
		`{"items":[{"price":4.5},{"price":0}]}`: "",
		`{"items":[{"price":4}],"note":null}`:   "",
		``:                                      "$.result must be there",
		`{"items":[{"price":"4"}]}`:             "$.result.items[].price does not match",
		`{"items":[{"price":-1}]}`:              "$.result.items[].price does not match",
		`{"items":[{}]}`:                        "$.result.items[] does not match",
		`{"items":[]}`:                          "$.result.items does not match",
		`{"items":[{"price":1}],"note":"NO"}`:   "$.result.note does not match",
		`{"items":[{"price":1}],"more":1}`:      "$.result",
		`{}`:                                    "$.result does not match",
		`[]`:                                    "$.result does not match",
		`{"items":[{"price":1e999}]}`:           "$.result cannot be read",
		`{"items":[{"price":1}],"items":[]}`:    "$.result cannot be read",
		`{"items":[{"price":1}]} {}`:            "$.result cannot be read",
		`{"items":"` + strings.Repeat("\\n", 900) + `"}`: "$.result.items does not match",
	} {
		err := s.Check(json.RawMessage(result))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", result, err)
			}
			continue
		}
		e, ok := errors.AsType[*resultschema.Error](err)
		if !ok || !strings.HasPrefix(e.Error(), want) || len(e.Error()) > 600 || strings.Contains(e.Error(), "\n") {
			t.Errorf("%.60s: %v, want %s", result, err, want)
		}
	}
}

func TestWithoutASchemaAnyResultFits(t *testing.T) {
	for _, raw := range []string{"", "null", " null\n"} {
		s, err := resultschema.Parse(json.RawMessage(raw))
		if err != nil || s.Check(nil) != nil || s.Check(json.RawMessage(`{"a":1}`)) != nil || s.String() != "" {
			t.Errorf("%q: %v, %v", raw, s, err)
		}
	}
}

func TestSchemasThatCannotBeCheckedAreRefused(t *testing.T) {
	for raw, want := range map[string]string{
		`{`:                 "cannot be read",
		`true`:              "cannot be read",
		`{"type":"string"}`: `"type":"object"`,
		`{}`:                `"type":"object"`,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`:    "$.properties.a has a $ref",
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`:                             "has a $ref",
		`{"type":"object","$dynamicRef":"#x"}`:                                          "has a $dynamicRef",
		`{"type":"object","$id":"https://example.com/s"}`:                               `keyword "$id"`,
		`{"type":"object","properties":{"a":{"type":"string","format":"date"}}}`:        `keyword "format"`,
		`{"type":"object","requird":["a"]}`:                                             `keyword "requird"`,
		`{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}`:         "no other $schema",
		`{"type":"object","properties":{"a":{"pattern":"("}}}`:                          "is wrong",
		`{"type":"object","properties":{"a":1}}`:                                        "must be a schema",
		`{"type":"object","anyOf":{"a":1}}`:                                             "must be a list",
		`{"type":"object","properties":[]}`:                                             "by name",
		`{"type":"object","type":"object"}`:                                             "cannot be read",
		`{"type":"object","minProperties":"x"}`:                                         "cannot be read",
		`{"type":"object","title":"` + strings.Repeat("x", resultschema.MaxSize) + `"}`: "larger than",
	} {
		if s, err := resultschema.Parse(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), want) || s != nil {
			t.Errorf("%.80s: %v, want %s", raw, err, want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(basket), []byte(`{"items":[{"price":1}]}`))
	f.Add([]byte(`{"type":"object","oneOf":[{"not":true},{"if":{"required":["a"]},"then":{"maxProperties":1},"else":false}]}`), []byte(`{"a":[1,1]}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"uniqueItems":true,"prefixItems":[{"multipleOf":0}],"contains":{"const":1}}}}`), []byte(`{"a":[1,1]}`))
	f.Fuzz(func(t *testing.T, schema, result []byte) {
		s, err := resultschema.Parse(schema)
		if err != nil || s == nil {
			return
		}
		if again, err := resultschema.Parse(json.RawMessage(s.String())); err != nil || again.String() != s.String() {
			t.Errorf("%s is not taken again: %v", s, err)
		}
		if err := s.Check(result); err != nil && len(err.Error()) > 600 {
			t.Errorf("%d bytes of reason", len(err.Error()))
		}
	})
}
