// Package runner works on a task with one phone: observe, ask the planner for
// one decision, check it, carry it out, wait until the screen rests, and again,
// until the planner finishes or a bound ends it.
//
// A [Runner] is put together once for a phone; [Runner.Run] is one attempt. It
// returns when the planner calls finish, the budget of steps or the deadline is
// spent, the lease's fence refuses, the phone is gone, the same act on the same
// screen repeats, too many turns fail, or ctx ends. It starts no work that
// outlives it.
//
// What it never does: act without a decision of this turn (a planner's failure
// is a failed turn, with nothing put in the decision's place), repeat a write
// (only looking is repeated), or act on a scene that a failed observation has
// put out of date.
//
// With a folder for the trajectory, every turn is written down: steps.jsonl, one
// [Step] a line; NNN.jpg, the screen that was decided on with the touch marked;
// and index.html, which shows both without a network and without JavaScript.
package runner
