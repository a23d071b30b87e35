package phonesim

import "encoding/binary"

// command is the first word of an ADB message.
type command uint32

// The commands of the ADB protocol.
const (
	cmdSYNC command = 0x434e5953 // obsolete
	cmdCNXN command = 0x4e584e43
	cmdAUTH command = 0x48545541
	cmdOPEN command = 0x4e45504f
	cmdOKAY command = 0x59414b4f
	cmdCLSE command = 0x45534c43
	cmdWRTE command = 0x45545257
	cmdSTLS command = 0x534c5453 // TLS, on Wi-Fi only
)

func (c command) known() bool {
	switch c {
	case cmdSYNC, cmdCNXN, cmdAUTH, cmdOPEN, cmdOKAY, cmdCLSE, cmdWRTE, cmdSTLS:
		return true
	}
	return false
}

// String is the command's four letters if it is a known one, else "????".
func (c command) String() string {
	if !c.known() {
		return "????"
	}
	return string(binary.LittleEndian.AppendUint32(nil, uint32(c)))
}

// The first argument of AUTH.
const (
	authToken     = 1
	authSignature = 2
	authPublicKey = 3
)

const (
	headerSize = 24

	// Protocol versions: with the first, every payload carries its sum; with the second, none after CNXN.
	versionSums   = 0x01000000
	versionNoSums = 0x01000001

	// handshakePayload bounds CNXN and AUTH: nothing has been negotiated when they are sent.
	handshakePayload = 4096
)

// header is the fixed part of a message. On the wire: six little-endian words in this order.
type header struct {
	command command
	arg0    uint32
	arg1    uint32
	length  uint32 // of the payload, in bytes
	sum     uint32 // of the payload's bytes, or 0 where the version does without
	magic   uint32 // the command, inverted
}

func parseHeader(b []byte) header {
	le := binary.LittleEndian
	return header{
		command: command(le.Uint32(b)), arg0: le.Uint32(b[4:]), arg1: le.Uint32(b[8:]),
		length: le.Uint32(b[12:]), sum: le.Uint32(b[16:]), magic: le.Uint32(b[20:]),
	}
}

func (h header) bytes() []byte {
	b := make([]byte, 0, headerSize)
	for _, word := range []uint32{uint32(h.command), h.arg0, h.arg1, h.length, h.sum, h.magic} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return b
}

// check is what a daemon looks at before it reads the payload, at most limit bytes.
func (h header) check(limit int) error {
	if h.magic != ^uint32(h.command) {
		return violationf(RuleMagic, "command %08x with magic %08x", uint32(h.command), h.magic)
	}
	if h.command == cmdCNXN || h.command == cmdAUTH {
		limit = min(limit, handshakePayload)
	}
	if uint64(h.length) > uint64(limit) {
		return violationf(RuleLength, "%s with %d bytes, the limit is %d", h.command, h.length, limit)
	}
	return nil
}

// message is one ADB message.
type message struct {
	header
	payload []byte
}

// newMessage builds a message; withSum adds the payload's sum.
func newMessage(c command, arg0, arg1 uint32, payload []byte, withSum bool) message {
	m := message{
		header:  header{command: c, arg0: arg0, arg1: arg1, length: uint32(len(payload)), magic: ^uint32(c)},
		payload: payload,
	}
	if withSum {
		m.sum = sum(payload)
	}
	return m
}

// sum is what the protocol calls a checksum: the bytes added up.
func sum(b []byte) uint32 {
	var s uint32
	for _, c := range b {
		s += uint32(c)
	}
	return s
}
