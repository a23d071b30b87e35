// Package fleet is a rack's half of tasks and commands.
//
// A [Fleet] claims a task for each idle slot, has fetched what it needs, holds the
// lease while the attempt runs, tells the cloud every 15 s what the rack does and
// ends what the cloud does not list, passes questions and answers on, and takes commands in their
// order. It never touches a phone: a [Runner] does, and is told until when it may
// write. What must survive is committed before anything follows from it: a claim
// before it is sent, an attempt before it starts, that something may have been
// written before it is, a command before it is acted on, and a result together
// with the end of the record that asked for it.
//
// Two clocks are at work. Leases run on the boot clock, from the sending of the
// request that won them; the expiry of commands runs on the cloud's time.
//
// docs/fleet.md tells the lives of a claim, an attempt and a command, and what a
// restart does to each.
package fleet
