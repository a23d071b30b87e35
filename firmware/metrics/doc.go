// Package metrics shows a rack to Prometheus. It keeps no values of its own: with each scrape a Source is asked how the
// rack is now.
//
// Every series of a slot is there always, whatever is plugged in, so that a value becomes 0 or NaN (not known) and never
// vanishes; a state has a series for each word that exists, of which one is 1. Labels are bounded by the board file and by
// lists in the program. What a phone says of itself, its serial number too, is in phonerack_phone_info alone, cleaned and
// cut. docs/metrics.md lists all.
//
// Handler answers programs of this machine, and others with a token.
package metrics
