// Package firmware is the appliance: the place where all parts of a rack meet.
//
// A Rack is made from a configuration and runs until its context ends. Under one supervisor it has a tree for each slot, and for
// each other part a tree of its own, so that whatever fails waits alone (package supervise). The owner of a slot opens the link to the phone that sits there, lets
// package adb shake hands, probes the phone, keeps an eye on it, and begins again when it is lost, later and later while
// that fails. Nothing of it is shared between slots, so that a bad phone delays nobody but itself.
//
// The states of a slot:
//
//	empty ──plugged──▶ connecting ──probed──▶ ready ──silent, link ended──▶ lost ─┐
//	  ▲                 │     │                                                   │
//	  │                 │     └──prompt on the phone──▶ unauthorized ──accepted──▶ …
//	unplugged           └──fails──▶ failed ──after a pause──▶ connecting ◀────────┘
//
// A phone that is connected but whose screen cannot be read (it boots, is in recovery, or is no Android) is limited
// instead of ready: its shell and files work, and it is looked at again.
//
// A task takes its slot's lease, works by means of package runner, and its result is in the database before anybody is
// told. A Rack stops within five seconds, ten while power is being switched: what does not end by then is abandoned, with a line in
// the log.
package firmware
