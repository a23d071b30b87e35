package tools_test

import (
	"testing"

	"phonerack/agent/perception"
	"phonerack/agent/tools"
)

func TestTypedTextIsVerifiedOnlyWhenItArrived(t *testing.T) {
	for name, c := range map[string]struct {
		before, typed, after string
		password             bool
		want                 string
	}{
		"arrived":                      {"", "kettle", "kettle", false, tools.TextVerified},
		"arrived behind a draft":       {"red ", "kettle", "red kettle", false, tools.TextVerified},
		"the first letter is lost":     {"", "kettle", "ettle", false, tools.TextFailed},
		"two letters are swapped":      {"", "kettle", "ektlte", false, tools.TextFailed},
		"nothing arrived":              {"", "kettle", "", false, tools.TextFailed},
		"it was there before":          {"kettle", "kettle", "kettle", false, tools.TextUnverified},
		"password of the right length": {"", "hunter2", "•••••••", true, tools.TextUnverified},
		"password that lost a letter":  {"", "hunter2", "••••••", true, tools.TextFailed},
	} {
		t.Run(name, func(t *testing.T) {
			field := perception.Element{ID: "app:id/field", Class: "android.widget.EditText", Editable: true, Password: c.password}
			was, is := field, field
			was.Text, is.Text = c.before, c.after
			got := tools.Typed{Field: was, Text: c.typed}.Verdict(&perception.Scene{Elements: []perception.Element{is}})
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	gone := tools.Typed{Field: perception.Element{ID: "app:id/field"}, Text: "x"}
	if got := gone.Verdict(&perception.Scene{}); got != tools.TextUnverified {
		t.Errorf("without the field: %s", got)
	}
}
