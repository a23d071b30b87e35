// Package bus is how the cloud hears racks and speaks to them: an MQTT broker seen as five calls.
//
// A [Bus] hands each frame that racks publish to one replica of a group ([Bus.Serve]), shows the last known state of
// every rack to who asks ([Bus.Observe]), and carries frames to racks ([Bus.Publish]). Two drivers exist: [OpenNATS] hears
// through queue groups of NATS and speaks through its MQTT listener, for the embedded server and for clusters;
// [OpenShared] uses $share subscriptions on any MQTT broker. docs/bus.md says what each broker guarantees.
//
// The broker is neither trusted nor the record. Frames are opaque bytes here: the caller checks their MACs, answers
// what it has done, and takes a repeated frame as no news. What this package promises is bounded: no call waits for
// ever, no queue grows without end, a handler that is slow delays no ping, and what had to be dropped is counted
// ([Bus.Stats]) and comes again because nobody has answered it.
//
// No subscription made here outlives its connection, so that no broker has a reason to store what racks show.
package bus
