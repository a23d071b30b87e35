package config

import (
	"net/netip"

	"phonerack/firmware/mdns"
)

// MDNS says by which name the page is found on the LAN, if it listens for other machines.
type MDNS struct {
	Enabled bool   `toml:"enabled"`
	Name    string `toml:"name"` // NAME.local; rack.id if "", after Load
}

// mdns chooses the name and checks it where it is used.
func (c *checker) mdns(conf *Config) {
	m := &conf.MDNS
	key := "mdns.name"
	if m.Name == "" {
		key, m.Name = "mdns", conf.Rack.ID
	}
	if !m.Enabled || len(conf.Page.Reachable()) == 0 || mdns.Valid(m.Name) || m.Name == "" { // a missing rack.id has its own fault
		return
	}
	c.fault(key, `mdns.name, which is rack.id if it is left out, is %q: use 1 to 60 of a-z, 0-9 and -, not - at an end, or write enabled = false`, m.Name)
}

// Reachable are the addresses of Listen that other machines may reach. An address of all zeros stands for all of them.
func (p Page) Reachable() []netip.AddrPort {
	var all []netip.AddrPort
	for _, address := range p.Listen {
		host, port, fault := listenAddress(address)
		if fault == "" && !host.IsLoopback() {
			all = append(all, netip.AddrPortFrom(host, port))
		}
	}
	return all
}
