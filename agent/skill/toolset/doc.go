// Package toolset says what the skills of a task come down to: which tools its
// planner may call, and what the planner is told of the skills.
//
// [Assemble] resolves the skills as the task's caller sees them at that moment, or
// refuses the task with the reason. A skill that the caller may not see is refused
// in the words for one that does not exist. What was assembled holds for the
// attempt; [Set.Check] is asked before each question to the planner, so that a
// skill that is withdrawn meanwhile ends it.
//
// Texts of skills are written by others. They reach the prompt as JSON strings of
// one line, each with where it is from: no text can end the string it stands in, or
// begin a line.
package toolset
