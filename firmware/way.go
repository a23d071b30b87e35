package firmware

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"phonerack/firmware/action"
	"phonerack/firmware/mdns"
)

// way is how people reach the rack's page.
type way struct {
	reachable []netip.AddrPort // where the page listens for other machines; none: it does not
	addresses func() ([]netip.Addr, error)
	name      *mdns.Responder // nil if no name is announced
}

// openWay makes the way to the page, and has the rack's name announced on its LAN if the page listens there.
func (r *Rack) openWay(o Options) error {
	r.way = way{reachable: r.config.Page.Reachable(), addresses: o.Addresses}
	if r.way.addresses == nil {
		r.way.addresses = ownAddresses
	}
	if len(r.way.reachable) == 0 || !r.config.MDNS.Enabled {
		return nil
	}
	var err error
	r.way.name, err = mdns.New(mdns.Options{
		Name: r.config.MDNS.Name, Port: int(r.way.reachable[0].Port()), Network: o.Multicast, Logger: r.log,
		Text: []string{"path=/", "rack=" + r.config.Rack.ID, "version=" + cut(versions()["rackd"], maxVersion)},
	})
	if err != nil {
		return err
	}
	r.watch.Add(r.tree, service{"name on the network", func(ctx context.Context) error { return r.way.name.Run(ctx) }}, stopPart)
	return nil
}

const (
	maxVersion   = 100 // bytes of it in a record
	maxAddresses = 32  // of this machine
)

// disputed is the name that the rack has not, because others dispute each that it takes; "" if they do not.
func (r *Rack) disputed() string {
	if r.way.name == nil || r.way.name.Name() != "" {
		return ""
	}
	return r.config.MDNS.Name
}

// host is the rack's name on the LAN, as the page is asked for by it; "" if none is announced.
func (w *way) host() string {
	if w.name == nil {
		return ""
	}
	name := w.name.Name()
	if name == "" { // others dispute each
		return ""
	}
	return name + ".local"
}

// urls are the page's, the one to try first first: an address that the site has given works from all of the site, one of the
// link only on the cable, and not every phone resolves the name. A link-local address of IPv6 comes last: who types it has to
// add an interface of the own machine, and few browsers take that.
func (w *way) urls() []string {
	addresses, err := w.addresses()
	if err != nil {
		addresses = nil
	}
	type url struct {
		text string
		rank int
	}
	var all []url
	for _, d := range w.reachable {
		own := []netip.Addr{d.Addr()}
		if d.Addr().IsUnspecified() {
			own = addresses
		}
		for _, a := range own[:min(len(own), maxAddresses)] {
			if a = a.Unmap(); a.IsLoopback() || d.Addr().Is4() && !a.Is4() {
				continue
			}
			all = append(all, url{pageURL(a.WithZone("").String(), d.Port()), rank(a)})
		}
	}
	if host := w.host(); host != "" {
		all = append(all, url{pageURL(host, w.reachable[0].Port()), 2})
	}
	slices.SortStableFunc(all, func(a, b url) int { return cmp.Compare(a.rank, b.rank) })
	texts := []string{}
	for _, u := range all {
		if !slices.Contains(texts, u.text) {
			texts = append(texts, u.text)
		}
	}
	return texts
}

func rank(a netip.Addr) int {
	switch {
	case a.Is4() && !a.IsLinkLocalUnicast():
		return 0
	case a.Is4():
		return 1
	case !a.IsLinkLocalUnicast():
		return 3
	}
	return 4
}

// pageURL is that of the page at a host, an address or a name.
func pageURL(host string, port uint16) string {
	joined := net.JoinHostPort(host, fmt.Sprint(port))
	if port == 80 {
		joined = joined[:len(joined)-len(":80")]
	}
	return "http://" + joined + "/"
}

// ownAddresses are those of the interfaces that are up, without the loopback's.
func ownAddresses() ([]netip.Addr, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var all []netip.Addr
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue // it went in between
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, p.Addr())
			}
		}
	}
	return all, nil
}

// toPage tells people how the page is reached.
func (c *care) toPage() action.Way {
	return action.Way{Name: c.rack.way.host(), URLs: c.rack.way.urls(), Signs: c.signs.list()}
}
