// Package tools holds what a planner may do to a phone: each [Tool] has a name,
// a description, a JSON Schema for its arguments, hints about its effect, and
// the code that does it. A [Registry] offers them and executes decisions.
//
// [Registry.Execute] checks a decision again before it acts: known tool, valid
// arguments, an element of the scene that is current. A tool writes to the phone
// at most what its name says, once; it never repeats a write and never looks at
// the screen. Whether an act had an effect is for the caller to see in the next
// scene.
//
// Elements are named as {"element": 3, "generation": 7}: the index within the
// scene of that generation. An index of an older scene is refused.
package tools
