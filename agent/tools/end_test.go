package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"phonerack/agent/tools/toolstest"
	"phonerack/sync/wire"
	"phonerack/sync/wire/resultschema"
)

func TestTasksEnd(t *testing.T) {
	for _, c := range []struct {
		tool, args    string
		success       bool
		message, made string
	}{
		{"finish", `{"message":"done"}`, true, "done", ""},
		{"finish", `{"success":true,"message":""}`, true, "", ""},
		{"finish", `{"success":false,"message":"sold out"}`, false, "sold out", ""},
		{"finish", `{"message":"done","result":{"price": 4.50, "ids": [1, 2]}}`, true, "done", `{"price":4.50,"ids":[1,2]}`},
		{"fail", `{"reason":"sold out"}`, false, "sold out", ""},
	} {
		p := toolstest.New(shop())
		out, err := do(t, p.Env(), c.tool, c.args)
		if err != nil || !out.Finished || out.Success != c.success || out.Message != c.message || string(out.Object) != c.made {
			t.Errorf("%s %s: %+v, %v", c.tool, c.args, out, err)
		}
		wantNothing(t, p, out)
	}
	for args, want := range map[string]string{
		`{"success":true}`:             "$.message is missing",
		`{"message":"x","result":"y"}`: "$.result must be an object",
		`{"message":"x","result":{"a":"` + strings.Repeat("水", 4000) + `"}}`: "at most 4000 characters",
		`{"message":"` + strings.Repeat("x", 2001) + `"}`:                    "at most 2000 characters",
	} {
		out, err := do(t, toolstest.New(shop()).Env(), "finish", args)
		wantRefusal(t, err, wire.BadArguments, want)
		if out.Finished {
			t.Errorf("%.80s ends the task", args)
		}
	}
	if out, err := do(t, toolstest.New(shop()).Env(), "fail", `{"reason":""}`); err == nil || out.Finished {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestASuccessNeedsTheResultThatItsTaskWants(t *testing.T) {
	schema, err := resultschema.Parse([]byte(`{"type":"object","required":["price"],"properties":{"price":{"type":"number"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"finish", `{"message":"done","result":{"price":4.5}}`, ""},
		{"finish", `{"message":"done","result":{"price":"4.5"}}`, "$.result.price does not match"},
		{"finish", `{"message":"done","success":true,"result":{}}`, `missing properties: ["price"]`},
		{"finish", `{"message":"done"}`, "$.result must be there"},
		{"finish", `{"message":"sold out","success":false}`, ""},
		{"finish", `{"message":"sold out","success":false,"result":{"seen":3}}`, ""},
		{"fail", `{"reason":"sold out"}`, ""},
	} {
		env := toolstest.New(shop()).Env()
		env.Result = schema
		out, err := do(t, env, c.tool, c.args)
		if c.want == "" {
			if err != nil || !out.Finished {
				t.Errorf("%s %s: %+v, %v", c.tool, c.args, out, err)
			}
			continue
		}
		wantRefusal(t, err, wire.BadArguments, c.want)
		if out.Finished || out.Success || out.Object != nil {
			t.Errorf("%s ends the task: %+v", c.args, out)
		}
	}
}

func TestQuestionsAreAskedOfPeople(t *testing.T) {
	p := toolstest.New(shop())
	out, err := do(t, p.Env(), "ask_human", `{"question":"Which size?","options":["M","L"]}`)
	if err != nil || out.Ask == nil || out.Ask.Text != "Which size?" || !slices.Equal(out.Ask.Options, []string{"M", "L"}) || out.Finished {
		t.Errorf("%+v, %v", out, err)
	}
	wantNothing(t, p, out)
	if out, err := do(t, p.Env(), "ask_human", `{"question":"Code?"}`); err != nil || out.Ask == nil || len(out.Ask.Options) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	six := `"1","2","3","4","5","6"`
	if _, err := do(t, p.Env(), "ask_human", fmt.Sprintf(`{"question":"Which?","options":[%s]}`, six)); err != nil {
		t.Error(err)
	}
	for args, want := range map[string]string{
		`{"question":"  "}`: "$.question must not be empty",
		`{"question":"Which?","options":[` + six + `,"7"]}`:                    "at most 6",
		`{"question":"Which?","options":["M"," M"]}`:                           "$.options[1] must be different",
		`{"question":"Which?","options":["M"," "]}`:                            "$.options[1]",
		`{"question":"Which?","options":[1]}`:                                  "$.options[0] must be a string",
		`{"question":"Which?","options":["` + strings.Repeat("x", 101) + `"]}`: "at most 100",
		`{}`: "$.question is missing",
	} {
		out, err := do(t, p.Env(), "ask_human", args)
		wantRefusal(t, err, wire.BadArguments, want)
		if out.Ask != nil {
			t.Errorf("%s asks", args)
		}
	}
}
