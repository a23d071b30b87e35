package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"phonerack/usb/adb"
)

const (
	minPassphrase = 12       // characters
	maxBackup     = 64 << 10 // bytes of PEM
	iterations    = 600_000  // of PBKDF2 with SHA-256, as OWASP's password storage cheat sheet has it
	maxIterations = 10_000_000
	saltSize      = 16
	keySize       = 32 // AES-256

	encryptedType = "ENCRYPTED PRIVATE KEY"
)

// Errors of a backup. None quotes the backup or its passphrase.
var (
	ErrPassphrase = errors.New("the passphrase is not that of the backup, or the backup is damaged")
	ErrShort      = fmt.Errorf("the passphrase is too short: use at least %d characters", minPassphrase)
	ErrBackup     = errors.New("this is no backup of an ADB key that can be read: it takes PEM, encrypted PKCS#8 as rackctl adb-key export writes it, or the private key of adb")
)

// Identifiers of RFC 8018 and the NIST list of algorithms.
var (
	oidPBES2      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	oidHMACSHA256 = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 9}
	oidAES256CBC  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, 42}
)

// encryptedKey is EncryptedPrivateKeyInfo of RFC 5958.
type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

// pbes2 and pbkdf2Parameters are those of RFC 8018, A.4 and A.2.
type (
	pbes2 struct {
		KDF    pkix.AlgorithmIdentifier
		Scheme pkix.AlgorithmIdentifier
	}
	pbkdf2Parameters struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

// Export writes the key, encrypted with a passphrase. While keys change there is no single key to keep: ErrChanging.
func (r *Ring) Export(w io.Writer, passphrase string) error {
	if utf8.RuneCountInString(passphrase) < minPassphrase {
		return ErrShort
	}
	r.mu.Lock()
	key, changing := r.key, r.next != nil
	r.mu.Unlock()
	if changing {
		return ErrChanging
	}
	plain, err := key.MarshalPEM()
	if err != nil {
		return err
	}
	block, _ := pem.Decode(plain)
	sealed, err := encrypt(block.Bytes, passphrase)
	if err != nil {
		return err
	}
	return pem.Encode(w, &pem.Block{Type: encryptedType, Bytes: sealed})
}

// Import begins to replace the key by the one of a backup. The passphrase counts for an encrypted one.
func (r *Ring) Import(from io.Reader, passphrase string) (Status, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxBackup+1))
	if err != nil {
		return Status{}, fmt.Errorf("read the backup: %w", err)
	}
	key, err := decode(text, passphrase)
	if err != nil {
		return Status{}, err
	}
	return r.change(key)
}

func decode(text []byte, passphrase string) (*adb.Key, error) {
	block, rest := pem.Decode(text)
	if block == nil || len(text) > maxBackup {
		return nil, ErrBackup
	}
	if again, _ := pem.Decode(rest); again != nil {
		return nil, fmt.Errorf("%w; and one key alone", ErrBackup)
	}
	if block.Type != encryptedType {
		key, err := adb.ParseKey(pem.EncodeToMemory(block))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBackup, err)
		}
		return key, nil
	}
	der, err := decrypt(block.Bytes, passphrase)
	if err != nil {
		return nil, err
	}
	key, err := adb.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		if der[0] == 0x30 { // a SEQUENCE: it was deciphered, and is another kind of key
			return nil, fmt.Errorf("%w: %w", ErrBackup, err)
		}
		return nil, ErrPassphrase
	}
	return key, nil
}

func encrypt(plain []byte, passphrase string) ([]byte, error) {
	random := make([]byte, saltSize+aes.BlockSize)
	rand.Read(random) // never fails
	salt, iv := random[:saltSize], random[saltSize:]
	block, err := cipherOf(passphrase, salt, iterations)
	if err != nil {
		return nil, err
	}
	pad := aes.BlockSize - len(plain)%aes.BlockSize
	data := make([]byte, len(plain), len(plain)+pad)
	copy(data, plain)
	for range pad {
		data = append(data, byte(pad))
	}
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(data, data)

	prf := pkix.AlgorithmIdentifier{Algorithm: oidHMACSHA256, Parameters: asn1.NullRawValue}
	kdf, err := identify(oidPBKDF2, pbkdf2Parameters{Salt: salt, Iterations: iterations, PRF: prf})
	if err != nil {
		return nil, err
	}
	scheme, err := identify(oidAES256CBC, iv)
	if err != nil {
		return nil, err
	}
	algorithm, err := identify(oidPBES2, pbes2{kdf, scheme})
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(encryptedKey{algorithm, data})
}

func identify(oid asn1.ObjectIdentifier, parameters any) (pkix.AlgorithmIdentifier, error) {
	der, err := asn1.Marshal(parameters)
	return pkix.AlgorithmIdentifier{Algorithm: oid, Parameters: asn1.RawValue{FullBytes: der}}, err
}

func cipherOf(passphrase string, salt []byte, iterations int) (cipher.Block, error) {
	key, err := pbkdf2.Key(sha256.New, passphrase, salt, iterations, keySize)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

// sealedKey is an encrypted key taken apart.
type sealedKey struct {
	salt, iv, data []byte
	iterations     int
}

// parse takes an encrypted key apart. It takes the one algorithm that is written here, with a bounded number of iterations.
func parse(der []byte) (sealedKey, error) {
	var (
		outer  encryptedKey
		scheme pbes2
		kdf    pbkdf2Parameters
		iv     []byte
	)
	for _, part := range []struct {
		der  func() []byte
		into any
	}{
		{func() []byte { return der }, &outer},
		{func() []byte { return outer.Algorithm.Parameters.FullBytes }, &scheme},
		{func() []byte { return scheme.KDF.Parameters.FullBytes }, &kdf},
		{func() []byte { return scheme.Scheme.Parameters.FullBytes }, &iv},
	} {
		if rest, err := asn1.Unmarshal(part.der(), part.into); err != nil || len(rest) > 0 {
			return sealedKey{}, ErrBackup
		}
	}
	switch {
	case !outer.Algorithm.Algorithm.Equal(oidPBES2), !scheme.KDF.Algorithm.Equal(oidPBKDF2),
		!scheme.Scheme.Algorithm.Equal(oidAES256CBC), !kdf.PRF.Algorithm.Equal(oidHMACSHA256),
		kdf.KeyLength != 0 && kdf.KeyLength != keySize, kdf.Iterations < 1, kdf.Iterations > maxIterations,
		len(kdf.Salt) < 8, len(iv) != aes.BlockSize, len(outer.Data) == 0, len(outer.Data)%aes.BlockSize != 0:
		return sealedKey{}, ErrBackup
	}
	return sealedKey{kdf.Salt, iv, outer.Data, kdf.Iterations}, nil
}

// decrypt undoes encrypt. The result is not empty.
func decrypt(der []byte, passphrase string) ([]byte, error) {
	sealed, err := parse(der)
	if err != nil {
		return nil, err
	}
	block, err := cipherOf(passphrase, sealed.salt, sealed.iterations)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(sealed.data))
	cipher.NewCBCDecrypter(block, sealed.iv).CryptBlocks(plain, sealed.data)
	pad := int(plain[len(plain)-1])
	if pad < 1 || pad > aes.BlockSize || pad >= len(plain) {
		return nil, ErrPassphrase
	}
	for _, b := range plain[len(plain)-pad:] {
		if int(b) != pad {
			return nil, ErrPassphrase
		}
	}
	return plain[:len(plain)-pad], nil
}
