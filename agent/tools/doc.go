// Package tools holds what a planner may do to a phone: each [Tool] has a name,
// a description, a JSON Schema for its arguments, hints about its effect, the
// role and the permission that it needs, and the code that does it. A [Registry]
// offers them and executes decisions. docs/tools.md describes each.
//
// [Registry.Execute] checks a decision again before it acts: known tool, valid
// arguments, the task's permission, an element of the scene that is current. No
// write is ever repeated. Each asks the fence, and a tool of several writes ends
// with the first that is refused. Tools of one write leave it to the caller to
// see its effect; those of several look between them with [Env.Look], and give
// the newest scene back.
//
// Elements are named as {"element": 3, "generation": 7}: the index within the
// scene of that generation. An index of an older scene is refused. Points are
// taken only on a scene without a tree.
//
// What comes from a planner is untrusted, and so is what comes from a phone or a
// file: every argument has a bound, links and paths are parsed strictly, and
// [Outcome.Result] is to be quoted.
package tools
