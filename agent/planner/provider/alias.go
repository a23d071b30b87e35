package provider

import "phonerack/agent/planner"

// What the cloud's proxy needs of the planner's interface, under names of this
// package: of the planners it imports only this one and script.
type (
	Request  = planner.Request
	Tool     = planner.Tool
	Decision = planner.Decision
)

// Validate is planner.Validate, for decisions that come from elsewhere than a Client.
func Validate(d Decision, offered []Tool) error { return planner.Validate(d, offered) }
