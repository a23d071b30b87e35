// Package vault seals small secrets (provider credentials, MAC secrets) so that the database alone gives none away.
//
// Each value has a data key of its own, which is sealed under a key-encryption key (KEK). KEKs live in a file of mode
// 0600 or in a systemd credential, never in the database and never in an environment variable. Any number of them can
// open; one, the last of the file, seals. Every sealed value is bound to what it is ([Binding]): moved to another row
// it does not open.
//
// A KEK that is missing or wrong makes exactly its values fail, with [ErrUndecryptable]; all others go on.
//
// # Key file
//
// Text, one KEK a line, the newest last; empty lines and lines that begin with # are passed over:
//
//	phonerack-kek-1 <id> <32 random bytes, base64>
//
// # Sealed value
//
//	"prv1"                          4 bytes
//	length of the KEK's id          1 byte
//	id of the KEK                   1 to 63 bytes
//	nonce, sealed data key and tag  12 + 32 + 16 bytes
//	nonce, sealed secret and tag    12 + n + 16 bytes
//
// Both parts are AES-256-GCM with random nonces. The additional data of each is a word for the part ("data-key",
// "value"), the KEK's id, the binding's purpose, its owners and its version in decimal, each preceded by its length as
// eight bytes, big-endian.
package vault
