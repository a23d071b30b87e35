package provider

import (
	"fmt"
	"log/slog"
)

// Secret is a provider's key. Whatever prints, logs or marshals it gets
// "[redacted]"; only this package sends it, to the provider.
//
// It holds the key behind a pointer, as fmt asks no method of a field that is
// not exported: of a struct with such a field it shows an address.
type Secret struct{ key *string }

// redacted stands for a secret wherever one is shown.
const redacted = "[redacted]"

// NewSecret wraps a key. Surrounding white space belongs to the key, and is
// refused by [New].
func NewSecret(key string) Secret { return Secret{&key} }

// Empty tells whether there is no key: some servers on a local network need none.
func (s Secret) Empty() bool { return s.value() == "" }

func (s Secret) value() string {
	if s.key == nil {
		return ""
	}
	return *s.key
}

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter, so that no verb reaches the value.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, and so covers JSON, TOML and YAML.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
