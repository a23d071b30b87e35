// Package adb is the host side of the Android Debug Bridge protocol, spoken
// straight to a phone's adbd without an adb server in between.
//
// # Life of a connection
//
// A [Link] moves whole ADB packets: over a byte stream ([NewStreamLink]) or
// over a pair of USB bulk endpoints ([NewBulkLink]; package usblink supplies
// endpoints through libusb). [Connect] takes the link over, shakes hands and
// authenticates, and returns a [Conn]. The Conn multiplexes any number of
// [Stream]s: one goroutine reads the link, one writes it, and a slow reader of
// one stream never delays another. When the link dies every pending call
// returns at once, [Conn.Done] is closed and [Conn.Err] says why. A Conn does
// not reconnect: its owner makes a new link and connects again.
//
// On top of streams stand [Conn.Shell], [Conn.StartShell] and [Conn.Exec] for
// commands, [Conn.Sync] for files and [Conn.Reverse] for connections that the
// phone makes.
//
// # What blocks, and what ends it
//
// Every call that waits for the phone takes a context or honours a deadline.
// What the caller leaves open is bounded by [Options]: a silent phone during
// the handshake, a service that is neither accepted nor refused, a packet the
// phone does not take, a file transfer that makes no progress. The one wait
// without a bound of its own is the wait for a person to accept the key on the
// phone's display; it lasts until the context of Connect ends.
//
// # What it never does
//
// It never sends STLS (Wi-Fi debugging with TLS is not supported), never opens
// a service that the caller did not ask for, accepts no service request of the
// phone but those that [Conn.Reverse] was called for, and never writes key material or the text of a
// command to a log or into an error.
//
// # Sources
//
// The protocol is described in AOSP, packages/modules/adb: docs/dev/protocol.md,
// docs/dev/delayed_ack.md, docs/dev/zero_length_packet.md, docs/dev/services.md,
// docs/dev/sync.md and the headers adb.h, shell_protocol.h and
// file_sync_protocol.h.
package adb
