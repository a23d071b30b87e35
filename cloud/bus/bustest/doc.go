// Package bustest holds what every broker under a bus has to keep: one suite of tests ([Contract]) and the brokers to run
// it on: the embedded server, a cluster of three NATS servers, mosquitto. Tests of other packages start the same
// brokers, and their racks are [Rack].
package bustest
