package mdns

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	hostTTL   = 120  // seconds: of records with a host's name in them, RFC 6762, section 10
	otherTTL  = 4500 // seconds
	legacyTTL = 10   // seconds: for who asks by ordinary DNS, section 6.7

	flush     = 1 << 15 // bit of a record's class: what else is cached under the name is out of date
	classMask = flush - 1

	serviceType = "_http._tcp.local."
	allServices = "_services._dns-sd._udp.local."
)

// identity is what a rack is called.
type identity struct {
	host, instance dnsmessage.Name
	kind, services dnsmessage.Name
	port           uint16
	text           []string
}

func newIdentity(name string, port int, text []string) (identity, error) {
	id := identity{port: uint16(port), text: text}
	for _, n := range []struct {
		into *dnsmessage.Name
		text string
	}{{&id.host, name + ".local."}, {&id.instance, name + "." + serviceType}, {&id.kind, serviceType}, {&id.services, allServices}} {
		parsed, err := dnsmessage.NewName(n.text)
		if err != nil {
			return identity{}, fmt.Errorf("name %s: %w", n.text, err)
		}
		*n.into = parsed
	}
	return id, nil
}

// records are all of a link with these addresses; unique ones have the flush bit.
func (id identity) records(addresses []netip.Prefix) []dnsmessage.Resource {
	resource := func(name dnsmessage.Name, ttl uint32, unique bool, body dnsmessage.ResourceBody) dnsmessage.Resource {
		class := dnsmessage.ClassINET
		if unique {
			class |= flush
		}
		return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Type: typeOf(body), Class: class, TTL: ttl}, Body: body}
	}
	var all []dnsmessage.Resource
	for _, p := range addresses {
		if a := p.Addr().Unmap(); a.Is4() {
			all = append(all, resource(id.host, hostTTL, true, &dnsmessage.AResource{A: a.As4()}))
		} else {
			all = append(all, resource(id.host, hostTTL, true, &dnsmessage.AAAAResource{AAAA: a.As16()}))
		}
	}
	return append(
		all,
		resource(id.instance, hostTTL, true, &dnsmessage.SRVResource{Port: id.port, Target: id.host}),
		resource(id.instance, otherTTL, true, &dnsmessage.TXTResource{TXT: id.text}),
		resource(id.kind, otherTTL, false, &dnsmessage.PTRResource{PTR: id.instance}),
		resource(id.services, otherTTL, false, &dnsmessage.PTRResource{PTR: id.kind}),
	)
}

func typeOf(body dnsmessage.ResourceBody) dnsmessage.Type {
	switch body.(type) {
	case *dnsmessage.AResource:
		return dnsmessage.TypeA
	case *dnsmessage.AAAAResource:
		return dnsmessage.TypeAAAA
	case *dnsmessage.SRVResource:
		return dnsmessage.TypeSRV
	case *dnsmessage.TXTResource:
		return dnsmessage.TypeTXT
	}
	return dnsmessage.TypePTR
}

// owns tells whether the name is the rack's alone.
func (id identity) owns(name dnsmessage.Name) bool {
	return same(name, id.host) || same(name, id.instance)
}

func same(a, b dnsmessage.Name) bool { return strings.EqualFold(a.String(), b.String()) }

// rdata is a record's data without compression, names in lower case; ok is false for types that are none of ours.
func rdata(body dnsmessage.ResourceBody) (data string, ok bool) {
	switch b := body.(type) {
	case *dnsmessage.AResource:
		return string(b.A[:]), true
	case *dnsmessage.AAAAResource:
		return string(b.AAAA[:]), true
	case *dnsmessage.PTRResource:
		return strings.ToLower(b.PTR.String()), true
	case *dnsmessage.TXTResource:
		return strings.Join(b.TXT, "\x00"), true
	case *dnsmessage.SRVResource:
		fixed := binary.BigEndian.AppendUint16(nil, b.Priority)
		fixed = binary.BigEndian.AppendUint16(fixed, b.Weight)
		fixed = binary.BigEndian.AppendUint16(fixed, b.Port)
		return string(fixed) + strings.ToLower(b.Target.String()), true
	}
	return "", false
}

// equal compares name, type and data.
func equal(a, b dnsmessage.Resource) bool {
	x, _ := rdata(a.Body)
	y, ok := rdata(b.Body)
	return ok && x == y && typeOf(a.Body) == typeOf(b.Body) && same(a.Header.Name, b.Header.Name)
}

// weight is what two probes for the same name are compared by, RFC 6762, section 8.2.
func weight(records []dnsmessage.Resource) string {
	var all []string
	for _, r := range records {
		if data, ok := rdata(r.Body); ok {
			all = append(all, fmt.Sprintf("%04x%04x%s", uint16(r.Header.Class)&classMask, uint16(typeOf(r.Body)), data))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// pack makes a packet. Records of too many addresses are left out from the end: a packet is one datagram of Ethernet.
func pack(m dnsmessage.Message) ([]byte, error) {
	const most = 1400 // bytes
	for {
		packet, err := m.Pack()
		if err != nil || len(packet) <= most || len(m.Additionals) == 0 && len(m.Answers) <= 1 {
			return packet, err
		}
		if n := len(m.Additionals); n > 0 {
			m.Additionals = m.Additionals[:n-1]
		} else {
			m.Answers = m.Answers[:len(m.Answers)-1]
		}
	}
}
