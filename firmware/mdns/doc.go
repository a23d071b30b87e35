// Package mdns makes a rack found on its LAN without a DNS server: NAME.local, and a service of type _http._tcp with the
// rack's name and version (multicast DNS, RFC 6762; service discovery, RFC 6763).
//
//	r, err := mdns.New(mdns.Options{Name: "rack-1", Port: 8080, Text: []string{"version=1.0"}, Logger: log})
//	err = r.Run(ctx)
//
// On each link (an interface with IPv4, with IPv6) the name is probed for 750 ms, announced twice, and then questions are
// answered. A name that another machine has becomes NAME-2, NAME-3...; Name tells which one is in force. Who disputes each of them
// is left the field after 16 disputes within an hour: there is no name for an hour then, and the first is tried again. Interfaces are
// looked at every five seconds: one that comes up, goes or changes its address begins anew. At the end the records are
// taken back.
//
// Everything that comes in is untrusted. Only who is on the link is answered, at most 20 times a second; a record is multicast
// once a second at most; packets that are too long, or no DNS, are dropped without a line in the log.
//
// It is written here because github.com/hashicorp/mdns 1.0.7 sends no probes, announcements or goodbyes, knows no conflict,
// sends answers to multicast questions to the asker alone (server.go, sendResponse), keeps the interfaces that were there
// at its start, and its reader spins on a socket with an error (recv). It does less than RFC 6762 asks in one respect: no
// NSEC records, so that who asks for an address of a family that the rack does not have gets no answer instead of a no.
//
// Phones of people do not all resolve .local (Android learnt it late): addresses are shown too, and this is an extra.
package mdns
