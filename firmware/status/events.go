package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"phonerack/firmware/health"
)

// eventView is an event in words.
type eventView struct {
	Age, What, Detail string
	Slot              int
}

func (v *view) events(all []Event) []eventView {
	var out []eventView
	for _, e := range all {
		out = append(out, eventView{Age: v.Span(e.Age), What: v.W("event", e.Kind), Detail: cut(v.detail(e.Detail), maxTextBytes), Slot: e.Slot})
	}
	return out
}

// detail says what an event tells besides its kind. What this version does not know is shown by its name.
func (v *view) detail(raw json.RawMessage) string {
	var told map[string]any
	if json.Unmarshal(raw, &told) != nil {
		return string(raw)
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if text := v.fact(name, told[name]); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, v.T("list.comma"))
}

// fact is one thing that an event tells; "" where the kind says it already.
func (v *view) fact(name string, value any) string {
	text := fmt.Sprint(value)
	switch name {
	case "reason", "model", "part", "title", "why":
		return text
	case "android":
		return "Android " + text
	case "outcome":
		return v.W("outcome", value)
	case "diagnosis":
		if text == string(health.Fine) {
			return ""
		}
		return v.say(health.Finding{Code: text}).Title
	case "findings":
		var titles []string
		codes, _ := value.([]any)
		for _, code := range codes {
			titles = append(titles, v.say(health.Finding{Code: fmt.Sprint(code)}).Title)
		}
		return strings.Join(titles, v.T("list.comma"))
	case "ms":
		if ms, ok := value.(float64); ok {
			return (time.Duration(ms) * time.Millisecond).String()
		}
	}
	return name + " " + text
}
