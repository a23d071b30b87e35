package adb_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/adb/adbtest"
)

// dialogue runs test against a connection whose phone follows script.
func dialogue(t *testing.T, o adb.Options, script func(*adbtest.Peer), test func(*testing.T, *adb.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		link := adbtest.Dial(t, script)
		c := connectSlowly(t, link, o)
		defer c.Close()
		test(t, c)
	})
}

func mustOpen(t *testing.T, c *adb.Conn, service string) *adb.Stream {
	t.Helper()
	s, err := c.Open(t.Context(), service)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStreamLife(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		id := p.ExpectOpen("shell:id")
		p.Send(adb.CommandOkay, 7, id)
		p.SendData(adb.CommandWrite, 7, id, []byte("uid="))
		p.ExpectArgs(adb.CommandOkay, id, 7)
		p.SendData(adb.CommandWrite, 7, id, nil) // legal, and to be acknowledged
		p.ExpectArgs(adb.CommandOkay, id, 7)
		p.SendData(adb.CommandWrite, 7, id, []byte("0"))
		p.ExpectArgs(adb.CommandOkay, id, 7)
		p.Send(adb.CommandClose, 7, id)
		p.ExpectArgs(adb.CommandClose, id, 7)
		p.Send(adb.CommandClose, 7, id) // Android 7 says it twice
		p.Quiet(time.Second)
	}, func(t *testing.T, c *adb.Conn) {
		s := mustOpen(t, c, "shell:id")
		got, err := io.ReadAll(s)
		if err != nil || string(got) != "uid=0" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := s.Write([]byte("x")); !errors.Is(err, adb.ErrStreamClosed) {
			t.Errorf("write after CLSE: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after Close: %v", err)
		}
		<-c.Done()
	})
}

func TestWritesWaitForOkay(t *testing.T) {
	dialogue(t, adb.Options{MaxPayload: adb.MaxPayloadV1}, func(p *adbtest.Peer) {
		p.Accept()
		id := p.ExpectOpen("x:")
		p.Send(adb.CommandOkay, 7, id)
		p.ExpectData("one")
		p.Quiet(time.Second)
		p.Send(adb.CommandOkay, 7, id)
		p.ExpectData("two")
		p.Send(adb.CommandOkay, 7, id)
		for _, n := range []int{4096, 4096, 1808} {
			if packet := p.ExpectArgs(adb.CommandWrite, id, 7); len(packet.Payload) != n {
				t.Errorf("%v, want %d bytes", packet, n)
			}
			p.Send(adb.CommandOkay, 7, id)
		}
		p.ExpectData("end")
		p.ExpectArgs(adb.CommandClose, id, 7)
		// Late frames of the closed stream.
		p.Send(adb.CommandOkay, 7, id)
		p.ExpectArgs(adb.CommandClose, id, 7)
		p.SendData(adb.CommandWrite, 7, id, []byte("late"))
		p.Send(adb.CommandClose, 7, id)
		p.Quiet(time.Second)
	}, func(t *testing.T, c *adb.Conn) {
		s := mustOpen(t, c, "x:")
		for _, data := range [][]byte{[]byte("one"), []byte("two"), pattern(10_000), []byte("end")} {
			if n, err := s.Write(data); n != len(data) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		s.Close()
		<-c.Done()
	})
}

func TestOpenRefused(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		p.Send(adb.CommandClose, 0, p.ExpectOpen("shell:rm secret"))
		p.Quiet(time.Second)
	}, func(t *testing.T, c *adb.Conn) {
		_, err := c.Open(t.Context(), "shell:rm secret")
		if !errors.Is(err, adb.ErrRefused) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
		<-c.Done()
	})
}

// A service that answers after it was given up is closed on the phone too.
func TestOpenGivenUp(t *testing.T) {
	dialogue(t, adb.Options{OpenTimeout: 5 * time.Second}, func(p *adbtest.Peer) {
		p.Timeout = time.Minute
		p.Accept()
		first := p.ExpectOpen("a:")
		second := p.ExpectOpen("b:")
		if first == second {
			t.Error("id reused")
		}
		time.Sleep(10 * time.Second)
		p.Send(adb.CommandOkay, 7, first)
		p.ExpectArgs(adb.CommandClose, first, 7)
		p.Send(adb.CommandOkay, 8, second)
		p.ExpectArgs(adb.CommandClose, second, 8)
	}, func(t *testing.T, c *adb.Conn) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Open(ctx, "a:"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := c.Open(t.Context(), "b:"); !errors.Is(err, adb.ErrTimeout) {
			t.Errorf("got %v", err)
		}
		<-c.Done()
	})
}

func TestPhoneMayNotOpenServices(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		p.SendData(adb.CommandOpen, 9, 0, []byte("tcp:22\x00"))
		p.ExpectArgs(adb.CommandClose, 0, 9)
		p.Send(adb.CommandClose, 3, 99) // never answered
		p.Send(0x12345678, 1, 2)        // unknown commands are skipped
		p.Quiet(time.Second)
	}, func(t *testing.T, c *adb.Conn) { <-c.Done() })
}

func TestRestartOfThePhonesAdbdEndsTheConnection(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		p.Online()
		p.UntilClosed()
	}, func(t *testing.T, c *adb.Conn) {
		<-c.Done()
		if !errors.Is(c.Err(), adb.ErrDisconnected) {
			t.Errorf("got %v", c.Err())
		}
	})
}

func TestFramesOfAnotherStreamAreNotMixedUp(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		id := p.ExpectOpen("x:")
		p.SendData(adb.CommandWrite, 7, id, []byte("too early"))
		p.Send(adb.CommandOkay, 7, id)
		p.SendData(adb.CommandWrite, 8, id, []byte("not mine"))
		p.Send(adb.CommandClose, 8, id)
		p.SendData(adb.CommandWrite, 7, id, []byte("mine"))
		p.ExpectArgs(adb.CommandOkay, id, 7)
		p.Send(adb.CommandClose, 0, id) // old phones leave their id out
		p.ExpectArgs(adb.CommandClose, id, 7)
	}, func(t *testing.T, c *adb.Conn) {
		got, err := io.ReadAll(mustOpen(t, c, "x:"))
		if err != nil || string(got) != "mine" {
			t.Errorf("%q, %v", got, err)
		}
		<-c.Done()
	})
}

func TestSlowReaderHoldsUpNobodyAndLittleMemory(t *testing.T) {
	const window = 64 << 10
	dialogue(t, adb.Options{MaxPayload: 16 << 10, Window: window}, func(p *adbtest.Peer) {
		p.Accept()
		slow, quick := p.ExpectOpen("slow:"), uint32(0)
		p.Send(adb.CommandOkay, 7, slow)
		for range window / (16 << 10) {
			p.SendData(adb.CommandWrite, 7, slow, make([]byte, 16<<10))
			p.ExpectArgs(adb.CommandOkay, slow, 7)
		}
		p.SendData(adb.CommandWrite, 7, slow, make([]byte, 16<<10)) // beyond: no OKAY
		p.Quiet(time.Second)
		quick = p.ExpectOpen("quick:")
		p.Send(adb.CommandOkay, 8, quick)
		p.SendData(adb.CommandWrite, 8, quick, []byte("still here"))
		p.ExpectArgs(adb.CommandOkay, quick, 8)
		p.Send(adb.CommandClose, 8, quick)
		p.ExpectArgs(adb.CommandClose, quick, 8)
		// The slow one is read at last.
		p.ExpectArgs(adb.CommandOkay, slow, 7)
		p.SendData(adb.CommandWrite, 7, slow, make([]byte, 16<<10))
		p.ExpectArgs(adb.CommandOkay, slow, 7)
		p.ExpectArgs(adb.CommandClose, slow, 7)
	}, func(t *testing.T, c *adb.Conn) {
		slow := mustOpen(t, c, "slow:")
		time.Sleep(2 * time.Second)
		quick := mustOpen(t, c, "quick:")
		if got, err := io.ReadAll(quick); err != nil || string(got) != "still here" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := io.ReadFull(slow, make([]byte, 96<<10)); err != nil {
			t.Error(err)
		}
		slow.Close()
		<-c.Done()
	})
}

func TestPhoneThatSendsWithoutLeaveLosesTheStream(t *testing.T) {
	for _, delayed := range []bool{false, true} {
		dialogue(t, adb.Options{MaxPayload: 4096, Window: 4096}, func(p *adbtest.Peer) {
			features, first := []string{}, []byte(nil)
			if delayed {
				features, first = append(features, adb.FeatureDelayedAck), []byte{0, 0, 1, 0}
			}
			p.Accept(features...)
			bad := p.ExpectOpen("bad:")
			p.SendData(adb.CommandOkay, 7, bad, first)
			p.SendData(adb.CommandWrite, 7, bad, make([]byte, 4096))
			overdrawn := 1
			if delayed {
				overdrawn = 8 << 20 / 4096
			} else {
				p.ExpectArgs(adb.CommandOkay, bad, 7)
			}
			for range overdrawn {
				p.SendData(adb.CommandWrite, 7, bad, make([]byte, 4096))
			}
			p.SendData(adb.CommandWrite, 7, bad, make([]byte, 1))
			p.ExpectArgs(adb.CommandClose, bad, 7)
			p.Send(adb.CommandClose, 0, p.ExpectOpen("alive:"))
			p.Send(adb.CommandClose, 7, bad)
		}, func(t *testing.T, c *adb.Conn) {
			s := mustOpen(t, c, "bad:")
			time.Sleep(time.Second)
			if _, err := io.ReadAll(s); !errors.Is(err, adb.ErrProtocol) {
				t.Errorf("got %v", err)
			}
			if _, err := s.Write([]byte("x")); !errors.Is(err, adb.ErrProtocol) {
				t.Errorf("got %v", err)
			}
			if _, err := c.Open(t.Context(), "alive:"); !errors.Is(err, adb.ErrRefused) {
				t.Errorf("got %v", err)
			}
			<-c.Done()
		})
	}
}

func credit(n int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func TestDelayedAck(t *testing.T) {
	const window = 64 << 10
	dialogue(t, adb.Options{MaxPayload: 4096, Window: window}, func(p *adbtest.Peer) {
		p.Accept(adb.FeatureDelayedAck)
		open := p.Expect(adb.CommandOpen)
		id := open.Arg0
		if open.Arg1 != window {
			t.Errorf("window of %d announced", open.Arg1)
		}
		p.SendData(adb.CommandOkay, 7, id, credit(10_000))
		for range 2 {
			p.ExpectArgs(adb.CommandWrite, id, 7)
		}
		p.Quiet(time.Second) // 1808 of credit left, less than a payload
		p.SendData(adb.CommandOkay, 7, id, credit(0))
		p.SendData(adb.CommandOkay, 7, id, credit(-1000))
		p.SendData(adb.CommandOkay, 7, id, []byte{1, 2, 3}) // not a count
		p.Send(adb.CommandOkay, 7, id)
		p.Quiet(time.Second)
		p.SendData(adb.CommandOkay, 7, id, credit(4096))
		p.ExpectArgs(adb.CommandWrite, id, 7)

		// The other way: credit comes back in lumps as data is read.
		for range 8 {
			p.SendData(adb.CommandWrite, 7, id, make([]byte, 4096))
		}
		p.Quiet(time.Second)
		returned := 0
		for returned < 8*4096 {
			returned += int(binary.LittleEndian.Uint32(p.ExpectArgs(adb.CommandOkay, id, 7).Payload))
		}
		if returned != 8*4096 {
			t.Errorf("%d bytes acknowledged", returned)
		}
		p.ExpectArgs(adb.CommandClose, id, 7)
	}, func(t *testing.T, c *adb.Conn) {
		s := mustOpen(t, c, "x:")
		if _, err := s.Write(make([]byte, 3*4096)); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := io.ReadFull(s, make([]byte, 8*4096)); err != nil {
			t.Error(err)
		}
		s.Close()
		<-c.Done()
	})
}

// A phone may wait for room for a whole payload: whatever was read goes back.
func TestDelayedAckGivesSmallChangeBack(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept(adb.FeatureDelayedAck)
		id := p.Expect(adb.CommandOpen).Arg0
		p.SendData(adb.CommandOkay, 7, id, credit(4096))
		p.SendData(adb.CommandWrite, 7, id, []byte("few bytes"))
		if ack := p.ExpectArgs(adb.CommandOkay, id, 7); !bytes.Equal(ack.Payload, credit(9)) {
			t.Errorf("acknowledged %x", ack.Payload)
		}
		p.UntilClosed()
	}, func(t *testing.T, c *adb.Conn) {
		if _, err := io.ReadFull(mustOpen(t, c, "x:"), make([]byte, 9)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// A phone whose whole window is smaller than a payload must not be waited for.
func TestDelayedAckSmallWindow(t *testing.T) {
	p := &adbtest.Phone{Features: []string{adb.FeatureDelayedAck}, Window: 1000, Serve: echo}
	c := phone(t, p, adb.Options{})
	s, err := c.Open(within(t), "echo:")
	if err != nil {
		t.Fatal(err)
	}
	checkEcho(t, s, pattern(100_000))
}

func TestDelayedAckCanBeLeftOut(t *testing.T) {
	dialogue(t, adb.Options{NoDelayedAck: true}, func(p *adbtest.Peer) {
		if hello := p.Accept(adb.FeatureDelayedAck); strings.Contains(string(hello.Payload), "delayed_ack") {
			t.Errorf("announced: %q", hello.Payload)
		}
		if open := p.Expect(adb.CommandOpen); open.Arg1 != 0 {
			t.Errorf("window of %d", open.Arg1)
		}
	}, func(t *testing.T, c *adb.Conn) {
		if _, err := c.Open(t.Context(), "x:"); !errors.Is(err, adb.ErrDisconnected) {
			t.Errorf("got %v", err)
		}
	})
}

func TestManyStreamsAtOnce(t *testing.T) {
	for name, features := range map[string][]string{"plain": nil, "delayed_ack": {adb.FeatureDelayedAck}} {
		t.Run(name, func(t *testing.T) {
			c := phoneUSB(t, &adbtest.Phone{Features: features, Serve: echo}, 512, adb.Options{})
			var wait sync.WaitGroup
			for i := range 12 {
				wait.Go(func() {
					s, err := c.Open(within(t), "echo:")
					if err != nil {
						t.Error(err)
						return
					}
					checkEcho(t, s, pattern(50_000+i*512))
				})
			}
			wait.Wait()
		})
	}
}

func TestStreamDeadlines(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Timeout = time.Minute
		p.Accept()
		id := p.ExpectOpen("x:")
		p.Send(adb.CommandOkay, 7, id)
		p.ExpectData("first")
		time.Sleep(30 * time.Second)
		p.Send(adb.CommandOkay, 7, id)
		p.SendData(adb.CommandWrite, 7, id, []byte("late"))
		p.ExpectArgs(adb.CommandOkay, id, 7)
		p.ExpectData("third")
		p.ExpectArgs(adb.CommandClose, id, 7)
	}, func(t *testing.T, c *adb.Conn) {
		s := mustOpen(t, c, "x:")
		expired := func(_ int, err error) {
			t.Helper()
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
		_ = s.SetReadDeadline(time.Now().Add(time.Second))
		expired(s.Read(make([]byte, 1)))
		expired(s.Read(make([]byte, 1)))
		if _, err := s.Write([]byte("first")); err != nil {
			t.Error(err)
		}
		_ = s.SetWriteDeadline(time.Now().Add(time.Second))
		expired(s.Write([]byte("second")))
		// A deadline also ends a wait that began without one.
		_ = s.SetDeadline(time.Time{})
		time.AfterFunc(time.Second, func() { _ = s.SetDeadline(time.Now()) })
		expired(s.Read(make([]byte, 1)))
		_ = s.SetDeadline(time.Time{})
		buf := make([]byte, 9)
		if n, err := s.Read(buf); err != nil || string(buf[:n]) != "late" {
			t.Errorf("%q, %v", buf[:n], err)
		}
		if _, err := s.Write([]byte("third")); err != nil {
			t.Error(err)
		}
		s.Close()
		<-c.Done()
	})
}

func TestCloseEndsWaits(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		p.Send(adb.CommandOkay, 7, p.ExpectOpen("x:"))
		p.UntilClosed()
	}, func(t *testing.T, c *adb.Conn) {
		s := mustOpen(t, c, "x:")
		read := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 1))
			read <- err
		}()
		written := make(chan error, 1)
		go func() {
			_, err := s.Write(make([]byte, 5<<20))
			written <- err
		}()
		synctest.Wait()
		s.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("read: %v", err)
		}
		if err := <-written; !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
	})
}

func TestEverythingEndsWithTheLink(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		id := p.ExpectOpen("x:")
		p.Send(adb.CommandOkay, 7, id)
		p.SendData(adb.CommandWrite, 7, id, []byte("last words"))
		for range 3 { // OKAY, WRTE and OPEN, in any order
			p.Read()
		}
		time.Sleep(time.Second)
	}, func(t *testing.T, c *adb.Conn) {
		s := mustOpen(t, c, "x:")
		errs := make(chan error, 3)
		go func() {
			_, err := c.Open(context.Background(), "y:")
			errs <- err
		}()
		go func() {
			_, err := s.Write(make([]byte, 5<<20))
			errs <- err
		}()
		go func() {
			<-c.Done()
			got, err := io.ReadAll(s)
			if string(got) != "last words" {
				t.Errorf("read %q", got)
			}
			errs <- err
		}()
		for range 3 {
			if err := <-errs; !errors.Is(err, adb.ErrDisconnected) {
				t.Errorf("got %v", err)
			}
		}
		if _, err := c.Open(context.Background(), "z:"); !errors.Is(err, adb.ErrDisconnected) {
			t.Errorf("got %v", err)
		}
	})
}

func TestConnClose(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		id := p.ExpectOpen("logcat:")
		p.Send(adb.CommandOkay, 7, id)
		p.ExpectArgs(adb.CommandClose, id, 7) // the phone's service must not run on
		p.UntilClosed()
	}, func(t *testing.T, c *adb.Conn) {
		mustOpen(t, c, "logcat:")
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if !errors.Is(c.Err(), net.ErrClosed) || errors.Is(c.Err(), adb.ErrDisconnected) {
			t.Errorf("got %v", c.Err())
		}
	})
}

func TestHungPhoneIsGivenUp(t *testing.T) {
	dialogue(t, adb.Options{WriteTimeout: 20 * time.Second}, func(p *adbtest.Peer) {
		p.Accept()
		p.Send(adb.CommandOkay, 7, p.ExpectOpen("x:"))
		time.Sleep(time.Minute) // reads nothing more
	}, func(t *testing.T, c *adb.Conn) {
		s := mustOpen(t, c, "x:")
		start := time.Now()
		_, _ = s.Write([]byte("x"))
		<-c.Done()
		if d := time.Since(start); d != 20*time.Second {
			t.Errorf("noticed after %v", d)
		}
		if !errors.Is(c.Err(), adb.ErrDisconnected) || !errors.Is(c.Err(), adb.ErrTimeout) {
			t.Errorf("got %v", c.Err())
		}
	})
}

func TestCloseOfAHungPhoneIsBounded(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		p.Send(adb.CommandOkay, 7, p.ExpectOpen("x:"))
		time.Sleep(time.Minute)
	}, func(t *testing.T, c *adb.Conn) {
		_, _ = mustOpen(t, c, "x:").Write([]byte("x"))
		start := time.Now()
		c.Close()
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("Close took %v", d)
		}
	})
}

// A phone that floods and does not read must not fill this host's memory.
func TestPhoneThatOnlySendsIsCutOff(t *testing.T) {
	dialogue(t, adb.Options{WriteTimeout: time.Hour}, func(p *adbtest.Peer) {
		p.Accept()
		for i := range uint32(10_000) {
			packet := adb.Packet{Command: adb.CommandOkay, Arg0: i + 1, Arg1: i + 5000}
			if p.Link.WritePacket(context.Background(), packet) != nil {
				return
			}
		}
		t.Error("never cut off")
	}, func(t *testing.T, c *adb.Conn) {
		<-c.Done()
		if !errors.Is(c.Err(), adb.ErrProtocol) {
			t.Errorf("got %v", c.Err())
		}
	})
}

func TestSingleBytesDoNotMultiplyMemory(t *testing.T) {
	dialogue(t, adb.Options{}, func(p *adbtest.Peer) {
		p.Accept()
		id := p.ExpectOpen("x:")
		p.Send(adb.CommandOkay, 7, id)
		for i := range 9000 {
			p.SendData(adb.CommandWrite, 7, id, []byte{byte(i)})
			p.ExpectArgs(adb.CommandOkay, id, 7)
		}
		p.Send(adb.CommandClose, 7, id)
		p.ExpectArgs(adb.CommandClose, id, 7)
	}, func(t *testing.T, c *adb.Conn) {
		s := mustOpen(t, c, "x:")
		<-c.Done()
		got, err := io.ReadAll(io.LimitReader(s, 9000))
		want := make([]byte, 9000)
		for i := range want {
			want[i] = byte(i)
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

func TestOpenChecksTheServiceName(t *testing.T) {
	dialogue(t, adb.Options{MaxPayload: 4096}, func(p *adbtest.Peer) {
		p.Accept()
		p.Send(adb.CommandClose, 0, p.ExpectOpen(strings.Repeat("x", 4095)))
	}, func(t *testing.T, c *adb.Conn) {
		for _, service := range []string{"", strings.Repeat("x", 4096)} {
			if _, err := c.Open(t.Context(), service); err == nil || errors.Is(err, adb.ErrRefused) {
				t.Errorf("%d bytes: %v", len(service), err)
			}
		}
		if _, err := c.Open(t.Context(), strings.Repeat("x", 4095)); !errors.Is(err, adb.ErrRefused) {
			t.Error(err)
		}
	})
}
