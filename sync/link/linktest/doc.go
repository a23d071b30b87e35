// Package linktest is the other end of a link: a small MQTT 3.1.1 broker that
// does what a test tells it to, and a cloud that speaks the wire.
//
// [Broker] is as strict as the specification allows: what a lenient broker lets
// pass ends the connection here, and [Broker.Complaints] says why. Its faults are
// those that real brokers and networks show: refusals, silence in either
// direction, acknowledgements for what was thrown away, a closed connection at
// the wrong moment. It needs no network, so that it runs in a synctest bubble;
// [Broker.Serve] puts it behind a listener.
//
// [Cloud] answers hellos and acknowledges what an outbox sends, until a test
// gives it something else to say. It works over any broker that carries its frames.
package linktest
