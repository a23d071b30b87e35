package adb

import (
	"bytes"
	"crypto"
	"crypto/md5"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
)

// TokenSize is the length in bytes of the token that a phone asks to be signed.
const TokenSize = 20

const (
	keyBits      = 2048
	keyBytes     = keyBits / 8
	keyExponent  = 65537
	publicStruct = 4 + 4 + keyBytes + keyBytes + 4 // 524
)

// Key is an RSA-2048 key that phones authenticate this host by. It prints and
// logs as "adb key" with a fingerprint, never as key material.
type Key struct {
	private *rsa.PrivateKey
	// encoded is the base64 of the public key struct.
	encoded string
}

// NewKey generates a key. It takes a noticeable fraction of a second on a
// small board.
func NewKey() (*Key, error) {
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("adb: generating a key: %w", err)
	}
	return newKey(private)
}

// ParseKey reads a key from PEM: PKCS#8 ("PRIVATE KEY", what adb keygen writes)
// or PKCS#1 ("RSA PRIVATE KEY"). Errors never quote the input.
func ParseKey(data []byte) (*Key, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("adb: key is not PEM")
	}
	var parsed any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, errors.New("adb: PEM block is not a private key")
	}
	if err != nil {
		return nil, errors.New("adb: private key is malformed")
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("adb: private key is not RSA")
	}
	return newKey(private)
}

func newKey(private *rsa.PrivateKey) (*Key, error) {
	encoded, err := encodePublic(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	return &Key{private: private, encoded: encoded}, nil
}

// MarshalPEM returns the private key as PEM of PKCS#8.
func (k *Key) MarshalPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, errors.New("adb: private key cannot be encoded")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Public returns the public half.
func (k *Key) Public() *rsa.PublicKey { return &k.private.PublicKey }

// Sign answers a phone's token: PKCS#1 v1.5 with the token standing in for the
// SHA-1 digest (AOSP client/auth.cpp). The token must be 20 bytes long, the
// signature is 256.
func (k *Key) Sign(token []byte) ([]byte, error) {
	if len(token) != TokenSize {
		return nil, fmt.Errorf("adb: token of %d bytes, want %d", len(token), TokenSize)
	}
	return rsa.SignPKCS1v15(nil, k.private, crypto.SHA1, token)
}

// PublicLine returns the public key as phones store it: the base64 of AOSP's
// 524-byte struct without line breaks, a space and comment ("user@host", shown
// by some phones). Control characters in comment become '?'. There is no
// newline and no NUL at the end.
func (k *Key) PublicLine(comment string) []byte {
	comment = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, comment)
	return []byte(k.encoded + " " + comment)
}

// Fingerprint is the key's public name as a phone shows it in its question to
// the person: the MD5 of the public key struct, "A1:B2:...".
func (k *Key) Fingerprint() string {
	raw, err := base64.StdEncoding.DecodeString(k.encoded)
	if err != nil {
		return ""
	}
	sum := md5.Sum(raw)
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(parts, ":")
}

// String implements fmt.Stringer without key material.
func (k *Key) String() string {
	if k == nil || k.private == nil {
		return "adb key (none)"
	}
	return "adb key " + k.Fingerprint()
}

// GoString keeps %#v from printing the private key.
func (k *Key) GoString() string { return k.String() }

// Format keeps every other verb from printing the private key.
func (k *Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue implements slog.LogValuer.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalJSON keeps encoders away from the private key.
func (k *Key) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", k.String()), nil }

// encodePublic encodes the struct of AOSP libcrypto_utils/android_pubkey.cpp,
// little-endian: u32 words in the modulus (64), u32 -1/n mod 2^32, n, 2^4096
// mod n (both 256 bytes), u32 exponent.
func encodePublic(public *rsa.PublicKey) (string, error) {
	if public.N.BitLen() != keyBits {
		return "", fmt.Errorf("adb: RSA key of %d bits, phones take %d", public.N.BitLen(), keyBits)
	}
	if public.E != keyExponent && public.E != 3 {
		return "", fmt.Errorf("adb: RSA exponent %d, phones take %d", public.E, keyExponent)
	}
	word := new(big.Int).Lsh(big.NewInt(1), 32)
	inverse := new(big.Int).ModInverse(new(big.Int).Mod(public.N, word), word)
	if inverse == nil {
		return "", errors.New("adb: RSA modulus is even")
	}
	n0inv := new(big.Int).Sub(word, inverse)
	rr := new(big.Int).Lsh(big.NewInt(1), 2*keyBits)
	rr.Mod(rr, public.N)

	le := binary.LittleEndian
	b := make([]byte, 0, publicStruct)
	b = le.AppendUint32(b, keyBytes/4)
	b = le.AppendUint32(b, uint32(n0inv.Uint64()))
	b = append(b, littleEndian(public.N)...)
	b = append(b, littleEndian(rr)...)
	b = le.AppendUint32(b, uint32(public.E))
	return base64.StdEncoding.EncodeToString(b), nil
}

// ParsePublicLine reads what [Key.PublicLine] writes, with or without the NUL
// or newline that ends it on the wire and in files: what a phone does with an
// offered key.
func ParsePublicLine(line []byte) (public *rsa.PublicKey, comment string, err error) {
	line = bytes.TrimRight(line, "\x00\r\n")
	encoded, rest, _ := strings.Cut(string(line), " ")
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(b) != publicStruct || strings.ContainsAny(encoded, "\r\n") {
		return nil, "", errors.New("adb: public key is not the base64 of a 2048-bit key")
	}
	le := binary.LittleEndian
	n := new(big.Int).SetBytes(reversed(b[8 : 8+keyBytes]))
	e := le.Uint32(b[8+2*keyBytes:])
	public = &rsa.PublicKey{N: n, E: int(e & 0x7fffffff)}
	again, err := encodePublic(public)
	if err != nil {
		return nil, "", err
	}
	if again != encoded {
		return nil, "", errors.New("adb: public key's precomputed numbers do not fit its modulus")
	}
	return public, rest, nil
}

func littleEndian(n *big.Int) []byte { return reversed(n.FillBytes(make([]byte, keyBytes))) }

func reversed(b []byte) []byte {
	r := make([]byte, len(b))
	for i, c := range b {
		r[len(b)-1-i] = c
	}
	return r
}
