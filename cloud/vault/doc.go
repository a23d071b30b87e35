// Package vault seals small secrets (provider credentials, MAC secrets) so that the database alone gives none away.
//
// Each value has a data key of its own, which is sealed under a key-encryption key (KEK). KEKs live in a file of mode
// 0600 or in a systemd credential, never in the database and never in an environment variable. Any number of them can
// open; one, the last of the file, seals. Every sealed value is bound to what it is ([Binding]): moved to another row
// it does not open.
//
// A KEK that is missing or wrong makes exactly its values fail, with [ErrUndecryptable]; all others go on.
package vault
