package phonesim_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
)

// nothing is a phone's system that does nothing.
type nothing struct{ phonesim.System }

func (nothing) Property(string) string { return "" }

// connected is a phone with a host on a byte stream.
func connected(t *testing.T, android int) (*phonesim.Phone, *adb.Conn) {
	t.Helper()
	p, err := phonesim.New(phonesim.Config{Android: android, System: nothing{}})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- p.ServeStream(context.Background(), far) }()
	conn, err := adb.Connect(t.Context(), adb.NewStreamLink(near), adb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if v := p.Violations(); len(v) > 0 {
			t.Errorf("the host broke rules: %v", v)
		}
	})
	return p, conn
}

func TestAPhoneReachesAHostByReverse(t *testing.T) {
	for _, android := range []int{7, 12, 15} { // without and with delayed acknowledgement
		t.Run(fmt.Sprint(android), func(t *testing.T) {
			p, conn := connected(t, android)
			l, err := conn.Reverse(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			echoed := make(chan error, 1)
			go func() {
				c, err := l.Accept()
				if err == nil {
					_, err = io.Copy(c, c)
					c.Close()
				}
				echoed <- err
			}()
			c, err := p.DialReverse(ctx, l.Port())
			if err != nil {
				t.Fatal(err)
			}
			const size = 3 << 20
			go io.WriteString(c, strings.Repeat("0123456789abcdef", size/16))
			got := make([]byte, size)
			if _, err := io.ReadFull(c, got); err != nil || string(got[size-16:]) != "0123456789abcdef" {
				t.Errorf("echo: %v", err)
			}
			c.Close()
			if err := <-echoed; err != nil {
				t.Errorf("accepted: %v", err)
			}
			if _, err := conn.Reverse(ctx, l.Port()); !errors.Is(err, adb.ErrRefused) {
				t.Errorf("the port is taken: %v", err)
			}
			if _, err := p.DialReverse(ctx, l.Port()+1); !errors.Is(err, phonesim.ErrNoListener) {
				t.Errorf("a port that nobody serves: %v", err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if _, err := p.DialReverse(ctx, l.Port()); !errors.Is(err, phonesim.ErrNoListener) {
				t.Errorf("after Close: %v", err)
			}
			if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("accept after Close: %v", err)
			}
		})
	}
}

func TestConnectionsThatNobodyAcceptsAreBounded(t *testing.T) {
	p, conn := connected(t, 14)
	l, err := conn.Reverse(t.Context(), 8000)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 20 {
		if _, err := p.DialReverse(t.Context(), 8000); errors.Is(err, phonesim.ErrNoListener) {
			refused++
		}
	}
	if refused != 4 {
		t.Errorf("%d of 20 connections were refused", refused)
	}
	conn.Close()
	for {
		if _, err := l.Accept(); err != nil {
			break
		}
	}
	if err := l.Close(); err != nil {
		t.Errorf("close after the connection's end: %v", err)
	}
}
