package firmware

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
)

// TestAddressesOfThePage: each that a person may have to try, the one to try first first.
func TestAddressesOfThePage(t *testing.T) {
	own := func(all ...string) func() ([]netip.Addr, error) {
		return func() ([]netip.Addr, error) {
			var parsed []netip.Addr
			for _, a := range all {
				parsed = append(parsed, netip.MustParseAddr(a))
			}
			return parsed, nil
		}
	}
	listens := func(all ...string) (parsed []netip.AddrPort) {
		for _, d := range all {
			parsed = append(parsed, netip.MustParseAddrPort(d))
		}
		return parsed
	}
	mixed := own("fe80::1:2%eth0", "169.254.7.9", "2001:db8::7", "::1", "192.0.2.7", "10.0.0.7")
	for _, c := range []struct {
		name string
		way  way
		want string
	}{
		{"all addresses, port 80", way{reachable: listens("[::]:80"), addresses: mixed}, "[http://192.0.2.7/ http://10.0.0.7/ http://169.254.7.9/ http://[2001:db8::7]/ http://[fe80::1:2]/]"},
		{"those of IPv4, another port", way{reachable: listens("0.0.0.0:8080"), addresses: mixed}, "[http://192.0.2.7:8080/ http://10.0.0.7:8080/ http://169.254.7.9:8080/]"},
		{"no DHCP server", way{reachable: listens("[::]:80"), addresses: own("169.254.7.9", "fe80::1:2")}, "[http://169.254.7.9/ http://[fe80::1:2]/]"},
		{"one address, and another port", way{reachable: listens("192.0.2.7:80", "[fe80::1%eth0]:81", "192.0.2.7:80"), addresses: mixed}, "[http://192.0.2.7/ http://[fe80::1]:81/]"},
		{"no cable", way{reachable: listens("[::]:80"), addresses: own()}, "[]"},
		{"no page", way{addresses: mixed}, "[]"},
		{"interfaces that cannot be listed", way{reachable: listens("[::]:80", "192.0.2.7:80"), addresses: func() ([]netip.Addr, error) { return nil, errors.New("no") }}, "[http://192.0.2.7/]"},
	} {
		if got := fmt.Sprint(c.way.urls()); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
