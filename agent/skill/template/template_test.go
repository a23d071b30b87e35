package template_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"phonerack/agent/planner"
	"phonerack/agent/skill/model"
	"phonerack/agent/skill/model/placeholder"
	"phonerack/agent/skill/template"
)

// skill is a flow template of parameters and steps, given as JSON.
func skill(t interface {
	Helper()
	Fatal(...any)
}, parameters, steps string,
) *model.Skill {
	t.Helper()
	s, err := model.ParseDraft("x.json", []byte(`{"id":"x","name":"x","description":"x","kind":"flow_template","version":"1","parameters":`+parameters+`,"steps":`+steps+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parsed(t interface {
	Helper()
	Fatal(...any)
}, s *model.Skill,
) *template.Template {
	t.Helper()
	tmpl, err := template.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// registered has a schema for each tool.
func registered(t *testing.T, schemas map[string]string) template.Tools {
	t.Helper()
	tools := map[string]*planner.Schema{}
	for name, raw := range schemas {
		s, err := planner.ParseSchema(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		tools[name] = s
	}
	return func(name string) (template.Checker, bool) {
		s, ok := tools[name]
		return s, ok
	}
}

// anything takes all arguments of all tools.
type anything struct{}

func (anything) Check(json.RawMessage) error { return nil }

func takesAll(string) (template.Checker, bool) { return anything{}, true }

const parameters = `[
	{"name":"query","type":"string","required":true},
	{"name":"times","type":"integer","default":2,"enum":[1,2,3]},
	{"name":"speed","type":"number","required":true},
	{"name":"loud","type":"boolean","default":false},
	{"name":"points","type":"array","default":[]},
	{"name":"place","type":"object"}]`

const steps = `[
	{"tool":"input_text","args_template":{"text":"{query}","say":"{query} {times}x at {speed}, {loud} {{}}"}},
	{"tool":"act","args_template":{"n":"{times}","s":"{speed}","l":"{loud}","all":[1.50,"{points}",{"deep":"{query}"}],"place":"{place}","null":null}}]`

func TestSpec000_Resolution(t *testing.T) {
	tmpl := parsed(t, skill(t, parameters, steps))
	t.Run("args_template values may contain {param} placeholders", func(t *testing.T) {
		calls, err := tmpl.Resolve(json.RawMessage(`{"query":"茶 \"&\" <b>","speed":1.0,"place":{"b":1,"a":[]},"points":[{"x":12345678901234567890}]}`), takesAll)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			`input_text {"say":"茶 \"&\" <b> 2x at 1.0, false {}","text":"茶 \"&\" <b>"}`,
			`act {"all":[1.50,[{"x":12345678901234567890}],{"deep":"茶 \"&\" <b>"}],"l":false,"n":2,"null":null,"place":{"a":[],"b":1},"s":1.0}`,
		}
		if diff := cmp.Diff(want, lines(calls)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an optional parameter that is absent is left out with its key", func(t *testing.T) {
		calls, err := tmpl.Resolve(json.RawMessage(`{"query":"a","speed":1}`), takesAll)
		if err != nil || !strings.HasSuffix(lines(calls)[1], `"n":2,"null":null,"s":1}`) {
			t.Errorf("%v %v", lines(calls), err)
		}
	})
	t.Run("parameters validate inputs before execution", func(t *testing.T) {
		for given, want := range map[string]string{
			``:                                      "missing: query, speed",
			`{}`:                                    "missing: query, speed",
			`{"query":"a"}`:                         "missing: speed",
			`{"query":null,"speed":1}`:              "query must be a text, and is null",
			`{"query":1,"speed":"1"}`:               "query must be a text, and is a number; speed must be a number, and is a text",
			`{"speed":1,"b":1,"a":2}`:               `missing: query; unknown: "a", "b"`,
			`{"query":"a","speed":1,"times":4}`:     "times must be one of 1, 2, 3",
			`{"query":"a","speed":1,"times":1.0}`:   "times must be a whole number without fraction and exponent, and is 1.0",
			`{"query":"a","speed":1,"loud":"true"}`: "loud must be true or false, and is a text",
			`{"query":"a","speed":1,"points":{}}`:   "points must be a list, and is an object",
			`{"query":"a","speed":1,"place":[]}`:    "place must be an object, and is a list",
			`{"query":"a\u0000","speed":1}`:         "query has the control character U+0000",
			`{"query":"a","speed":1,"Query":1}`:     `unknown: "Query"`,
			`{"query":"a","query":"b","speed":1}`:   `the key "query" is there twice`,
			`[]`:                                    "must be an object, and is a list",
			`{"query":"` + strings.Repeat("a", 8200) + `","speed":1}`:                                    "query has 8202 bytes, at most 8192",
			`{"query":"` + strings.Repeat("a", 70000) + `","speed":1}`:                                   "the parameters have",
			`{"query":"` + strings.Repeat("a", 5000) + `","speed":1}`:                                    "step 1 (input_text): the arguments have",
			`{"query":"a","speed":1,"points":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`: "nested deeper than 64",
		} {
			if calls, err := tmpl.Resolve(json.RawMessage(given), takesAll); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.80s: %v, %v\nwant %s", given, calls, err, want)
			}
		}
		_, err := tmpl.Resolve(json.RawMessage(`{"a":1}`), takesAll)
		var parameters *template.ParameterError
		if !errors.As(err, &parameters) || !cmp.Equal(parameters.Missing, []string{"query", "speed"}) {
			t.Errorf("%v", err)
		}
	})
	t.Run("the result is held to the tool's schema", func(t *testing.T) {
		tools := registered(t, map[string]string{
			"input_text": `{"type":"object","properties":{"text":{"type":"string","maxLength":3},"say":{"type":"string"}}}`, "act": `{"type":"object"}`,
		})
		_, err := tmpl.Resolve(json.RawMessage(`{"query":"four","speed":1}`), tools)
		if err == nil || err.Error() != "step 1 (input_text): $.text must have at most 3 characters" {
			t.Error(err)
		}
		_, err = tmpl.Resolve(json.RawMessage(`{"query":"abc","speed":1}`), registered(t, map[string]string{"input_text": `{"type":"object"}`}))
		if err == nil || err.Error() != `skill unavailable: step 2 calls tool "act", which is not registered` {
			t.Error(err)
		}
	})
	t.Run("a knowledge skill has no steps", func(t *testing.T) {
		if _, err := template.Parse(&model.Skill{Kind: model.Knowledge}); !errors.Is(err, template.ErrKnowledge) {
			t.Error(err)
		}
	})
}

func lines(calls []template.Call) []string {
	var all []string
	for _, c := range calls {
		all = append(all, c.Tool+" "+string(c.Arguments))
	}
	return all
}

// TestValuesStayValues puts in what other implementations expanded again.
func TestValuesStayValues(t *testing.T) {
	tmpl := parsed(t, skill(t, `[{"name":"a","type":"string","required":true},{"name":"a1","type":"string","required":true}]`,
		`[{"tool":"t","args_template":{"whole":"{a}","part":"<{a}{a1}>"}}]`))
	for _, value := range []string{
		"{a1}", "{{a1}}", "{a}", "$1", "$10", "%s", "%!d", "\\1", "${a1}", `"},{"tool":"x"`, "a; input keyevent 3", "$(x)", "`x`", "'", "a\nb",
		"#general", "~/x", "*#06#", "茶", "😀", "\u2028", "{", "}", "{{", "}}", "null", "true", "",
	} {
		given, err := json.Marshal(map[string]string{"a": value, "a1": "[" + value + "]"})
		if err != nil {
			t.Fatal(err)
		}
		calls, err := tmpl.Resolve(given, takesAll)
		if err != nil || len(calls) != 1 || calls[0].Tool != "t" {
			t.Fatalf("%q: %v, %v", value, calls, err)
		}
		var got map[string]string
		if err := json.Unmarshal(calls[0].Arguments, &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"whole": value, "part": "<" + value + "[" + value + "]>"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", value, diff)
		}
	}
}

// TestResolutionIsSubstitution compares with a plain walk over decoded values.
func TestResolutionIsSubstitution(t *testing.T) {
	names := []string{"a", "a1", "b"}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			var b strings.Builder
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				if rapid.Bool().Draw(t, "param") {
					b.WriteString("{" + rapid.SampledFrom(names).Draw(t, "name") + "}")
				} else {
					b.WriteString(placeholder.Escape(rapid.StringMatching(`[ab$%1\\" 茶]{1,3}`).Draw(t, "text")))
				}
			}
			return b.String()
		})
		args := map[string]any{"all": []any{"{a}", "{a1}", "{b}"}} // each is used
		for i := range rapid.IntRange(0, 3).Draw(t, "fields") {
			args[fmt.Sprint("f", i)] = nested(text, 3).Draw(t, "value")
		}
		raw, err := json.Marshal([]any{map[string]any{"tool": "t", "args_template": args}})
		if err != nil {
			t.Fatal(err)
		}
		s := skill(t, `[{"name":"a","type":"string","required":true},{"name":"a1","type":"string","required":true},{"name":"b","type":"string","required":true}]`, string(raw))
		given := map[string]string{}
		for _, name := range names {
			given[name] = rapid.StringMatching(`[{}ab1$%\\" 茶]{0,6}`).Draw(t, name)
		}
		rawGiven, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		calls, err := parsed(t, s).Resolve(rawGiven, takesAll)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(calls[0].Arguments, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(walk(args, given), got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func nested(text *rapid.Generator[string], depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(text.AsAny(), rapid.SampledFrom([]any{nil, true, 1.5, "plain"}))
	if depth == 0 {
		return leaf
	}
	inner := nested(text, depth-1)
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(inner, 0, 3), func(v []any) any { return append([]any{}, v...) }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-c]`), inner, 0, 3), func(v map[string]any) any { return v }))
}

// walk is the oracle: it reads a text from left to right, character by character.
func walk(v any, given map[string]string) any {
	switch v := v.(type) {
	case []any:
		all := []any{}
		for _, item := range v {
			all = append(all, walk(item, given))
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for k, item := range v {
			all[k] = walk(item, given)
		}
		return all
	case string:
		var out bytes.Buffer
		for i := 0; i < len(v); i++ {
			switch {
			case strings.HasPrefix(v[i:], "{{"), strings.HasPrefix(v[i:], "}}"):
				out.WriteByte(v[i])
				i++
			case v[i] == '{':
				end := strings.IndexByte(v[i:], '}')
				out.WriteString(given[v[i+1:i+end]])
				i += end
			default:
				out.WriteByte(v[i])
			}
		}
		return out.String()
	}
	return v
}

func TestSpec000_ToolsOfSteps(t *testing.T) {
	parameters := `[{"name":"query","type":"string","required":true},{"name":"maybe","type":"string"},{"name":"n","type":"integer","default":5,"enum":[5,6]}]`
	withZZ := strings.NewReplacer(`"properties":{}`, `"properties":{"zz":{"type":"object"}}`, `{"type":"object","properties":{"a":`, `{"type":"object","properties":{"zz":{"type":"object"},"a":`)
	check := func(t *testing.T, args, schema string) string {
		t.Helper()
		args = strings.TrimSuffix(args, "}") + `,"zz":{"q":"{query}","m":"{maybe}","n":"{n}"}}`
		tmpl := parsed(t, skill(t, parameters, `[{"tool":"wait","args_template":{}},{"tool":"tap","args_template":`+args+`}]`))
		err := tmpl.Check(registered(t, map[string]string{"wait": `{"type":"object"}`, "tap": withZZ.Replace(schema)}))
		if err == nil {
			return ""
		}
		var u *template.Unavailable
		if !errors.As(err, &u) || u.Step != 2 || u.Tool != "tap" {
			t.Errorf("%v", err)
		}
		return err.Error()
	}
	t.Run("a template calls a tool that was renamed", func(t *testing.T) {
		tmpl := parsed(t, skill(t, `[]`, `[{"tool":"a","args_template":{}},{"tool":"a","args_template":{}},{"tool":"x","args_template":{}}]`))
		if err := tmpl.Check(registered(t, map[string]string{"a": `{"type":"object"}`})); err == nil || err.Error() != `skill unavailable: step 3 calls tool "x", which is not registered` {
			t.Error(err)
		}
		if err := tmpl.Check(registered(t, map[string]string{"a": `{"type":"object"}`, "x": `{"type":"object"}`})); err != nil {
			t.Error(err)
		}
		if err := tmpl.Check(takesAll); err != nil {
			t.Errorf("a tool with another kind of schema: %v", err)
		}
	})
	t.Run("arguments drift from the tool's", func(t *testing.T) {
		for _, c := range []struct{ args, schema, want string }{
			{`{"a":"{query}"}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, ""},
			{`{"b":"x"}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "$.a is missing"},
			{`{"b":"x"}`, `{"type":"object","properties":{},"additionalProperties":false}`, "$.b is not an argument of this tool"},
			{`{"a":7}`, `{"type":"object","properties":{"a":{"type":"integer","maximum":5}}}`, "$.a must be at most 5"},
			{`{"a":"{query}"}`, `{"type":"object","properties":{"a":{"type":"integer"}}}`, "$.a must be of type integer, and the parameter query is of type string"},
			{`{"a":"{query}!"}`, `{"type":"object","properties":{"a":{"type":"integer"}}}`, "$.a must be of type integer, and is a text"},
			{`{"a":"{query} is long"}`, `{"type":"object","properties":{"a":{"type":"string","maxLength":5}}}`, "$.a must have at most 5 characters, and has 8 already"},
			{`{"a":"{maybe}"}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "$.a is needed, and the parameter maybe may be absent"},
			{`{"a":"{maybe}"}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
			{`{"a":"{n}"}`, `{"type":"object","properties":{"a":{"type":"number"}}}`, ""},
			{`{"a":"{n}"}`, `{"type":"object","properties":{"a":{"type":"integer","maximum":5}}}`, "$.a must be at most 5, which the parameter n may choose as 6"},
			{`{"a":["{query}",1]}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`, "$.a[1] must be a string"},
			{`{"a":["{query}"]}`, `{"type":"object","properties":{"a":{"type":"object"}}}`, "$.a must be of type object, and is a list"},
			{`{"a":{"b":"{query}"}}`, `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"boolean"}}}}}`, "$.a.b must be of type boolean"},
			{`{"a":{"b":"{query}"}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, "$.a must be of type string, and is an object"},
			{`{"a":"{query}"}`, `{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`, ""},
		} {
			got := check(t, c.args, c.schema)
			if c.want == "" && got != "" || c.want != "" && got != `skill unavailable: step 2 calls tool "tap" with arguments that it does not take: `+c.want && !strings.Contains(got, c.want) {
				t.Errorf("%s: %s\nwant %s", c.args, got, c.want)
			}
		}
	})
}

// FuzzResolve: whatever a template and its parameters are, there are as many
// calls as steps, of the same tools, and their arguments are objects.
func FuzzResolve(f *testing.F) {
	f.Add([]byte(parameters), []byte(steps), []byte(`{"query":"{times}","speed":1}`))
	f.Add([]byte(`[]`), []byte(`[{"tool":"x","args_template":{"a":"{{}}"}}]`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, parameters, steps, given []byte) {
		s, err := model.ParseDraft("x.json", fmt.Appendf(nil, `{"id":"x","name":"x","description":"x","kind":"flow_template","version":"1","parameters":%s,"steps":%s}`, parameters, steps))
		if err != nil || s.Kind != model.FlowTemplate {
			return
		}
		s.Subscription, s.UpdatedAt = "s", time.Unix(1, 0).UTC()
		calls, err := parsed(t, s).Resolve(given, takesAll)
		if err != nil {
			return
		}
		if len(calls) != len(s.Steps) {
			t.Fatalf("%d calls of %d steps", len(calls), len(s.Steps))
		}
		for i, c := range calls {
			if _, err := model.Fields(c.Arguments); err != nil || c.Tool != s.Steps[i].Tool {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
