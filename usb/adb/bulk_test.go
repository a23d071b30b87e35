package adb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/adb/adbtest"
)

var (
	payloadSizes = []int{0, 1, 63, 64, 65, 511, 512, 513, 1024, 507 + 1024, 507 + 3*1024, 16384, 16384 * 2, 128 << 10, 200_000, 256 << 10}
	normal       = adb.Expect{MaxPayload: adb.MaxPayload}
	handshaking  = adb.Expect{MaxPayload: adb.MaxPayloadV1, Handshake: true}
)

func bulkLink(t *testing.T, c *adbtest.Cable, o adb.BulkOptions) adb.Link {
	t.Helper()
	link, err := adb.NewBulkLink(c.Host(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestBulkCarriesEverySizeBothWays(t *testing.T) {
	for _, mps := range []int{64, 512, 1024} {
		t.Run(fmt.Sprint(mps), func(t *testing.T) {
			cable := adbtest.NewCable(mps)
			host, phone := bulkLink(t, cable, adb.BulkOptions{MaxPacket: mps}), cable.Phone()
			ctx := within(t)
			for i, size := range payloadSizes {
				sent := adb.Packet{Command: adb.CommandWrite, Arg0: uint32(i), Arg1: 7, Payload: pattern(size)}
				exchange(ctx, t, host, phone, sent)
				exchange(ctx, t, phone, host, sent)
			}
		})
	}
}

func exchange(ctx context.Context, t *testing.T, from, to adb.Link, sent adb.Packet) {
	t.Helper()
	written := make(chan error, 1)
	go func() { written <- from.WritePacket(ctx, sent) }()
	got, err := to.ReadPacket(ctx, normal)
	if err != nil {
		t.Fatalf("%v: %v", sent, err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if got.Command != sent.Command || got.Arg0 != sent.Arg0 || !bytes.Equal(got.Payload, sent.Payload) {
		t.Fatalf("got %v, want %v", got, sent)
	}
}

func TestBulkZeroLengthPackets(t *testing.T) {
	for _, test := range []struct {
		size int
		off  bool
		want []int
	}{
		{0, false, []int{24}},
		{511, false, []int{24, 511}},
		{512, false, []int{24, 512, 0}},
		{512, true, []int{24, 512}},
		{513, false, []int{24, 513}},
		{128<<10 + 512, false, []int{24, 128 << 10, 512, 0}},
		{128<<10 + 5, false, []int{24, 128 << 10, 5}},
	} {
		t.Run(fmt.Sprint(test.size, test.off), func(t *testing.T) {
			cable := adbtest.NewCable(512)
			host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 512, NoZeroPacket: test.off})
			ctx := within(t)
			go func() {
				for {
					if _, err := cable.Phone().ReadPacket(ctx, normal); err != nil {
						return
					}
				}
			}()
			if err := host.WritePacket(ctx, adb.Packet{Command: adb.CommandWrite, Payload: pattern(test.size)}); err != nil {
				t.Fatal(err)
			}
			cable.Unplug()
			if _, writes := cable.Transfers(); !slices.Equal(writes, test.want) {
				t.Errorf("writes %v, want %v", writes, test.want)
			}
		})
	}
}

func TestBulkAsksForOnePacketWhileIdle(t *testing.T) {
	cable := adbtest.NewCable(512)
	host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 512})
	cable.Queue(adb.Packet{Command: adb.CommandWrite, Payload: make([]byte, 1000)}.Header().Append(nil))
	cable.Queue(pattern(1000))
	if _, err := host.ReadPacket(within(t), normal); err != nil {
		t.Fatal(err)
	}
	if reads, _ := cable.Transfers(); !slices.Equal(reads, []int{512, 1024}) {
		t.Errorf("reads of %v", reads)
	}
}

// A read that its context ended may have moved any number of bytes already.
func TestBulkCancelledReadLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := adb.Packet{Command: adb.CommandWrite, Arg0: 1, Arg1: 2, Payload: pattern(1300)}
		head := sent.Header().Append(nil)
		for cut := 0; cut <= 3; cut++ {
			cable := adbtest.NewCable(512)
			host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 512})
			pieces := [][]byte{head, sent.Payload[:512], sent.Payload[512:1024], sent.Payload[1024:]}
			for i := range cut {
				cable.Queue(pieces[i])
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := host.ReadPacket(ctx, normal); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("cut %d: %v", cut, err)
			}
			cancel()
			for _, piece := range pieces[cut:] {
				cable.Queue(piece)
			}
			got, err := host.ReadPacket(t.Context(), normal)
			if err != nil || !bytes.Equal(got.Payload, sent.Payload) {
				t.Fatalf("cut %d: %v, %v", cut, got, err)
			}
		}
	})
}

// Eight-byte packets: a header may be cut too.
func TestBulkCancelledHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		head := adb.Packet{Command: adb.CommandOkay, Arg0: 1, Arg1: 2}.Header().Append(nil)
		for cut := 0; cut <= 24; cut += 8 {
			cable := adbtest.NewCable(8)
			host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 8})
			if cut > 0 {
				cable.Queue(head[:cut])
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := host.ReadPacket(ctx, normal)
			cancel()
			if cut == 24 {
				if err != nil {
					t.Fatal(err)
				}
				continue
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cable.Queue(head[cut:])
			if got, err := host.ReadPacket(t.Context(), normal); err != nil || got.Arg1 != 2 {
				t.Fatalf("cut %d: %v, %v", cut, got, err)
			}
		}
	})
}

func TestBulkUnplugAtAnyByte(t *testing.T) {
	sent := adb.Packet{Command: adb.CommandWrite, Payload: pattern(1024)}
	for cut := range 24 + 1024 {
		cable := adbtest.NewCable(64)
		host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 64})
		cable.Queue(sent.Header().Append(nil))
		cable.Queue(sent.Payload)
		cable.UnplugAfterIn(cut)
		if _, err := host.ReadPacket(within(t), normal); !errors.Is(err, adb.ErrDisconnected) {
			t.Fatalf("read cut at %d: %v", cut, err)
		}

		cable = adbtest.NewCable(64)
		host = bulkLink(t, cable, adb.BulkOptions{MaxPacket: 64})
		cable.UnplugAfterOut(cut)
		if err := host.WritePacket(within(t), sent); !errors.Is(err, adb.ErrDisconnected) {
			t.Fatalf("write cut at %d: %v", cut, err)
		}
		if err := host.WritePacket(within(t), sent); !errors.Is(err, adb.ErrDisconnected) {
			t.Fatalf("second write: %v", err)
		}
	}
}

func TestBulkErrorsEndTheLink(t *testing.T) {
	header := func(n int) []byte {
		return adb.Packet{Command: adb.CommandWrite, Payload: make([]byte, n)}.Header().Append(nil)
	}
	for _, test := range []struct {
		name     string
		sabotage func(*adbtest.Cable)
		want     error
	}{
		{"stall", (*adbtest.Cable).StallIn, adb.ErrStall},
		{"wrong size", func(c *adbtest.Cable) { c.Queue(pattern(23)) }, adb.ErrProtocol},
		{"too long", func(c *adbtest.Cable) { c.Queue(header(adb.MaxPayload + 1)) }, adb.ErrProtocol},
		{"payload too long", func(c *adbtest.Cable) { c.Queue(header(10)); c.Queue(pattern(11)) }, adb.ErrProtocol},
		{"empty transfers", func(c *adbtest.Cable) {
			for range 100 {
				c.Queue(nil)
			}
		}, adb.ErrProtocol},
		{"unplug", (*adbtest.Cable).Unplug, adb.ErrDisconnected},
	} {
		t.Run(test.name, func(t *testing.T) {
			cable := adbtest.NewCable(512)
			host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 512})
			test.sabotage(cable)
			for range 2 {
				if _, err := host.ReadPacket(within(t), normal); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			}
		})
	}
}

func TestBulkToleratesFewEmptyTransfers(t *testing.T) {
	cable := adbtest.NewCable(512)
	host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 512})
	sent := adb.Packet{Command: adb.CommandWrite, Payload: pattern(512)}
	cable.Queue(nil)
	cable.Queue(sent.Header().Append(nil))
	cable.Queue(sent.Payload)
	cable.Queue(nil) // the zero-length packet that phones should not send
	cable.Queue(adb.Packet{Command: adb.CommandOkay}.Header().Append(nil))
	for _, want := range []adb.Command{adb.CommandWrite, adb.CommandOkay} {
		if p, err := host.ReadPacket(within(t), normal); err != nil || p.Command != want {
			t.Fatalf("%v, %v", p, err)
		}
	}
}

func TestBulkShrinksTransfersWhenMemoryIsShort(t *testing.T) {
	cable := adbtest.NewCable(512)
	cable.LimitMemory(20_000)
	host, phone := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 512}), cable.Phone()
	for range 2 {
		sent := adb.Packet{Command: adb.CommandWrite, Payload: pattern(100 << 10)}
		exchange(within(t), t, host, phone, sent)
		exchange(within(t), t, phone, host, sent)
	}
	_, writes := cable.Transfers()
	for _, n := range writes[len(writes)-5:] {
		if n > 20_000 {
			t.Errorf("transfer of %d bytes after memory had been short", n)
		}
	}
}

func TestBulkWaitsForMemoryOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cable := adbtest.NewCable(512)
		cable.LimitMemory(8)
		host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 512})
		go func() {
			time.Sleep(time.Second)
			cable.LimitMemory(0)
		}()
		phone := cable.Phone()
		exchange(t.Context(), t, host, phone, adb.Packet{Command: adb.CommandWrite, Payload: pattern(3)})

		cable.LimitMemory(8)
		start := time.Now()
		err := host.WritePacket(t.Context(), adb.Packet{Command: adb.CommandOkay})
		if !errors.Is(err, adb.ErrNoMemory) || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// shortOnce has no memory for the first zero-length packet.
type shortOnce struct {
	adb.Endpoints
	failed bool
}

func (s *shortOnce) Write(ctx context.Context, buf []byte) (int, error) {
	if len(buf) == 0 && !s.failed {
		s.failed = true
		return 0, adb.ErrNoMemory
	}
	return s.Endpoints.Write(ctx, buf)
}

func TestBulkWaitsForMemoryForTheZeroLengthPacket(t *testing.T) {
	cable := adbtest.NewCable(512)
	ends := &shortOnce{Endpoints: cable.Host()}
	host, err := adb.NewBulkLink(ends, adb.BulkOptions{MaxPacket: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	phone := cable.Phone()
	for _, size := range []int{16384, 3} { // the phone wants its zero-length packet before the second
		exchange(within(t), t, host, phone, adb.Packet{Command: adb.CommandWrite, Payload: pattern(size)})
	}
	if !ends.failed {
		t.Error("no zero-length packet was written")
	}
}

func TestBulkDiscardsStaleFramesWhileConnecting(t *testing.T) {
	head := func(c adb.Command, n int) []byte {
		return adb.Packet{Command: c, Arg0: 0x1bb, Arg1: 1, Payload: make([]byte, n)}.Header().Append(nil)
	}
	answer := adb.Packet{Command: adb.CommandConnect, Arg0: adb.VersionMin, Arg1: 4096, Payload: []byte(adbtest.DeviceBanner())}
	answer.Check = answer.Sum()
	for name, stale := range map[string][][]byte{
		"CLSE before AUTH":           {head(adb.CommandClose, 0)},
		"WRTE with payload":          {head(adb.CommandWrite, 1300), pattern(1300)},
		"payload alone":              {pattern(4096)},
		"payload of 24 bytes":        {pattern(24)},
		"CNXN cut before payload":    {head(adb.CommandConnect, 77)},
		"CNXN with another's data":   {head(adb.CommandConnect, 77), pattern(300)},
		"CNXN with a longer payload": {head(adb.CommandConnect, 24), pattern(40)},
		"oversized":                  {head(adb.CommandWrite, adb.MaxPayload+1)},
		"zero-length":                {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cable := adbtest.NewCable(512)
			host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 512})
			for _, b := range stale {
				cable.Queue(b)
			}
			for range 2 { // a lost answer is asked for again
				cable.Queue(answer.Header().Append(nil))
				cable.Queue(answer.Payload)
			}
			p, err := host.ReadPacket(within(t), handshaking)
			if err != nil || p.Command != adb.CommandConnect || !bytes.Equal(p.Payload, answer.Payload) {
				t.Fatalf("%v, %v", p, err)
			}
		})
	}
}

func TestLinksNeverInterleaveConcurrentWriters(t *testing.T) {
	cable := adbtest.NewCable(64)
	a, b := net.Pipe()
	for name, ends := range map[string][2]adb.Link{
		"bulk":   {bulkLink(t, cable, adb.BulkOptions{MaxPacket: 64}), cable.Phone()},
		"stream": {adb.NewStreamLink(a), adb.NewStreamLink(b)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			var wait sync.WaitGroup
			for i := range 4 {
				wait.Go(func() {
					for range 20 {
						p := adb.Packet{Command: adb.CommandWrite, Payload: bytes.Repeat([]byte{byte(i)}, 5000+i)}
						p.Check = p.Sum()
						if err := ends[0].WritePacket(ctx, p); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for range 80 {
				p, err := ends[1].ReadPacket(ctx, normal)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Verify(); err != nil {
					t.Fatal(err)
				}
			}
			wait.Wait()
			ends[0].Close()
			ends[1].Close()
		})
	}
}

func TestBulkOverflowIsReported(t *testing.T) {
	cable := adbtest.NewCable(512)
	// Told the wrong packet size, the link asks for less than a packet.
	host := bulkLink(t, cable, adb.BulkOptions{MaxPacket: 64})
	cable.Queue(pattern(100))
	if _, err := host.ReadPacket(within(t), normal); !errors.Is(err, adb.ErrOverflow) {
		t.Errorf("got %v", err)
	}
}

func TestNewBulkLinkRefusesPacketSizes(t *testing.T) {
	for _, mps := range []int{0, -1, 7, 100, 2048} {
		if _, err := adb.NewBulkLink(adbtest.NewCable(64).Host(), adb.BulkOptions{MaxPacket: mps}); err == nil {
			t.Errorf("packet size %d accepted", mps)
		}
	}
}
