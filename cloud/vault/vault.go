package vault

import "errors"

// ErrUndecryptable: the value's KEK is missing or another one, or the value was altered or belongs to another binding.
// Which of these it was is in the error's text where it can be told.
var ErrUndecryptable = errors.New("value cannot be decrypted")

// MaxSecret is the largest secret that is sealed, in bytes.
const MaxSecret = 16 << 10

// Binding is what a sealed value belongs to. It is not stored with the value; Open needs the same one.
type Binding struct {
	Purpose string   // "profile", "identity"
	Owner   []string // tenant and ids of the row
	Version int      // key version, number of the set
}

// Vault seals and opens. It is safe for concurrent use and never changes.
type Vault struct{}

var errPending = errors.New("vault: not there yet")

// Open reads the key file at path. The file must be a regular one of mode 0600 or stricter, of this user or root.
func Open(path string) (*Vault, error) { return nil, errPending }

// OpenCredential reads the systemd credential of this name below $CREDENTIALS_DIRECTORY.
func OpenCredential(name string) (*Vault, error) { return nil, errPending }

// Generate makes a key file with one new KEK, or, if the file exists, adds a KEK to it, which seals from then on. It
// gives the new KEK's id.
func Generate(path string) (id string, err error) { return "", errPending }

// Writing is the id of the KEK that seals.
func (v *Vault) Writing() string { return "" }

// Seal seals a secret for a binding.
func (v *Vault) Seal(b Binding, secret Secret) ([]byte, error) { return nil, errPending }

// Open opens a sealed value.
func (v *Vault) Open(b Binding, sealed []byte) (Secret, error) { return Secret{}, errPending }

// Reseal seals a value anew under the writing KEK.
func (v *Vault) Reseal(b Binding, sealed []byte) ([]byte, error) { return nil, errPending }

// KeyID tells which KEK a value is sealed under; "" if it is no sealed value.
func KeyID(sealed []byte) string { return "" }
