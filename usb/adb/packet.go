package adb

import (
	"encoding/binary"
	"fmt"
)

// HeaderSize is the length in bytes of every packet header on the wire: six
// little-endian uint32 (AOSP adb, docs/dev/protocol.md).
const HeaderSize = 24

// Protocol versions exchanged in CNXN. The lower of both sides' versions holds.
const (
	// VersionMin is the oldest version: every payload carries a checksum.
	VersionMin uint32 = 0x01000000
	// VersionSkipChecksum says that checksums are neither sent nor looked at.
	VersionSkipChecksum uint32 = 0x01000001
)

// Payload limits in bytes.
const (
	// MaxPayloadV1 bounds CNXN and AUTH payloads in both directions, because
	// nothing is negotiated yet when they are sent. It is also the smallest
	// limit a peer may announce.
	MaxPayloadV1 = 4096
	// MaxPayload is the largest limit this package announces or accepts
	// (the one of Android 9 and later).
	MaxPayload = 1 << 20
)

// Command is the first word of a packet header.
type Command uint32

// Commands of the protocol. Their values are the ASCII letters of their names
// read as a little-endian word.
const (
	// CommandConnect opens the conversation (arg0 version, arg1 max payload,
	// payload banner) and, sent again, resynchronises it.
	CommandConnect Command = 0x4e584e43
	// CommandAuth carries a token, a signature or a public key (arg0).
	CommandAuth Command = 0x48545541
	// CommandOpen asks for a service (arg0 sender's stream id, arg1 receive
	// window if delayed_ack is on, payload service name and NUL).
	CommandOpen Command = 0x4e45504f
	// CommandOkay accepts an OPEN or acknowledges a WRTE (arg0 sender's id,
	// arg1 receiver's id, payload acknowledged bytes if delayed_ack is on).
	CommandOkay Command = 0x59414b4f
	// CommandClose ends or refuses a stream (arg0 sender's id or 0, arg1
	// receiver's id).
	CommandClose Command = 0x45534c43
	// CommandWrite carries stream data (arg0 sender's id, arg1 receiver's id).
	CommandWrite Command = 0x45545257
	// CommandStartTLS asks for TLS; only ever seen over TCP.
	CommandStartTLS Command = 0x534c5453
	// CommandSync is obsolete and ignored.
	CommandSync Command = 0x434e5953
)

// String returns the four letters of a known command, or its value in hex.
func (c Command) String() string {
	switch c {
	case CommandConnect, CommandAuth, CommandOpen, CommandOkay, CommandClose, CommandWrite, CommandStartTLS, CommandSync:
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(c))
		return string(b[:])
	}
	return fmt.Sprintf("0x%08x", uint32(c))
}

// Header is a packet header. The order of its fields is the order on the wire.
type Header struct {
	Command Command
	Arg0    uint32
	Arg1    uint32
	Length  uint32 // bytes of payload that follow
	Check   uint32 // sum of the payload's bytes, or 0
	Magic   uint32 // Command with every bit inverted
}

// Append appends the 24 wire bytes of h to b.
func (h Header) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(h.Command))
	b = le.AppendUint32(b, h.Arg0)
	b = le.AppendUint32(b, h.Arg1)
	b = le.AppendUint32(b, h.Length)
	b = le.AppendUint32(b, h.Check)
	return le.AppendUint32(b, h.Magic)
}

// ParseHeader reads a header from exactly 24 bytes and checks its magic and
// that its payload is at most maxPayload bytes. A bad header gives a
// *[PacketError].
func ParseHeader(b []byte, maxPayload int) (Header, error) {
	if len(b) != HeaderSize {
		return Header{}, &PacketError{Field: "size", Got: uint64(len(b)), Want: HeaderSize}
	}
	le := binary.LittleEndian
	h := Header{
		Command: Command(le.Uint32(b)),
		Arg0:    le.Uint32(b[4:]),
		Arg1:    le.Uint32(b[8:]),
		Length:  le.Uint32(b[12:]),
		Check:   le.Uint32(b[16:]),
		Magic:   le.Uint32(b[20:]),
	}
	if want := ^uint32(h.Command); h.Magic != want {
		return Header{}, &PacketError{Command: h.Command, Field: "magic", Got: uint64(h.Magic), Want: uint64(want)}
	}
	if uint64(h.Length) > uint64(max(maxPayload, 0)) {
		return Header{}, &PacketError{Command: h.Command, Field: "length", Got: uint64(h.Length), Want: uint64(max(maxPayload, 0))}
	}
	return h, nil
}

// Packet is one ADB packet.
type Packet struct {
	Command    Command
	Arg0, Arg1 uint32
	// Check is the checksum field of the header, as received or as to be sent;
	// see [Packet.Sum].
	Check   uint32
	Payload []byte
}

// Header returns the header that goes before p's payload.
func (p Packet) Header() Header {
	return Header{
		Command: p.Command, Arg0: p.Arg0, Arg1: p.Arg1,
		Length: uint32(len(p.Payload)), Check: p.Check, Magic: ^uint32(p.Command),
	}
}

// Sum returns the checksum of p's payload: the plain sum of its bytes.
func (p Packet) Sum() uint32 {
	var sum uint32
	for _, b := range p.Payload {
		sum += uint32(b)
	}
	return sum
}

// Verify compares the checksum field with the payload.
func (p Packet) Verify() error {
	if sum := p.Sum(); sum != p.Check {
		return &PacketError{Command: p.Command, Field: "checksum", Got: uint64(p.Check), Want: uint64(sum)}
	}
	return nil
}

// String describes p without its payload, which may hold secrets.
func (p Packet) String() string {
	return fmt.Sprintf("%s(%d, %d, %d bytes)", p.Command, p.Arg0, p.Arg1, len(p.Payload))
}
