package wire

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
)

// SecretBytes is the length of the MAC secret that an enrolment issues.
const SecretBytes = 32

// Keys are the two keys that come from one MAC secret: the rack signs with one
// of them, the cloud with the other, so that no frame can be sent back to its
// sender. They print as their kid alone.
type Keys struct {
	KID string // names the secret; an id of the wire
	k   *pair  // behind a pointer: fmt asks no method of a field that is not exported
}

type pair struct{ up, down []byte }

// DeriveKeys derives both keys by HKDF-SHA256 without salt; the info is
// "phonerack pr1 up" or "phonerack pr1 dn".
func DeriveKeys(kid string, secret []byte) (Keys, error) {
	if !ValidID(kid) {
		return Keys{}, fmt.Errorf("key id %.80q is no id of [a-z0-9-]{1,63}", kid)
	}
	if len(secret) != SecretBytes {
		return Keys{}, fmt.Errorf("MAC secret %s has %d bytes where %d are needed", kid, len(secret), SecretBytes)
	}
	up, err := hkdf.Key(sha256.New, secret, nil, "phonerack pr1 up", sha256.Size)
	if err != nil {
		return Keys{}, err
	}
	down, err := hkdf.Key(sha256.New, secret, nil, "phonerack pr1 dn", sha256.Size)
	if err != nil {
		return Keys{}, err
	}
	return Keys{KID: kid, k: &pair{up, down}}, nil
}

// String, GoString and LogValue keep the keys out of logs.
func (k Keys) String() string { return "keys " + k.KID }

// GoString implements fmt.GoStringer.
func (k Keys) GoString() string { return k.String() }

// LogValue implements slog.LogValuer.
func (k Keys) LogValue() slog.Value { return slog.StringValue(k.KID) }

// mac is HMAC-SHA256 over topic, algorithm and kid, each behind its length as
// four bytes, big endian, and the JSON as it is sent.
func (k Keys) mac(t Topic, alg string, json []byte) ([]byte, error) {
	if k.k == nil {
		return nil, errors.New("there are no keys")
	}
	key := k.k.up
	if t.Direction == Down {
		key = k.k.down
	}
	h := hmac.New(sha256.New, key)
	for _, s := range []string{t.String(), alg, k.KID} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	h.Write(json)
	return h.Sum(nil), nil
}
