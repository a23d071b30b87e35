package resultschema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// checked has, for each keyword that is taken and means something, a schema of the property a with a value that fits and
// one that does not, and where the second is found wanting.
var checked = map[string]struct{ schema, good, bad, where string }{
	"type":                 {`{"type":"integer"}`, `1`, `"1"`, "$.result.a"},
	"enum":                 {`{"enum":["x","y"]}`, `"x"`, `"z"`, "$.result.a"},
	"const":                {`{"const":{"b":1}}`, `{"b":1}`, `{"b":2}`, "$.result.a"},
	"multipleOf":           {`{"multipleOf":5}`, `10`, `11`, "$.result.a"},
	"minimum":              {`{"minimum":2}`, `2`, `1`, "$.result.a"},
	"maximum":              {`{"maximum":2}`, `2`, `3`, "$.result.a"},
	"exclusiveMinimum":     {`{"exclusiveMinimum":2}`, `3`, `2`, "$.result.a"},
	"exclusiveMaximum":     {`{"exclusiveMaximum":2}`, `1`, `2`, "$.result.a"},
	"minLength":            {`{"minLength":2}`, `"éé"`, `"é"`, "$.result.a"}, // characters, not bytes
	"maxLength":            {`{"maxLength":2}`, `"éé"`, `"ééé"`, "$.result.a"},
	"pattern":              {`{"pattern":"^a+$"}`, `"aa"`, `"ab"`, "$.result.a"},
	"minItems":             {`{"minItems":1}`, `[1]`, `[]`, "$.result.a"},
	"maxItems":             {`{"maxItems":1}`, `[1]`, `[1,2]`, "$.result.a"},
	"uniqueItems":          {`{"uniqueItems":true}`, `[1,2]`, `[1,1]`, "$.result.a"},
	"minContains":          {`{"contains":{"type":"null"},"minContains":2}`, `[null,null]`, `[null,1]`, "$.result.a"},
	"maxContains":          {`{"contains":{"type":"null"},"maxContains":1}`, `[null,1]`, `[null,null]`, "$.result.a"},
	"minProperties":        {`{"minProperties":1}`, `{"b":1}`, `{}`, "$.result.a"},
	"maxProperties":        {`{"maxProperties":1}`, `{"b":1}`, `{"b":1,"c":1}`, "$.result.a"},
	"required":             {`{"required":["b"]}`, `{"b":1}`, `{"c":1}`, "$.result.a"},
	"dependentRequired":    {`{"dependentRequired":{"b":["c"]}}`, `{"c":1}`, `{"b":1}`, "$.result.a"},
	"items":                {`{"items":{"type":"null"}}`, `[null]`, `[1]`, "$.result.a[]"},
	"contains":             {`{"contains":{"type":"null"}}`, `[1,null]`, `[1]`, "$.result.a"},
	"additionalProperties": {`{"properties":{"b":true},"additionalProperties":{"type":"null"}}`, `{"b":1,"c":null}`, `{"c":1}`, "$.result.a.*"},
	"propertyNames":        {`{"propertyNames":{"maxLength":1}}`, `{"b":1}`, `{"bb":1}`, "$.result.a"},
	"not":                  {`{"not":{"type":"null"}}`, `1`, `null`, "$.result.a"},
	"if":                   {`{"if":{"type":"string"},"then":{"minLength":2}}`, `1`, `"x"`, "$.result.a"},
	"then":                 {`{"if":{"type":"string"},"then":{"minLength":2}}`, `"xx"`, `"x"`, "$.result.a"},
	"else":                 {`{"if":{"type":"string"},"else":{"minimum":2}}`, `2`, `1`, "$.result.a"},
	"prefixItems":          {`{"prefixItems":[{"type":"null"},{"type":"string"}]}`, `[null,"x"]`, `[null,1]`, "$.result.a[1]"},
	"allOf":                {`{"allOf":[{"minimum":1},{"maximum":2}]}`, `2`, `3`, "$.result.a"},
	"anyOf":                {`{"anyOf":[{"type":"null"},{"minimum":2}]}`, `null`, `1`, "$.result.a"},
	"oneOf":                {`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `1`, `2`, "$.result.a"},
	"properties":           {`{"properties":{"b/c~":{"type":"null"}}}`, `{"b/c~":null}`, `{"b/c~":1}`, "$.result.a.b/c~"},
	"patternProperties":    {`{"patternProperties":{"^b":{"type":"null"}}}`, `{"c":1}`, `{"bb":1}`, "$.result.a.*"},
	"dependentSchemas":     {`{"dependentSchemas":{"b":{"required":["c"]}}}`, `{"c":1}`, `{"b":1}`, "$.result.a"},
}

// remarks are keywords that check nothing, in the standard too.
var remarks = map[string]bool{"$schema": true, "$comment": true, "title": true, "description": true, "default": true, "examples": true}

func TestEachKeywordThatIsTakenIsChecked(t *testing.T) {
	for key := range keywords {
		c, ok := checked[key]
		if remarks[key] != !ok {
			t.Errorf("%s is taken and has no example", key)
		}
		if !ok {
			continue
		}
		t.Run(key, func(t *testing.T) {
			s, err := Parse(json.RawMessage(`{"type":"object","properties":{"a":` + c.schema + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(json.RawMessage(`{"a":` + c.good + `}`)); err != nil {
				t.Errorf("%s: %v", c.good, err)
			}
			if err := s.Check(json.RawMessage(`{"a":` + c.bad + `}`)); err == nil || !strings.HasPrefix(err.Error(), c.where+" does not match") {
				t.Errorf("%s: %v, want %s", c.bad, err, c.where)
			}
		})
	}
}

// TestAnUnknownKeywordIsRefusedAtEachDepth: what is not checked must not seem to be.
func TestAnUnknownKeywordIsRefusedAtEachDepth(t *testing.T) {
	const one, list, named = `%s`, `[true,%s]`, `{"x":%s}`
	for key, shape := range map[string]string{
		"items": one, "contains": one, "additionalProperties": one, "propertyNames": one, "not": one, "if": one, "then": one, "else": one,
		"prefixItems": list, "allOf": list, "anyOf": list, "oneOf": list, "properties": named, "patternProperties": named, "dependentSchemas": named,
	} {
		for _, inner := range []string{`{"formt":1}`, `{"$ref":"#"}`, `{"items":{"unevaluatedItems":false}}`, `7`} {
			raw := fmt.Sprintf(`{"type":"object","%s":%s}`, key, fmt.Sprintf(shape, inner))
			if s, err := Parse(json.RawMessage(raw)); err == nil || s != nil {
				t.Errorf("%s is taken", raw)
			}
		}
		if _, err := Parse(json.RawMessage(fmt.Sprintf(`{"type":"object","%s":%s}`, key, fmt.Sprintf(shape, `{"minimum":1}`)))); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}
