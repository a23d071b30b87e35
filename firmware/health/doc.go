// Package health decides how the phones and the controller of a rack are, and what to do about it. It does no I/O of
// its own: others tell what they saw, carry out its orders and keep its records.
//
// The life of a Keeper: New takes the places of the rack and what was remembered. Each slot's owner looks at its phone
// when Due says so and hands the Look over; Classify makes one Diagnosis of it, and the Keeper a Status: one State out
// of always the same set, the diagnosis with an explanation and a suggested action, in English and Chinese. A look
// that timed out shows that something did not answer and nothing else: "unknown" is a diagnosis too, and a phone that
// hangs is never called one without USB debugging.
//
// A phone that stays ill is helped by a ladder (Rung): the mildest act that may help first, each with a time to settle,
// then a longer pause; acts of power are few a day; at the end stands a quarantine that ends by itself. Orders gives
// out what is to be done now. An Order is one act on one slot; whoever carries it out takes recovery's lease first and
// reports with Done. What holds always:
//
//   - A slot that is leased, in maintenance, switched off by a person or well gets no order of the ladder.
//   - One order at a time for a hub. Its power is cycled only while two of its slots or more are lost and nobody has
//     one, has hands in one or has switched one off.
//   - No more acts of a kind in 24 hours than the configuration allows, over restarts and kill -9 too: an order that
//     takes power, reboots or resets is on disk before it is given out, and an entry that cannot be dated counts as new.
//   - A port that the rack has switched off for its phone's sake stays so over restarts, and no longer than it was to.
//   - What one phone does changes nothing for the others.
//
// Battery care and the checks of the controller are in the same package: see Keeper.Battery and Checks. docs/health.md has the
// states, the ladder, the rules and every threshold.
package health
