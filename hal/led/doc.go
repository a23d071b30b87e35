// Package led says with one light how a rack is.
//
// A Light holds which conditions are true, and shows the one that comes first in the order of the constants of
// Condition: whoever knows of a condition sets and clears it, and nobody else is asked. Identify and the feedback of
// a held button cover everything for a bounded time and end by themselves. Each condition has a pattern of its own,
// told apart by its rhythm and not by its speed alone; no pattern flashes more than three times in a second
// (WCAG 2.3.1). A light of two colours shows the same rhythms, so that colour is never all that tells.
//
// Run drives the lamps and switches them off when it ends. What happens when the process dies instead depends on the
// lamp, which says it with Ends:
//
//   - A lamp of the kernel's LED class goes off by itself where the kernel has the trigger "transient": the lamp is
//     lit for Grace, and Run lights it again before that is over. The trigger "timer" is not used, because it blinks on
//     after its program is gone, nor "oneshot", which ignores what comes while it blinks.
//   - A lamp on a plain GPIO line, or of a kernel without that trigger, keeps its last level. For such lamps "well" is
//     not steady but dips every three seconds: a light without any change means a dead program on every board.
//
// docs/led.md is the table for the technician.
package led
