package link

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
)

// attachmentKey seals attachments in the outbox. It is nowhere but in the memory of this process: what a screen has
// shown is not to be read from a card, neither from the database nor from what was deleted in it. An entry that outlives
// the process goes without its attachments.
type attachmentKey struct {
	name string // tells it from those of other processes
	aead cipher.AEAD
}

var ownKey = newAttachmentKey()

func newAttachmentKey() attachmentKey {
	var key [32]byte
	var name [8]byte
	rand.Read(key[:])
	rand.Read(name[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the block that GCM wants
	}
	return attachmentKey{hex.EncodeToString(name[:]), aead}
}

func (k attachmentKey) seal(b []byte) []byte { return k.aead.Seal(nil, nil, b, nil) }

// open gives nothing for what another process has sealed.
func (k attachmentKey) open(name string, b []byte) (data []byte, ok bool) {
	if name != k.name {
		return nil, false
	}
	data, err := k.aead.Open(nil, nil, b, nil)
	return data, err == nil
}
