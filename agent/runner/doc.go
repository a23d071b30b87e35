// Package runner works on a task with one phone: observe, ask the planner for
// one decision, check it, carry it out, wait until the screen rests, and again,
// until the planner finishes or a bound ends it.
//
// A [Runner] is put together once for a phone; [Runner.Run] is one attempt. It
// returns when the planner calls finish, a budget (steps, tokens, time, failed
// turns) is spent, the lease's fence refuses, the phone is gone, acts go round in
// circles or change nothing any more, nobody answers a question, the planner
// stays out of reach, or ctx ends. It starts no work that outlives it.
//
// While a person is asked, or the planner is out of reach, the attempt stands
// still ([Waiting], [Paused]): it keeps its lease, sends nothing, and looks at
// the screen again before it goes on.
//
// What it never does: act without a decision of this turn (a planner's failure
// is a failed turn, with nothing put in the decision's place), repeat a write
// that may have happened, or act on a scene that a later look has put out of
// date. What it repeats, once and within the same deadline, is looking, and acts
// that do the same a second time (see again). Popups that get in the way are
// closed by watchers (package popup), in steps of their own.
//
// With a folder for the trajectory, every step is written down (package record).
package runner
