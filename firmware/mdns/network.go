package mdns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

const port = 5353

var (
	group4 = netip.MustParseAddr("224.0.0.251")
	group6 = netip.MustParseAddr("ff02::fb")
)

// A Link is an interface with one family of addresses.
type Link struct {
	Interface string
	Index     int
	IPv6      bool           // packets are IPv6
	Addresses []netip.Prefix // of the interface, of both families
}

// key tells links apart; another address makes another link.
func (l Link) key() string {
	return fmt.Sprintf("%s %d %t %v", l.Interface, l.Index, l.IPv6, l.Addresses)
}

// holds tells whether an address is on the link.
func (l Link) holds(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	return a.IsLinkLocalUnicast() || slices.ContainsFunc(l.Addresses, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Network is what the responder speaks over; nil in Options is the kernel's.
type Network interface {
	// Links lists the links that are up and can multicast.
	Links() ([]Link, error)
	Open(Link) (Socket, error)
}

// Socket is a member of the multicast group on one link.
type Socket interface {
	// Read blocks until a packet comes or the socket is closed.
	Read(buf []byte) (n int, from netip.AddrPort, err error)
	// Send sends to the group if to is zero.
	Send(packet []byte, to netip.AddrPort) error
	Close() error
}

// kernel is this machine's network.
type kernel struct{}

// maxLinks bounds the links that are used.
const maxLinks = 32

func (kernel) Links() ([]Link, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var links []Link
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 || i.Flags&net.FlagMulticast == 0 || i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			continue // it went in between
		}
		l := Link{Interface: i.Name, Index: i.Index}
		has4, has6 := false, false
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			l.Addresses = append(l.Addresses, p)
			has4, has6 = has4 || p.Addr().Is4(), has6 || p.Addr().Is6()
		}
		slices.SortFunc(l.Addresses, func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
		if has4 {
			links = append(links, l)
		}
		if has6 {
			l.IPv6 = true
			links = append(links, l)
		}
	}
	return links[:min(len(links), maxLinks)], nil
}

func (kernel) Open(l Link) (Socket, error) {
	i, err := net.InterfaceByIndex(l.Index)
	if err != nil {
		return nil, fmt.Errorf("join mDNS on %s: %w", l.Interface, err)
	}
	network, group := "udp4", group4
	if l.IPv6 {
		network, group = "udp6", group6
	}
	conn, err := net.ListenMulticastUDP(network, i, &net.UDPAddr{IP: group.AsSlice(), Port: port})
	if err != nil {
		return nil, fmt.Errorf("join mDNS on %s: %w", l.Interface, err)
	}
	if err := configure(conn, l); err != nil {
		conn.Close()
		return nil, fmt.Errorf("join mDNS on %s: %w", l.Interface, err)
	}
	if l.IPv6 {
		group = group.WithZone(i.Name)
	}
	return &socket{conn, netip.AddrPortFrom(group, port)}, nil
}

// configure sets the hop limit of RFC 6762, section 11, and has the socket get packets of its own interface alone: Linux gives
// it those of all interfaces that anybody has joined the group on.
func configure(conn *net.UDPConn, l Link) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		if l.IPv6 {
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0)
		} else {
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0)
		}
	})
	if err := errors.Join(err, set); err != nil {
		return err
	}
	if l.IPv6 {
		return ipv6.NewPacketConn(conn).SetMulticastHopLimit(255)
	}
	return ipv4.NewPacketConn(conn).SetMulticastTTL(255)
}

type socket struct {
	*net.UDPConn
	group netip.AddrPort
}

func (s *socket) Read(buf []byte) (int, netip.AddrPort, error) { return s.ReadFromUDPAddrPort(buf) }

func (s *socket) Send(packet []byte, to netip.AddrPort) error {
	if !to.IsValid() {
		to = s.group
	}
	_, err := s.WriteToUDPAddrPort(packet, to)
	return err
}
