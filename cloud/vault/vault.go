package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// ErrUndecryptable: the value's KEK is missing or another one, or the value was altered or belongs to another binding.
// Which of these it was is in the error's text where it can be told.
var ErrUndecryptable = errors.New("value cannot be decrypted")

// MaxSecret is the largest secret that is sealed, in bytes.
const MaxSecret = 16 << 10

const (
	magic     = "prv1"
	keySize   = 32
	nonceSize = 12
	tagSize   = 16
	wrapped   = nonceSize + keySize + tagSize // a sealed data key
)

// Binding is what a sealed value belongs to. It is not stored with the value; Open needs the same one.
type Binding struct {
	Purpose string   // "profile", "identity"
	Owner   []string // tenant and ids of the row
	Version int      // key version, number of the set
}

// Vault seals and opens. It is safe for concurrent use and never changes.
type Vault struct {
	keys    map[string]cipher.AEAD // by id
	writing string
}

func newVault(keys []key) (*Vault, error) {
	v := &Vault{keys: map[string]cipher.AEAD{}}
	for _, k := range keys {
		aead, err := gcm(k.secret)
		if err != nil {
			return nil, err
		}
		v.keys[k.id], v.writing = aead, k.id
	}
	return v, nil
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Writing is the id of the KEK that seals.
func (v *Vault) Writing() string { return v.writing }

// Seal seals a secret for a binding.
func (v *Vault) Seal(b Binding, secret Secret) ([]byte, error) {
	plain := secret.Reveal()
	if len(plain) > MaxSecret {
		return nil, fmt.Errorf("secret has %d bytes, at most %d can be sealed", len(plain), MaxSecret)
	}
	dataKey := make([]byte, keySize)
	_, _ = rand.Read(dataKey) // never fails
	data, err := gcm(dataKey)
	if err != nil {
		return nil, err
	}
	out := append([]byte(magic), byte(len(v.writing)))
	out = append(out, v.writing...)
	out = seal(v.keys[v.writing], out, dataKey, b.data("data-key", v.writing))
	return seal(data, out, plain, b.data("value", v.writing)), nil
}

// seal appends a nonce and what it sealed under it.
func seal(a cipher.AEAD, out, plain, data []byte) []byte {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce)
	out = append(out, nonce...)
	return a.Seal(out, nonce, plain, data)
}

func open(a cipher.AEAD, sealed, data []byte) ([]byte, error) {
	return a.Open(nil, sealed[:nonceSize], sealed[nonceSize:], data)
}

// data is the additional data of one of the two parts.
func (b Binding) data(part, kek string) []byte {
	fields := append([]string{part, kek, b.Purpose}, b.Owner...)
	fields = append(fields, strconv.Itoa(b.Version))
	var out []byte
	for _, f := range fields {
		out = binary.BigEndian.AppendUint64(out, uint64(len(f)))
		out = append(out, f...)
	}
	return out
}

// Open opens a sealed value.
func (v *Vault) Open(b Binding, sealed []byte) (Secret, error) {
	id, rest, ok := split(sealed)
	if !ok {
		return Secret{}, fmt.Errorf("%w: it is not in the vault's form", ErrUndecryptable)
	}
	kek, ok := v.keys[id]
	if !ok {
		return Secret{}, fmt.Errorf("%w: its key %q is not in the key file", ErrUndecryptable, id)
	}
	dataKey, err := open(kek, rest[:wrapped], b.data("data-key", id))
	if err != nil {
		return Secret{}, fmt.Errorf("%w: key %q of the key file is another one, or the value is not this %s's", ErrUndecryptable, id, b.Purpose)
	}
	data, err := gcm(dataKey)
	if err != nil {
		return Secret{}, err
	}
	plain, err := open(data, rest[wrapped:], b.data("value", id))
	if err != nil {
		return Secret{}, fmt.Errorf("%w: it was altered", ErrUndecryptable)
	}
	return NewSecret(plain), nil
}

// split gives the id of the KEK and the two sealed parts, which are long enough.
func split(sealed []byte) (id string, rest []byte, ok bool) {
	if len(sealed) < len(magic)+1 || string(sealed[:len(magic)]) != magic {
		return "", nil, false
	}
	n := int(sealed[len(magic)])
	rest = sealed[len(magic)+1:]
	if n == 0 || n > maxID || len(rest) < n+wrapped+nonceSize+tagSize {
		return "", nil, false
	}
	id, rest = string(rest[:n]), rest[n:]
	return id, rest, idOK(id)
}

// Reseal seals a value anew under the writing KEK.
func (v *Vault) Reseal(b Binding, sealed []byte) ([]byte, error) {
	secret, err := v.Open(b, sealed)
	if err != nil {
		return nil, err
	}
	return v.Seal(b, secret)
}

// KeyID tells which KEK a value is sealed under; "" if it is no sealed value.
func KeyID(sealed []byte) string {
	id, _, ok := split(sealed)
	if !ok {
		return ""
	}
	return id
}
