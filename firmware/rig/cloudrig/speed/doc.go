// Package speed holds the benchmarks of a whole rackcloud: the program as a process, racks that speak MQTT over TLS and
// HTTP with it, and a provider that answers at once. They tell what the planner proxy costs beside a bare round trip
// over the same broker, what a connected rack costs in memory, and what replicas bring.
//
// A bare round trip is a frame of the same size from the rack, by an echo that is connected as rackcloud is, and an
// answer of a decision's size back. Bare ones and those through the proxy take turns, because a machine's speed changes
// while it is measured; only their ratio means something elsewhere.
package speed
