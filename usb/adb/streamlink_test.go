package adb_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"phonerack/usb/adb"
)

// trickle is a byte stream that is cut at arbitrary places.
type trickle struct {
	pieces [][]byte
}

func (s *trickle) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}
func (s *trickle) Write(p []byte) (int, error) { return len(p), nil }
func (s *trickle) Close() error                { return nil }

func TestStreamLinkReadsFramesCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire []byte
		var sent []adb.Packet
		for range rapid.IntRange(1, 5).Draw(t, "packets") {
			p := adb.Packet{
				Command: rapid.SampledFrom([]adb.Command{adb.CommandWrite, adb.CommandOkay, adb.CommandOpen}).Draw(t, "command"),
				Arg0:    rapid.Uint32().Draw(t, "arg0"), Arg1: rapid.Uint32().Draw(t, "arg1"),
				Payload: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload"),
			}
			sent = append(sent, p)
			wire = append(p.Header().Append(wire), p.Payload...)
		}
		s := &trickle{}
		for len(wire) > 0 {
			n := rapid.IntRange(1, len(wire)).Draw(t, "piece")
			s.pieces = append(s.pieces, wire[:n])
			wire = wire[n:]
		}
		link := adb.NewStreamLink(s)
		for _, want := range sent {
			got, err := link.ReadPacket(context.Background(), normal)
			if err != nil {
				t.Fatal(err)
			}
			if got.Command != want.Command || got.Arg0 != want.Arg0 || got.Arg1 != want.Arg1 || !bytes.Equal(got.Payload, want.Payload) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		if _, err := link.ReadPacket(context.Background(), normal); !errors.Is(err, adb.ErrDisconnected) || !errors.Is(err, io.EOF) {
			t.Fatalf("at the end: %v", err)
		}
	})
}

func TestStreamLinkEndInsideAPacket(t *testing.T) {
	wire := adb.Packet{Command: adb.CommandWrite, Payload: make([]byte, 9)}.Header().Append(nil)
	wire = append(wire, make([]byte, 9)...)
	for cut := 1; cut < len(wire); cut++ {
		_, err := adb.NewStreamLink(&trickle{[][]byte{wire[:cut]}}).ReadPacket(t.Context(), normal)
		if !errors.Is(err, adb.ErrDisconnected) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestStreamLinkContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		link, peer := adb.NewStreamLink(a), adb.NewStreamLink(b)
		defer peer.Close()
		defer link.Close()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := link.ReadPacket(ctx, normal); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		sent := adb.Packet{Command: adb.CommandWrite, Payload: pattern(10_000)}
		exchange(t.Context(), t, peer, link, sent)
		exchange(t.Context(), t, link, peer, sent)

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := link.WritePacket(ctx, sent); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := link.WritePacket(t.Context(), sent); err == nil {
			t.Fatal("a link with a packet cut short is still written to")
		}
	})
}

// A stream without deadlines is closed instead.
func TestStreamLinkWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		link := adb.NewStreamLink(struct{ io.ReadWriteCloser }{a})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := link.ReadPacket(ctx, normal); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if _, err := link.ReadPacket(t.Context(), normal); !errors.Is(err, adb.ErrDisconnected) {
			t.Fatal(err)
		}
	})
}
