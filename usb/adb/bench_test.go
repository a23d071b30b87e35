package adb_test

import (
	"io"
	"net"
	"testing"

	"phonerack/usb/adb"
	"phonerack/usb/adb/adbtest"
)

// BenchmarkPipe moves data both ways over net.Pipe, as adbd's own sink: and
// source: services do over USB. It bounds what this package adds to a transfer.
func BenchmarkPipe(b *testing.B) {
	chunk := make([]byte, 1<<20)
	for _, features := range [][]string{nil, {adb.FeatureDelayedAck}} {
		name := "plain"
		if features != nil {
			name = features[0]
		}
		c := benchPhone(b, &adbtest.Phone{Features: features, Window: 4 << 20, Serve: func(service string, s *adbtest.Service) error {
			if service == "sink:" {
				_, _ = io.Copy(io.Discard, s)
				return nil
			}
			for {
				if _, err := s.Write(chunk); err != nil {
					return nil
				}
			}
		}})
		b.Run(name+"/sink", func(b *testing.B) {
			s, err := c.Open(b.Context(), "sink:")
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := s.Write(chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/source", func(b *testing.B) {
			s, err := c.Open(b.Context(), "source:")
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			buf := make([]byte, len(chunk))
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := io.ReadFull(s, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchPhone(b *testing.B, p *adbtest.Phone) *adb.Conn {
	b.Helper()
	host, far := net.Pipe()
	runPhone(b, p, adb.NewStreamLink(far))
	return connect(b, adb.NewStreamLink(host), adb.Options{})
}
