// Package link keeps a rack in touch with its cloud over MQTT.
//
// A [Link] is made once and runs until its context ends. While it runs there is
// at most one session at a time: connect, subscribe, announce, say hello with a
// fresh nonce, and take the welcome that answers it. Only then is the rack
// online. A session ends with the connection, with a cloud that answers nothing
// any more, or with the context; then everything that waits for an answer gets
// [ErrOffline], and after a random pause the next session begins with a new MQTT
// client.
//
// Three ways lead up: [Link.Request] and [Link.Open] ask and wait for answers,
// [Outbox.Put] commits what must arrive and sends it until the cloud's own
// acknowledgement is here, [Link.Telemetry] may be lost. Two lead down: answers
// to a request, and handlers for what the cloud says by itself ([Link.Handle]).
//
// The broker is trusted with nothing. What it acknowledges proves nothing, what
// it delivers is proved by MAC, nonce and expiry or refused, counted and not
// answered. The package stores numbers and the outbox in the bucket it is given,
// and no time, key or password anywhere else.
//
// docs/link.md has the life of a session, docs/wire.md the bytes.
package link
