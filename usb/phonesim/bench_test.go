package phonesim

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// BenchmarkStream measures one stream over net.Pipe, in payloads of 1 MiB. "window" is with delayed acknowledgement.
func BenchmarkStream(b *testing.B) {
	for _, mode := range []struct{ name, features string }{{"one in flight", ""}, {"window", "delayed_ack"}} {
		b.Run("source/"+mode.name, func(b *testing.B) { benchmarkSource(b, mode.features) })
		b.Run("sink/"+mode.name, func(b *testing.B) { benchmarkSink(b, mode.features) })
	}
}

// benchHost is a host without any checks.
type benchHost struct {
	b      *testing.B
	nc     net.Conn
	header [headerSize]byte
	buf    []byte
}

func startBench(b *testing.B, features string) *benchHost {
	p, err := New(Config{System: testSystem()})
	if err != nil {
		b.Fatal(err)
	}
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.ServeStream(context.Background(), far)
	}()
	b.Cleanup(func() {
		near.Close()
		<-done
	})
	h := &benchHost{b: b, nc: near, buf: make([]byte, 1<<20)}
	h.send(newMessage(cmdCNXN, versionNoSums, 1<<20, []byte("host::features="+features), true))
	h.next()
	return h
}

func (h *benchHost) send(m message) {
	h.nc.Write(m.bytes())
	if len(m.payload) > 0 {
		h.nc.Write(m.payload)
	}
}

func (h *benchHost) next() header {
	if _, err := io.ReadFull(h.nc, h.header[:]); err != nil {
		h.b.Fatal(err)
	}
	m := parseHeader(h.header[:])
	if _, err := io.ReadFull(h.nc, h.buf[:m.length]); err != nil {
		h.b.Fatal(err)
	}
	return m
}

func (h *benchHost) open(service, features string) {
	window := uint32(0)
	if features != "" {
		window = 32 << 20
	}
	h.send(newMessage(cmdOPEN, 1, window, []byte(service+"\x00"), false))
	h.next()
}

func benchmarkSource(b *testing.B, features string) {
	h := startBench(b, features)
	h.open("source:9000000000000", features)
	b.SetBytes(1 << 20)
	for b.Loop() {
		m := h.next()
		var ack []byte
		if features != "" {
			ack = binary.LittleEndian.AppendUint32(nil, m.length)
		}
		h.send(newMessage(cmdOKAY, 1, m.arg0, ack, false))
	}
}

func benchmarkSink(b *testing.B, features string) {
	h := startBench(b, features)
	h.open("sink:9000000000000", features)
	payload := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		h.send(newMessage(cmdWRTE, 1, 1, payload, false))
		h.next()
	}
}
