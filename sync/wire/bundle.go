package wire

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// MaxBundle bounds the file of a [Bundle], in bytes.
const MaxBundle = 64 << 10

// Bundle is one set of a rack's credentials, as the cloud gives it out once: a
// JSON file of mode 0600. All of it is replaced or revoked together. It prints as
// its rack and kid alone.
type Bundle struct {
	V              int    `json:"v"` // 1
	Rack           string `json:"rack_id"`
	Tenant         string `json:"tenant"`
	Bearer         string `json:"bearer"` // for HTTP; never shown to a broker
	KID            string `json:"kid"`
	MACSecret      string `json:"mac_secret"`      // SecretBytes as base64
	Certificate    string `json:"certificate"`     // PEM, of the client; its CN is the rack
	Key            string `json:"key"`             // PEM, PKCS 8
	CA             string `json:"ca"`              // PEM; what broker and API show is signed by it
	Broker         string `json:"broker"`          // ssl://host:port and the like
	BrokerPassword string `json:"broker_password"` // for a broker without client certificates; the user name is the rack
	API            string `json:"api,omitempty"`   // https://host:port, for hosts that speak HTTP
	// SkillKeys are the platform's public keys that sign manifests, as "id:base64" with one blank between two. A rack
	// trusts them until a manifest names others.
	SkillKeys string `json:"skill_keys,omitempty"`
}

// ParseBundle reads the file of a bundle, strictly.
func ParseBundle(raw []byte) (Bundle, error) {
	var b Bundle
	if len(raw) > MaxBundle {
		return b, fmt.Errorf("a bundle of %d bytes is too large", len(raw))
	}
	if err := Unmarshal(raw, &b); err != nil {
		return Bundle{}, fmt.Errorf("the bundle cannot be read: %w", err)
	}
	switch {
	case b.V != 1:
		return Bundle{}, fmt.Errorf("version %d of the bundle is not known", b.V)
	case !ValidID(b.Rack) || !ValidID(b.Tenant):
		return Bundle{}, errors.New("the bundle names no rack and tenant")
	case b.Bearer == "":
		return Bundle{}, errors.New("the bundle has no bearer")
	}
	if _, err := b.Keys(); err != nil {
		return Bundle{}, err
	}
	if _, err := b.ManifestKeys(); err != nil {
		return Bundle{}, err
	}
	return b, nil
}

// Keys derives the keys of the bundle's frames.
func (b Bundle) Keys() (Keys, error) {
	secret, err := base64.StdEncoding.DecodeString(b.MACSecret)
	if err != nil {
		return Keys{}, errors.New("the MAC secret is not base64")
	}
	return DeriveKeys(b.KID, secret)
}

// FormatSkillKeys writes keys for [Bundle.SkillKeys], by id.
func FormatSkillKeys(keys map[string]ed25519.PublicKey) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, id+":"+base64.StdEncoding.EncodeToString(keys[id]))
	}
	return strings.Join(all, " ")
}

// ManifestKeys reads SkillKeys. A bundle without any gives none.
func (b Bundle) ManifestKeys() (map[string]ed25519.PublicKey, error) {
	keys := map[string]ed25519.PublicKey{}
	for word := range strings.FieldsSeq(b.SkillKeys) {
		id, text, _ := strings.Cut(word, ":")
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || len(raw) != ed25519.PublicKeySize || !ValidID(id) || keys[id] != nil {
			return nil, errors.New("the keys for manifests of skills are not id:base64, with one blank between two")
		}
		keys[id] = raw
	}
	return keys, nil
}

// String and LogValue keep the secrets out of logs.
func (b Bundle) String() string { return "bundle of " + b.Rack + " with keys " + b.KID }

// GoString implements fmt.GoStringer.
func (b Bundle) GoString() string { return b.String() }

// LogValue implements slog.LogValuer.
func (b Bundle) LogValue() slog.Value { return slog.StringValue(b.String()) }

// File is the bundle as its file has it.
func (b Bundle) File() ([]byte, error) {
	raw, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(raw, '\n'), nil
}

// BrokerPassword derives the password with which a rack logs in at a broker, by
// HKDF-SHA256 with the info "phonerack pr1 broker". Who learns it can connect, and
// can neither sign a frame nor use the API.
func BrokerPassword(secret []byte) (string, error) {
	if len(secret) != SecretBytes {
		return "", fmt.Errorf("a MAC secret has %d bytes where %d are needed", len(secret), SecretBytes)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "phonerack pr1 broker", sha256.Size)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(key), nil
}
