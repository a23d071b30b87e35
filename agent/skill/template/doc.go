// Package template makes tool calls of a flow template and its parameters.
//
// [Parse] takes the steps apart once. [Template.Check] holds them to the tools
// that are registered, as far as that goes without values: at sync, again when a
// skill is got, and after the set of tools changed. [Template.Resolve] puts values
// in, in a single pass: a value is never looked at again, so that it becomes
// neither a placeholder nor a step. A placeholder that is a whole value keeps
// its parameter's type; values only, never keys, have placeholders. The calls
// that come out are checked against the tools' schemas and executed by nobody
// here: the planner issues each of them itself and looks in between (spec 000,
// decision D5). What a text means to a shell is the phone driver's business.
package template
