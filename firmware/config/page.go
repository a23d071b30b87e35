package config

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Page says where the technician's page is served.
type Page struct {
	Listen  []string `toml:"listen"`   // addresses, such as ":80"; none: there is no page
	PINFile string   `toml:"pin_file"` // the PIN, one line in a file of mode 0600; "": nobody can sign in
	Hosts   []string `toml:"hosts"`    // names that the rack is asked by, beside its addresses

	// PIN is that of PINFile; "" without one.
	PIN string `toml:"-"`
}

// Metrics says where Prometheus finds the rack's metrics.
type Metrics struct {
	Listen    string `toml:"listen"`     // an address, such as "127.0.0.1:9477"; "" for none
	TokenFile string `toml:"token_file"` // what others than programs of this machine must show, mode 0600, read at each scrape
}

// Token reads what a scrape from elsewhere must show.
func (m Metrics) Token() (string, error) {
	raw, err := Secret(m.TokenFile, maxToken)
	if err == nil && len(bytes.TrimSpace(raw)) < shortestToken {
		err = fmt.Errorf("%s has fewer than %d characters", m.TokenFile, shortestToken)
	}
	return string(bytes.TrimSpace(raw)), err
}

const (
	maxListen = 8
	maxHosts  = 32

	shortestPIN   = 6 // characters: the page lets nobody guess faster than 10 a minute
	longestPIN    = 64
	shortestToken = 16
)

// hostName is a name of DNS, perhaps with the dot of the root.
var hostName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.?$`)

// page reads the PIN and checks where the page is served.
func (c *checker) page(p *Page) {
	if len(p.Listen) > maxListen {
		c.fault("page.listen", "page.listen has %d addresses: at most %d are handled", len(p.Listen), maxListen)
		return
	}
	taken := map[string]bool{}
	for _, address := range p.Listen {
		_, _, fault := listenAddress(address)
		switch {
		case fault != "":
			c.fault("page.listen", `page.listen has %q: %s`, address, fault)
		case taken[address]:
			c.fault("page.listen", "page.listen has %q twice: leave one out", address)
		}
		taken[address] = true
	}
	if len(p.Hosts) > maxHosts {
		c.fault("page.hosts", "page.hosts has %d names: at most %d are handled", len(p.Hosts), maxHosts)
		return
	}
	for _, h := range p.Hosts {
		if _, err := netip.ParseAddr(h); err != nil && (len(h) > 253 || !hostName.MatchString(h)) {
			c.fault("page.hosts", `page.hosts has %q: write a name or an address without port, such as "rack7.lan"`, h)
		}
	}
	if p.PINFile == "" {
		return
	}
	if len(p.Listen) == 0 {
		c.fault("page.pin_file", `page.pin_file is there, but page.listen is missing: write it as [":80"], or leave both out`)
	}
	raw, err := Secret(p.PINFile, maxKeyFile)
	if err != nil {
		c.fault("page.pin_file", "page.pin_file: %v", err)
		return
	}
	p.PIN = string(bytes.TrimSpace(raw))
	if len(p.PIN) < shortestPIN || len(p.PIN) > longestPIN || strings.ContainsFunc(p.PIN, func(r rune) bool { return r <= ' ' || r > '~' }) {
		c.fault("page.pin_file", "page.pin_file: %s is no PIN: write %d to %d printable ASCII characters without blanks, as one line", p.PINFile, shortestPIN, longestPIN)
	}
}

// metrics checks where metrics are served, and that what leaves this machine has a token.
func (c *checker) metrics(m *Metrics) {
	if m.Listen == "" {
		if m.TokenFile != "" {
			c.fault("metrics.token_file", `metrics.token_file is there, but metrics.listen is missing: write it as "127.0.0.1:9477", or leave both out`)
		}
		return
	}
	host, _, fault := listenAddress(m.Listen)
	if fault != "" {
		c.fault("metrics.listen", `metrics.listen is %q: %s`, m.Listen, fault)
	} else if !host.IsLoopback() && m.TokenFile == "" {
		c.fault("metrics.listen", "metrics.listen is %q, which other machines reach, and metrics.token_file is missing: name a file of mode 0600 with a token, or listen on 127.0.0.1", m.Listen)
	}
	if m.TokenFile != "" {
		if _, err := m.Token(); err != nil {
			c.fault("metrics.token_file", "metrics.token_file: %v", err)
		}
	}
}

// listenAddress reads an address to listen on: an IP address of this machine, or nothing for all of them, and a port. Nothing is
// the address of all zeros of IPv6, which is for IPv4 too.
func listenAddress(address string) (host netip.Addr, port uint16, fault string) {
	const form = `write an address of this machine, or nothing for all of them, and a port, such as ":80" or "192.168.1.20:80"`
	name, number, err := net.SplitHostPort(address)
	if err != nil {
		return host, 0, form
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 {
		return host, 0, "the port must be from 1 to 65535"
	}
	if host, err = netip.ParseAddr(cmp.Or(name, "::")); err != nil {
		return host, 0, form
	}
	return host, uint16(n), ""
}
