package script

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"phonerack/agent/planner"
	"phonerack/sync/wire"
)

// Decide returns the call of the first rule that applies. If none does, or the
// prompt is not one, it fails with a *wire.Refusal of the code NoToolCall; it
// is retryable if another screen could make a rule apply.
func (r *Rules) Decide(ctx context.Context, req planner.Request) (planner.Decision, error) {
	if err := ctx.Err(); err != nil {
		return planner.Decision{}, err
	}
	p, err := parsePrompt(req.UserPrompt)
	if err != nil {
		return planner.Decision{}, noRule(false, err.Error())
	}
	var tried []string
	for _, s := range r.scripts {
		for _, goal := range s.goals {
			m := goal.FindStringSubmatch(p.goal)
			if m == nil {
				continue
			}
			sc := &scope{prompt: &p, values: map[string]string{}}
			if n := len(p.answers); n > 0 {
				sc.values[answerName] = p.answers[n-1]
			}
			maps.Copy(sc.values, p.params)
			for i, name := range goal.SubexpNames() {
				if name != "" && m[i] != "" {
					sc.values[name] = strings.TrimSpace(m[i])
				}
			}
			if d, ok := s.decide(sc, req.Tools); ok {
				return d, nil
			}
			tried = append(tried, s.name)
			break
		}
	}
	if tried == nil {
		return planner.Decision{}, noRule(false, "there are no rules for this goal")
	}
	return planner.Decision{}, noRule(true, fmt.Sprintf("no rule of %s applies to screen %d of app %s",
		strings.Join(tried, " or "), p.screen.gen, p.screen.app))
}

// answerName is the value that the newest answer of a person has in rules.
const answerName = "answer"

func noRule(retryable bool, detail string) error {
	refusal := wire.Refuse(wire.NoToolCall, map[string]any{"detail": detail})
	refusal.Retryable = retryable
	return refusal
}

func (s *script) decide(sc *scope, tools []planner.Tool) (planner.Decision, bool) {
	for _, r := range s.rules {
		if !slices.ContainsFunc(tools, func(t planner.Tool) bool { return t.Name == r.tool }) || !r.when.hold(sc) {
			continue
		}
		args, err := r.args.fill(sc)
		if err != nil {
			continue
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(args); err != nil {
			continue
		}
		return planner.Decision{Tool: r.tool, Arguments: bytes.TrimSpace(b.Bytes())}, true
	}
	return planner.Decision{}, false
}
