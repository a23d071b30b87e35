package phonesim

import (
	"bytes"
	"crypto"
	"crypto/md5"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

const (
	tokenSize = 20 // bytes, the size of a SHA-1 digest, as which it is signed
	keyBytes  = 256
	keyWords  = keyBytes / 4
	keyStruct = 4 + 4 + keyBytes + keyBytes + 4
)

// publicKey is a host's RSA key.
type publicKey struct {
	rsa rsa.PublicKey
	raw []byte // Android's encoding
}

// parsePublicKey reads a line like those of adbkey.pub: base64 of Android's encoding, a space, a comment.
//
// The encoding is the little-endian words: length of the modulus in words; -1/n[0] mod 2^32; the modulus;
// (2^2048)^2 mod n; the exponent.
func parsePublicKey(line string) (*publicKey, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	le := binary.LittleEndian
	if len(raw) != keyStruct || le.Uint32(raw) != keyWords {
		return nil, fmt.Errorf("public key: %d bytes are not the encoding of a 2048-bit key", len(raw))
	}
	modulus, rr := littleInt(raw[8:8+keyBytes]), littleInt(raw[8+keyBytes:8+2*keyBytes])
	if modulus.BitLen() != 8*keyBytes || modulus.Bit(0) == 0 {
		return nil, errors.New("public key: the modulus is not an odd number of 2048 bits")
	}
	if n0 := le.Uint32(raw[8:]); n0*le.Uint32(raw[4:]) != ^uint32(0) {
		return nil, errors.New("public key: the inverse of the modulus is wrong")
	}
	want := new(big.Int).Lsh(big.NewInt(1), 2*8*keyBytes)
	if want.Mod(want, modulus).Cmp(rr) != 0 {
		return nil, errors.New("public key: the square of the radix is wrong")
	}
	exponent := le.Uint32(raw[keyStruct-4:])
	if exponent != 3 && exponent != 65537 {
		return nil, fmt.Errorf("public key: exponent %d", exponent)
	}
	return &publicKey{rsa: rsa.PublicKey{N: modulus, E: int(exponent)}, raw: raw}, nil
}

func littleInt(b []byte) *big.Int {
	bigEndian := slices.Clone(b)
	slices.Reverse(bigEndian)
	return new(big.Int).SetBytes(bigEndian)
}

// parseOfferedKey reads the payload of AUTH with a public key, more strictly than a file: a phone stores
// these bytes as they are and would never find a broken line again.
func parseOfferedKey(payload []byte) (*publicKey, error) {
	line, ok := bytes.CutSuffix(payload, []byte{0})
	if !ok {
		return nil, errors.New("the offered key does not end with NUL")
	}
	if bytes.ContainsAny(line, "\x00\r\n") {
		return nil, errors.New("the offered key is not one line")
	}
	return parsePublicKey(string(line))
}

// verify tells whether signature is the key's of token, which stands in the place of a SHA-1 digest.
func (k *publicKey) verify(token, signature []byte) bool {
	return rsa.VerifyPKCS1v15(&k.rsa, crypto.SHA1, token, signature) == nil
}

// fingerprint is what the phone's dialog shows of a key.
func (k *publicKey) fingerprint() string {
	digest := md5.Sum(k.raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", digest[:]), " ", ":")
}
