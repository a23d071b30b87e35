package link

import "phonerack/sync/wire"

// DecodeEntry reads an entry for the fuzzer.
func DecodeEntry(raw []byte) { _, _ = decodeEntry(raw) }

// EncodeEntry writes a proper entry with an attachment.
func EncodeEntry(id string, data []byte) []byte {
	m := wire.Message{}
	m.Attach("screen", "image/jpeg", data)
	raw, err := stored{ID: id, Type: wire.TypeResult, Body: []byte(`{}`), Attachments: m.Attachments}.encode()
	if err != nil {
		panic(err)
	}
	return raw
}

// Follow feeds pieces of a stream to the guard.
func Follow(pieces ...[]byte) error {
	var g packetGuard
	for _, p := range pieces {
		if err := g.follow(p); err != nil {
			return err
		}
	}
	return nil
}

// AnotherProcess makes this one forget with what it has sealed attachments.
func AnotherProcess() { ownKey = newAttachmentKey() }
