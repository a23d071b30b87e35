package tools

import (
	"context"
	"encoding/json"
	"slices"
)

// Control are the tools that a task always has, whatever its skills bound it to:
// they end it or ask its people, and touch no phone.
func Control() []string { return []string{askHuman.Name, finish.Name, fail.Name} }

// Answer is what a tool of elsewhere has brought.
type Answer struct {
	Text    string // untrusted
	Sent    bool   // the call went out: something may have been done with it
	Unknown bool   // nobody knows what became of it
}

// Call executes a tool elsewhere. The answer counts also with an error, which is a
// *wire.Refusal unless ctx ended. It has to end soon after ctx.
type Call func(ctx context.Context, args json.RawMessage) (Answer, error)

// Elsewhere describes a tool that is neither the rack's nor the phone's, such as
// one of an MCP server. What it does is not known here, so it counts as a write,
// and is never repeated.
func Elsewhere(name, description string, schema json.RawMessage, call Call) Tool {
	return Tool{
		Name: name, Description: description, Schema: schema,
		Annotations: Annotations{Destructive: true, OpenWorld: true}, Role: Operator,
		run: func(ctx context.Context, _ Env, args json.RawMessage, out *Outcome) error {
			answer, err := call(ctx, args)
			out.Wrote, out.Unknown = answer.Sent, answer.Unknown
			if answer.Text != "" {
				out.result(answer.Text, "ask for less at once")
			}
			return err
		},
	}
}

// With returns a registry that has more tools, after the ones that it has. Their
// names have to be new.
func (r *Registry) With(more ...Tool) *Registry { return newRegistry(slices.Concat(r.tools, more)...) }

// Described returns a registry whose tools are described to planners in other
// words, by name.
func (r *Registry) Described(words map[string]string) *Registry {
	all := slices.Clone(r.tools)
	for i := range all {
		if text := words[all[i].Name]; text != "" {
			all[i].Description = text
		}
	}
	return newRegistry(all...)
}
