// Package embedded runs the broker of a small installation inside rackcloud: a nats-server with an MQTT listener, whose
// clients are the racks that an authenticator knows.
//
// A rack may publish below its own up/ and subscribe to its own dn/+, and nothing else. Its client id is its rack id, or
// it is refused. The cloud itself has a user with a random password that lives as long as the process.
package embedded
