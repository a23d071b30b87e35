// Package keyring holds the ADB keys that phones know a rack by, in its state folder:
//
//	adbkey        the key; there is always one
//	adbkey.next   while keys change: the one that takes its place
//
// Keys change by Rotate, which makes a new key, and by Import, which takes one that phones know already, as after a card was
// replaced. Both begin by writing adbkey.next, whole or not at all. From then on phones are shown both, the new one first:
// who knows it proves it, who does not still lets the old one in. Only when each phone that ever took a key of this rack has
// proved the new one, or a person says not to wait for the rest, is adbkey.next renamed to adbkey, and the old key is gone.
// A power cut leaves the state before a step or the one after it.
//
// A phone learns a key only from a person: Ask has the phone in a slot asked about the new key when it is connected next.
// Which phones have taken which key is in their records, package phonebook's.
//
// A backup is the key in PEM of encrypted PKCS#8 (PBES2: PBKDF2 with HMAC-SHA-256, AES-256-CBC), which openssl reads too.
// Nothing here prints or logs a key.
package keyring
