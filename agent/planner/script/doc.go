// Package script is a planner made of rules: a YAML file says what to do on
// which screen. It needs no model and no network, decides the same way every
// time, and keeps nothing between two requests: what it knows is what the
// request's user prompt says and which tools it offers. Elements are named by
// what a person sees (text, role) or by their id, never by a place on the
// screen.
//
//	name: shop
//	goals:                                   # regular expressions; the file is used when one matches the goal
//	  - '(?i)put a (?P<item>.+) in the basket'
//	params: [colour]                         # parameters of the task that rules use besides the captures
//	shared: [...]                            # a place for YAML anchors, otherwise ignored; about: is for readers
//	rules:                                   # in order; the first that applies decides
//	  - name: open the shop
//	    when: {not_app: com.example.shop}
//	    do: {launch_app: {package: com.example.shop}}
//	  - name: add the item
//	    when:
//	      exists: {text: {contains: "{item}"}}
//	      not_past: {tool: tap, on: {id: add}, outcome: done}
//	    do: {tap: {element: {role: button, text: [Add to basket, 加入购物车]}}}
//
// A rule applies when all its conditions hold, the tool it calls is offered,
// every {name} in it has a value, and the element that it acts on is on the
// screen.
//
// Conditions of when:
//
//	goal: REGEXP                   the goal matches
//	app, not_app: NAME or list     the package in front
//	activity: NAME or list
//	keyboard: shown or hidden
//	locked, secure: true or false  the lock screen is in front; pictures are black
//	no_tree: unreadable or drawn   the screen has no elements to speak of
//	dialog: TEXT                   a dialog with that title is in front
//	answer, result: TEXT           some answer of a person, some result of a tool
//	exists, missing: SELECTOR or list      all are on the screen; none is
//	step: N                        the step is N or later
//	last, not_last: CALL           the last past line
//	past, not_past: CALL or list   some past line for each; none
//
// A SELECTOR has any of role, id (the whole id or what follows its slash), text,
// desc, hint, label (text, desc or hint), states and without (lists of state
// words), after (only elements below the first match of that selector) and nth
// (1 is the first, -1 the last). A CALL has any of tool, args (a TEXT on the
// arguments as JSON), on (a SELECTOR without after and nth), outcome, code,
// changed (a boolean), text (verified, unverified, failed), line (a TEXT on the
// whole line), within (only the last N past lines) and times (at least N lines).
// A TEXT is a string or a list of alternatives, compared whole, or {is: ...},
// {contains: ...}, {matches: REGEXP}. Letter case, runs of white space and
// direction marks do not count.
//
// In do, element with a selector becomes the arguments element and generation;
// {name} in strings is replaced by the value of a capture or parameter, and
// {answer} by the newest answer of a person.
package script
