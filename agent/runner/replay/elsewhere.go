package replay

import (
	"cmp"
	"context"
	"encoding/json"

	"phonerack/agent/runner/record"
	"phonerack/agent/tools"
)

// registry is what decisions are held to: the tools that are given, and those of
// the record that were executed elsewhere. Nothing is called again there: the
// record has what they brought.
func (p *player) registry(given *tools.Registry) *tools.Registry {
	r := cmp.Or(given, tools.Default())
	known := map[string]bool{}
	for _, t := range r.Tools() {
		known[t.Name] = true
	}
	for _, act := range p.acts {
		if act.Kind != record.Turn || known[act.Tool] || act.Tool == "" {
			continue
		}
		known[act.Tool] = true
		r = r.With(tools.Elsewhere(act.Tool, "was executed elsewhere", json.RawMessage(`{"type":"object"}`), p.brought))
	}
	return r
}

// brought is what the act that is taken now has brought.
func (p *player) brought(context.Context, json.RawMessage) (tools.Answer, error) {
	act := p.acts[p.taken]
	answer := tools.Answer{Text: act.Result, Sent: act.Outcome != record.Refused, Unknown: act.Outcome == record.Unknown}
	if act.Refusal != nil {
		return answer, act.Refusal
	}
	return answer, nil
}
