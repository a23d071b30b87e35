package store

import "time"

// NewIdentity is one set of credentials, made by the caller. It comes, goes and is replaced as a whole.
type NewIdentity struct {
	// BearerHash is the SHA-256 of the bearer. That is enough, and no slow password hash is needed, because the bearer
	// is 256 random bits: there is nothing to guess.
	BearerHash  [32]byte
	MACSecret   []byte // sealed by cloud/vault
	KEK         string // id of the key that MACSecret is sealed under
	Kid         string // names the MAC keys in frames
	Fingerprint string // SHA-256 of the client certificate, lower-case hex
	CertPEM     string
	Expires     time.Time // zero: never
}

// Identity is a set as stored.
type Identity struct {
	NewIdentity
	Tenant  string
	Host    string
	Number  int // from 1, per host
	Issued  time.Time
	Used    time.Time // when it was used first; zero before
	Revoked time.Time // zero while valid
}
