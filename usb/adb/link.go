package adb

import "context"

// Link moves whole ADB packets between host and phone. One goroutine may read
// while others write; packets of concurrent writers are never interleaved.
//
// A Link belongs to the Conn made from it and is closed by it.
type Link interface {
	// ReadPacket returns the next packet. The payload belongs to the caller.
	// It blocks until a packet has come, the link fails or is closed, or ctx
	// ends. Where the transport allows it, a read that ctx ended loses nothing:
	// the next call continues it; otherwise the link is dead afterwards.
	ReadPacket(ctx context.Context, want Expect) (Packet, error)
	// WritePacket writes header and payload of one packet. It blocks until the
	// transport has taken them, the link fails or is closed, or ctx ends. If it
	// fails after the first byte went out, the link is dead: where in a packet
	// the phone stands is unknown then.
	WritePacket(ctx context.Context, p Packet) error
	// Properties returns what Connect needs to know; it does not block.
	Properties() LinkProperties
	// Close ends pending reads and writes and releases the transport. It
	// blocks for a bounded time only. Closing twice is harmless.
	Close() error
}

// Expect tells a link what may come next.
type Expect struct {
	// MaxPayload is the largest acceptable payload in bytes. A longer one is a
	// *PacketError and the link is out of step.
	MaxPayload int
	// Handshake is set until the phone's CNXN has come. Only CNXN, AUTH and
	// STLS are returned; a link that may hold frames of an earlier connection
	// discards everything else, malformed frames included.
	Handshake bool
}

// LinkProperties describe a link.
type LinkProperties struct {
	// MaxPayload is the largest payload in bytes that the link wants to carry.
	MaxPayload int
	// Stale is set if frames of an earlier connection may still come, as from
	// the IN endpoint of a phone whose last host crashed.
	Stale bool
}

// handshakeCommand reports whether a packet may appear before CNXN.
func handshakeCommand(c Command) bool {
	return c == CommandConnect || c == CommandAuth || c == CommandStartTLS
}
