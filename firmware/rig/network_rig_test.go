//go:build rig

package rig_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig"
)

// TestNetworkOfTheBoard: the host's loopback is there, and nothing else can be reached.
func TestNetworkOfTheBoard(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello from the host\n")
			c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b := boot(t, rig.BoardConfig{Network: true})
	ctx := within(t, limit)
	out, _, err := b.Run(ctx, "nc -w 10 "+rig.HostAddress+" "+port+" </dev/null; ip route")
	if err != nil || !strings.Contains(out, "hello from the host") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(out, "default") {
		t.Errorf("there is a way to elsewhere:\n%s", out)
	}
	begun := time.Now()
	if out, exit, err := b.Run(ctx, "nc -w 3 192.0.2.1 80 </dev/null"); err != nil || exit == 0 {
		t.Errorf("after %s: exit code %d, %v\n%s", time.Since(begun), exit, err, out)
	}
}
