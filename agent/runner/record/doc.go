// Package record is what is written down of an attempt, and how it is read
// again. A trajectory is a folder:
//
//	task.json     a [Task]: what was to be done, on which phone, and how it ended
//	steps.jsonl   one [Step] a line, written as the steps happen
//	NNN.jpg       the screen that step NNN was decided on, as the phone sent it
//	index.html    all of it on one page, without a network and without JavaScript
//
// A [Writer] writes one, [Read] reads one. What is written is bounded: when the
// room for pictures or for scenes is used up, later steps go without and say so;
// nothing that was written is taken away again.
//
// Secrets stay out: a [Mask] puts a parameter's name in the place of its value
// wherever that value stands in a step, and what a password field holds is never
// written. Pictures show what the screen showed.
package record
