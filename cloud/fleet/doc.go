// Package fleet is what the cloud does for racks and with them: sessions, tasks under leases, questions, commands, events.
//
// A [Fleet] stands between a transport and the store and knows neither frames nor HTTP. Its methods come in two groups:
// what a rack asks takes an [enroll.Caller], who has proved himself, and what a person or a program asks takes an
// [Operator]. Both speak the wire's types. Every answer follows its transaction: what was answered is committed.
//
// What a rack should hear at once (an order, an answer, a wish to stop) is pushed through a [Pusher] after the commit. A
// push is a hint and may be lost: the rack's next heartbeat or its next question for commands brings the same. A configuration is kept by the broker, and comes again with each hello.
//
// Pictures of phones never reach the database. The picture of a screenshot command waits in memory, for a bounded time,
// for the one who asked; see [Pictures].
package fleet
