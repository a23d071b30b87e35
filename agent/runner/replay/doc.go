// Package replay takes a recorded attempt again: the decisions of the record in
// their order, on any phone, with the same loop that recorded them. At each step
// it compares what the phone shows and what the step comes to with the record,
// and at the end how the attempt ended.
//
// The first difference ends it with a refusal, wire.ReplayDiffers, that names the
// step of the record and what differs. What no record can promise is left out:
// generations, times, clocks and the pictures. Turns in which the planner failed
// did nothing and are passed over.
//
//	rec, err := replay.Load(dir)
//	report, err := replay.Run(ctx, rec, replay.Phone{Source: p, Controls: p.Under(lease)}, replay.Options{})
//
// Record.Task says which phone it takes: Android version, size, language, apps.
package replay
