// Package planner defines how a task's next step is decided: one [Request] a
// turn, answered by exactly one [Decision] or by a failure.
//
// A failure is a *wire.Refusal with one of the planner codes (or any other
// error, which counts the same). It is a failed turn: whoever asked never puts
// a default, a guess or an earlier decision in its place. [Validate] holds a
// decision to the tools that were offered before anything is done with it.
//
// # The user prompt
//
// The user prompt is lines. Everything that comes from a person or from a
// phone stands in JSON strings, so that no text can forge a line:
//
//	goal: "search the shop for a kettle and put it in the basket"
//	param colour: "red"
//	wanted: "{\"type\":\"object\",\"required\":[\"price\"]}"
//	step 3 of 30
//	past 1: launch_app {"package":"com.phonerack.shop"} -> done; screen changed: +9 -4 ~0
//	past 2: tap {"element":1,"generation":4} on button "Search" id="com.phonerack.shop:id/go" -> done; no change
//	past 3: ask_human {"text":"Which colour?"} -> done; not seen
//	result 1: "com.phonerack.shop Shop\ncom.phonerack.messenger Messenger"
//	answer 3: "red"
//	note: "tap was called 3 times with these arguments on this same screen; do something else"
//	screen 7: app com.phonerack.shop activity .MainActivity size 1080x2400 keyboard hidden
//	[0] edit "" hint="Search" id="com.phonerack.shop:id/search" clickable focused
//
// A past line is "past N: CALL -> OUTCOME; EFFECT". CALL is a tool, its
// arguments and, when it touched an element, "on" and that element without its
// index and states; or "no decision". OUTCOME is "done", or one of "refused",
// "failed" and "unknown" followed by a refusal's code and its sentence. EFFECT
// is "screen changed: +added -removed ~changed", "picture changed", "no change"
// or "not seen"; after it may follow "; text verified", "; text unverified" or
// "; text failed" and "; still moving". The call "popup" is no tool: a watcher
// closed something that was in the way. A result line is what the tool of step N
// read, an answer line what a person said to the question of step N. The
// wanted line is the JSON schema that the task's result has to match. Params, it,
// past lines, results, answers and notes may be absent.
//
// The screen line may go on with "locked", "picture 720x1600" (the size in which
// points are given), "no-tree unreadable" or "no-tree drawn", "secure" and
// "dialog" with a title. Readers pass over words and lines that they do not know.
package planner
