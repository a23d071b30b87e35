package phonesim

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"testing"
	"time"
)

// FuzzBulkWrites feeds transfers to the endpoint. The first byte of each is its length, so that all cuts are tried.
func FuzzBulkWrites(f *testing.F) {
	open := newMessage(cmdOPEN, 1, 0, []byte("shell:\x00"), true)
	f.Add(slices.Concat([]byte{24}, open.bytes(), []byte{7}, open.payload), false)
	f.Add(slices.Concat([]byte{24}, newMessage(cmdWRTE, 1, 1, make([]byte, 64), true).bytes(), []byte{64}, make([]byte, 64), []byte{0}), true)
	f.Fuzz(func(t *testing.T, b []byte, optional bool) {
		const limit = 200
		e := &outEndpoint{packet: packetFull}
		if optional {
			e.zero = ZeroPacketsOptional
		}
		for len(b) > 0 {
			n := min(int(b[0]), len(b)-1)
			m, err := e.write(b[1:1+n], limit)
			if err != nil {
				return
			}
			if m != nil && (int(m.length) != len(m.payload) || len(m.payload) > limit || m.magic != ^uint32(m.command)) {
				t.Fatalf("message %+v", m)
			}
			b = b[1+n:]
		}
	})
}

// FuzzFileTransfer feeds bytes to the sync service, which must end when they do.
func FuzzFileTransfer(f *testing.F) {
	f.Add([]byte(request(syncSend, "/a,33188") + chunks("data", 1) + request(syncRecv, "/a")))
	f.Add([]byte(request(syncSend2, "/a") + syncWord(syncSend2, 33188) + "\x04\x00\x00\x00" + chunks("data", 1)))
	f.Add([]byte(request(syncRecv2, "/file") + syncWord(syncRecv2, flagLZ4) + request(syncList2, "/") + request(syncStat2, "/file") + request(syncStat, "/")))
	f.Fuzz(func(t *testing.T, b []byte) {
		system := testSystem()
		system.Capacity = 1 << 20
		system.WriteFile("/file", []byte("content"), 0o644, time.Unix(0, 0))
		var out bytes.Buffer
		y := &syncService{
			system: system, release: releases[14],
			r: bufio.NewReader(bytes.NewReader(b)), w: bufio.NewWriter(&out),
		}
		y.serve()
	})
}

// FuzzShellInput feeds bytes to the shell protocol's reader.
func FuzzShellInput(f *testing.F) {
	f.Add([]byte(shellPacket(shellStdin, "in") + shellPacket(shellCloseStdin, "") + shellPacket(shellStdin, "late")))
	f.Add([]byte(shellPacket(shellWindowSize, "24x80,0x0\x00") + "\x00\xff\xff\xff\xffshort"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, stdin := io.Pipe()
		done := make(chan int)
		go func() {
			data, _ := io.ReadAll(in)
			done <- len(data)
		}()
		demuxShell(bytes.NewReader(b), stdin)
		if n := <-done; n > len(b) {
			t.Errorf("%d bytes of input from %d bytes", n, len(b))
		}
	})
}
