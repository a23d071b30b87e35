package model

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// Manifest says which skills a rack has. The platform signs its bytes, and the
// rack proves and reads exactly those.
type Manifest struct {
	V       int    `json:"v"`       // 1
	Rack    string `json:"rack"`    // whom it is for: another rack's is refused
	Epoch   int64  `json:"epoch"`   // grows when the platform's database was made anew or restored
	Version int64  `json:"version"` // grows within an epoch with every change that concerns the rack
	// Complete tells that Skills is the whole list; what is not in it is gone.
	// Otherwise it is what changed after version Since of the same epoch.
	Complete bool  `json:"complete,omitempty"`
	Since    int64 `json:"since,omitempty"`

	Skills        []Entry             `json:"skills"`            // by id, ascending
	Removed       []string            `json:"removed,omitempty"` // ids, ascending; not in a complete manifest
	Subscriptions []SubscriptionState `json:"subscriptions"`     // all of the rack's, by id, ascending
	Issued        int64               `json:"issued"`            // milliseconds since 1970
	Expires       int64               `json:"expires"`           // likewise; not applied from then on
	Keys          []ManifestKey       `json:"keys,omitempty"`    // the platform's keys from now on, for rotation; none says nothing
}

// Entry is one skill of a manifest.
type Entry struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Kind    Kind   `json:"kind"`
	SHA256  string `json:"sha256"` // of the canonical JSON, 64 lower-case hex digits
	Size    int64  `json:"size"`   // bytes of the canonical JSON
}

// Active and Revoked are the states of a subscription.
const (
	Active  = "active"
	Revoked = "revoked"
)

// SubscriptionState is what a manifest says of a subscription.
type SubscriptionState struct {
	ID    string `json:"id"`
	State string `json:"state"`
	// Agents are those that it is for, by name, ascending; none means all that ask on the rack.
	Agents []string `json:"agents,omitempty"`
}

// ManifestKey is a key that manifests are signed with.
type ManifestKey struct {
	ID     string `json:"id"`
	Public []byte `json:"public"` // 32 bytes
}

// Keys are the platform's public keys by their id.
type Keys map[string]ed25519.PublicKey

// Reasons to refuse a manifest that do not depend on what the rack has.
var (
	ErrUnknownKey   = errors.New("the manifest is signed with a key that is not known")
	ErrBadSignature = errors.New("the manifest's signature is wrong")
)

// Sum is the SHA-256 of raw as a manifest writes it.
func Sum(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// MaxTime is the end of the year 9999, in milliseconds since 1970: what is later cannot be written as RFC 3339, and so in no JSON.
const MaxTime = 253402300799999

// IssuedAt is Issued as a time.
func (m *Manifest) IssuedAt() time.Time { return time.UnixMilli(m.Issued).UTC() }

// ExpiresAt is Expires as a time.
func (m *Manifest) ExpiresAt() time.Time { return time.UnixMilli(m.Expires).UTC() }

// SignManifest signs a manifest's bytes.
func SignManifest(key ed25519.PrivateKey, raw []byte) []byte { return ed25519.Sign(key, raw) }

// OpenManifest proves the signature of raw and then reads it.
func OpenManifest(raw, sig []byte, keyID string, keys Keys) (*Manifest, error) {
	if len(raw) > MaxManifestBytes {
		return nil, tooLarge("manifest", len(raw), MaxManifestBytes)
	}
	key, known := keys[keyID]
	if !known || len(key) != ed25519.PublicKeySize {
		return nil, ErrUnknownKey
	}
	if !ed25519.Verify(key, raw, sig) {
		return nil, ErrBadSignature
	}
	return ParseManifest(raw)
}
