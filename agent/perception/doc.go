// Package perception makes a Scene of what a phone shows: the elements that a
// person could see or touch, each on one line, with what is in front.
//
// An [Observer] observes one phone. Each observation has a generation number,
// and the elements of a [Scene] are numbered from 0 within it: an index means
// nothing in another generation. As soon as the next observation starts,
// [Scene.Find] refuses the old one, and goes on refusing if that observation
// fails; nothing is ever acted on that may be gone.
//
// A scene may be partial. What could not be read is named in [Scene.Missing];
// it is not filled with older or guessed values.
//
// From dump to scene there are three steps: the parser (dump.go, attr.go) makes a
// flat tree whose strings lie in the dump; condensing (window.go, condense.go,
// cover.go, role.go) marks what a person would not see or would not tell apart;
// element.go copies the strings of what is left. docs/perception.md has the rules
// of condensing, each with its reason.
//
// The text on a screen is untrusted. The parser bounds it, never recurses and
// gives an error that says where a dump is broken; [Scene.Prompt] quotes it so
// that it cannot forge a line.
package perception
