package vault

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret holds bytes that never show: printed, logged or marshalled in any way it is "[redacted]". Only Reveal gives
// them. The zero Secret is empty.
type Secret struct {
	// A pointer, because fmt calls no methods of unexported fields: inside of somebody's struct it shows an address.
	b *[]byte
}

// NewSecret makes a Secret of a copy of b.
func NewSecret(b []byte) Secret {
	b = append([]byte(nil), b...)
	return Secret{&b}
}

// Reveal gives the bytes; they must not be changed.
func (s Secret) Reveal() []byte {
	if s.b == nil {
		return nil
	}
	return *s.b
}

// Empty tells whether there is nothing in it.
func (s Secret) Empty() bool { return len(s.Reveal()) == 0 }

// String implements fmt.Stringer.
func (s Secret) String() string { return redacted }

// Format implements fmt.Formatter: no verb shows the bytes.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler; JSON, XML and the like go by it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
