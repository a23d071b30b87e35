package adb_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/adb/adbtest"
)

// connect connects and closes at the test's end.
func connect(t testing.TB, link adb.Link, o adb.Options) *adb.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := adb.Connect(ctx, link, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// phone connects to a phone over a pipe.
func phone(t testing.TB, p *adbtest.Phone, o adb.Options) *adb.Conn {
	t.Helper()
	host, far := net.Pipe()
	runPhone(t, p, adb.NewStreamLink(far))
	return connect(t, adb.NewStreamLink(host), o)
}

// phoneUSB connects to a phone over a cable.
func phoneUSB(t testing.TB, p *adbtest.Phone, mps int, o adb.Options) *adb.Conn {
	t.Helper()
	cable := adbtest.NewCable(mps)
	runPhone(t, p, cable.Phone())
	link, err := adb.NewBulkLink(cable.Host(), adb.BulkOptions{MaxPacket: mps})
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, link, o)
}

func runPhone(t testing.TB, p *adbtest.Phone, link adb.Link) {
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- p.Run(ctx, link) }()
	t.Cleanup(func() {
		cancel()
		_ = link.Close()
		if err := <-ended; err != nil {
			t.Errorf("phone: %v", err)
		}
	})
}

func TestConnectWithoutAuthentication(t *testing.T) {
	link := adbtest.Dial(t, func(p *adbtest.Peer) {
		hello := p.Accept("shell_v2", "cmd")
		if err := hello.Verify(); err != nil {
			t.Errorf("CNXN: %v", err)
		}
		banner := adb.ParseBanner(hello.Payload)
		if hello.Arg0 != adb.VersionSkipChecksum || hello.Arg1 != adb.MaxPayload || banner.Type != "host" || !banner.Has("shell_v2") || !banner.Has("delayed_ack") {
			t.Errorf("%v %q", hello, hello.Payload)
		}
	})
	c := connect(t, link, adb.Options{})
	if b := c.Banner(); b.Type != "device" || b.Product != "x1sxx" || b.Model != "SM-G980F" || b.Device != "x1s" {
		t.Errorf("banner %+v", b)
	}
	if !c.HasFeature("cmd") || c.HasFeature("abb") {
		t.Errorf("features %v", c.Banner().Features)
	}
	select {
	case <-c.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the end of the link was not noticed")
	}
	if !errors.Is(c.Err(), adb.ErrDisconnected) {
		t.Errorf("Err is %v", c.Err())
	}
}

func TestConnectTriesEveryKey(t *testing.T) {
	keys := testKeys()
	for i := range keys {
		p := &adbtest.Phone{Keys: []*rsa.PublicKey{keys[i].Public()}, Accept: func(*rsa.PublicKey, string) bool {
			t.Error("the public key was offered although a key is known")
			return false
		}}
		if c := phone(t, p, adb.Options{ChooseKeys: func() []*adb.Key { return keys }}); c.Key() != keys[i] {
			t.Errorf("key %d was accepted, and %v counts as proved", i, c.Key())
		}
	}
	if c := phone(t, &adbtest.Phone{}, adb.Options{Keys: keys}); c.Key() != nil {
		t.Errorf("a phone that asks for no key has proved %v", c.Key())
	}
}

func TestConnectOffersTheFirstKeyAndWaitsForAPerson(t *testing.T) {
	keys := testKeys()
	prompts, accepted := 0, false
	p := &adbtest.Phone{Accept: func(key *rsa.PublicKey, comment string) bool {
		accepted = key.Equal(keys[0].Public()) && comment == "rack@home"
		return true
	}}
	c := phone(t, p, adb.Options{Keys: keys[:2], Comment: "rack@home", OnPrompt: func() { prompts++ }})
	if c.Key() != nil {
		t.Errorf("a person's consent counts as a proof of %v", c.Key())
	}
	if !accepted || prompts != 1 {
		t.Errorf("accepted %v after %d prompts", accepted, prompts)
	}
}

// Some phones ask anew, rather than connect, once the person has agreed.
func TestConnectAnswersTokensWhileWaiting(t *testing.T) {
	key := testKeys()[0]
	synctest.Test(t, func(t *testing.T) {
		link := adbtest.Dial(t, func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.SendData(adb.CommandAuth, 1, 0, pattern(20))
			p.ExpectArgs(adb.CommandAuth, 2, 0)
			p.SendData(adb.CommandAuth, 1, 0, pattern(20))
			offered := p.ExpectArgs(adb.CommandAuth, 3, 0)
			if !bytes.HasSuffix(offered.Payload, []byte(" phonerack\x00")) || len(offered.Payload) > adb.MaxPayloadV1 {
				t.Errorf("offered %q", offered.Payload)
			}
			time.Sleep(time.Minute)
			token := append(pattern(19), 9)
			p.SendData(adb.CommandAuth, 1, 0, token)
			answer := p.ExpectArgs(adb.CommandAuth, 2, 0)
			if err := rsa.VerifyPKCS1v15(key.Public(), crypto.SHA1, token, answer.Payload); err != nil {
				t.Error(err)
			}
			p.Online()
		})
		connectSlowly(t, link, adb.Options{Keys: []*adb.Key{key}}).Close()
	})
}

func connectSlowly(t *testing.T, link adb.Link, o adb.Options) *adb.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	c, err := adb.Connect(ctx, link, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A phone that rejects at once, for ever, is not answered in a hot loop.
func TestConnectPacesAnswersWhileWaiting(t *testing.T) {
	key := testKeys()[0]
	synctest.Test(t, func(t *testing.T) {
		signatures := 0
		link := adbtest.Dial(t, func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.SendData(adb.CommandAuth, 1, 0, pattern(20))
			for {
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				packet, err := p.Link.ReadPacket(ctx, normal)
				cancel()
				if err != nil {
					return
				}
				if packet.Arg0 == 2 {
					signatures++
				}
				p.SendData(adb.CommandAuth, 1, 0, pattern(20))
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := adb.Connect(ctx, link, adb.Options{Keys: []*adb.Key{key}})
		if !errors.Is(err, adb.ErrUnauthorized) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if signatures > 65 {
			t.Errorf("%d signatures in a minute", signatures)
		}
	})
}

// A token of an earlier connection makes every answer lag by one; see
// authenticator.
func TestConnectIsNotFooledByAStaleToken(t *testing.T) {
	keys := testKeys()[:2]
	synctest.Test(t, func(t *testing.T) {
		link := adbtest.Dial(t, func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.SendData(adb.CommandAuth, 1, 0, pattern(20)) // stale
			p.ExpectArgs(adb.CommandAuth, 2, 0)
			p.SendData(adb.CommandAuth, 1, 0, bytes.Repeat([]byte{1}, 20)) // of this connection
			newest := bytes.Repeat([]byte{2}, 20)
			p.SendData(adb.CommandAuth, 1, 0, newest) // rejects the first answer
			answer := p.ExpectArgs(adb.CommandAuth, 2, 0)
			if err := rsa.VerifyPKCS1v15(keys[0].Public(), crypto.SHA1, newest, answer.Payload); err != nil {
				t.Errorf("not the first key over the newest token: %v", err)
			}
			p.Online()
		})
		connectSlowly(t, link, adb.Options{Keys: keys}).Close()
	})
}

func TestConnectFailures(t *testing.T) {
	key := testKeys()[0]
	connectPacket := func(p *adbtest.Peer, version, size uint32) {
		p.Expect(adb.CommandConnect)
		p.SendData(adb.CommandConnect, version, size, []byte("device::"))
	}
	for _, test := range []struct {
		name   string
		script func(*adbtest.Peer)
		want   error
		keys   []*adb.Key
	}{
		{"closed at once", func(*adbtest.Peer) {}, adb.ErrDisconnected, nil},
		{"closed after CNXN", func(p *adbtest.Peer) { p.Expect(adb.CommandConnect) }, adb.ErrDisconnected, nil},
		{"no keys", func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.SendData(adb.CommandAuth, 1, 0, pattern(20))
		}, adb.ErrUnauthorized, nil},
		{"short token", func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.SendData(adb.CommandAuth, 1, 0, pattern(19))
		}, adb.ErrProtocol, []*adb.Key{key}},
		{"AUTH of another type", func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.SendData(adb.CommandAuth, 2, 0, pattern(20))
		}, adb.ErrProtocol, []*adb.Key{key}},
		{"TLS", func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.Send(adb.CommandStartTLS, adb.VersionMin, 0)
		}, adb.ErrTLS, nil},
		{"old version", func(p *adbtest.Peer) { connectPacket(p, 1, 4096) }, adb.ErrProtocol, nil},
		{"no payload", func(p *adbtest.Peer) { connectPacket(p, adb.VersionMin, 0) }, adb.ErrProtocol, nil},
		{"silence", func(p *adbtest.Peer) {
			for range 5 { // CNXN again and again
				p.Expect(adb.CommandConnect)
			}
			time.Sleep(time.Minute)
		}, adb.ErrTimeout, nil},
		{"silence after a signature", func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.SendData(adb.CommandAuth, 1, 0, pattern(20))
			p.Expect(adb.CommandAuth)
			time.Sleep(time.Minute)
		}, adb.ErrTimeout, []*adb.Key{key}},
		{"takes nothing", func(*adbtest.Peer) { time.Sleep(time.Hour) }, adb.ErrTimeout, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link := adbtest.Dial(t, test.script)
				start := time.Now()
				_, err := adb.Connect(context.Background(), link, adb.Options{Keys: test.keys})
				if !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if test.want != adb.ErrUnauthorized && errors.Is(err, adb.ErrUnauthorized) {
					t.Errorf("%v is called unauthorised", err)
				}
				if time.Since(start) > time.Minute {
					t.Errorf("took %v", time.Since(start))
				}
			})
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := adbtest.Dial(t, func(p *adbtest.Peer) { time.Sleep(time.Minute) })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := adb.Connect(ctx, link, adb.Options{})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, adb.ErrUnauthorized) {
			t.Errorf("got %v", err)
		}
	})
}

// An unfinished payload of an earlier connection swallows the first CNXN.
func TestConnectSendsCNXNAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := adbtest.Dial(t, func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.Accept()
		})
		connectSlowly(t, link, adb.Options{}).Close()
	})
}

// A phone that was only slow answers every CNXN.
func TestConnectTakesLateAnswersToRepeatedCNXN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := adbtest.Dial(t, func(p *adbtest.Peer) {
			p.Expect(adb.CommandConnect)
			p.Expect(adb.CommandConnect)
			p.Expect(adb.CommandConnect)
			for range 3 {
				p.Online()
			}
			p.Send(adb.CommandClose, 0, p.ExpectOpen("x:"))
			p.UntilClosed()
		})
		c := connectSlowly(t, link, adb.Options{})
		defer c.Close()
		if _, err := c.Open(t.Context(), "x:"); !errors.Is(err, adb.ErrRefused) {
			t.Error(err)
		}
	})
}

func TestConnectOverUSBAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cable := adbtest.NewCable(512)
		cable.Queue(adb.Packet{Command: adb.CommandClose, Arg0: 0x1bb, Arg1: 1}.Header().Append(nil))
		// Even a CNXN may be left over.
		old := []byte(adbtest.DeviceBanner("stale"))
		cable.Queue(adb.Packet{Command: adb.CommandConnect, Arg0: adb.VersionMin, Arg1: 4096, Payload: old}.Header().Append(nil))
		cable.Queue(old)
		link := adbtest.DialUSB(t, cable, func(p *adbtest.Peer) {
			p.Accept("fresh")
			p.UntilClosed()
		})
		c := connectSlowly(t, link, adb.Options{})
		defer c.Close()
		if !c.HasFeature("fresh") || c.HasFeature("stale") {
			t.Errorf("features %v", c.Banner().Features)
		}
		if c.MaxPayload() != 256<<10 {
			t.Errorf("payload limit %d", c.MaxPayload())
		}
	})
}

func TestOldPhonesGetChecksums(t *testing.T) {
	for _, version := range []uint32{adb.VersionMin, adb.VersionSkipChecksum} {
		p := &adbtest.Phone{Version: version, Serve: echo}
		c := phone(t, p, adb.Options{})
		s, err := c.Open(within(t), "echo:")
		if err != nil {
			t.Fatal(err)
		}
		checkEcho(t, s, pattern(10_000))
	}
}

func TestBadChecksumEndsAnOldConnection(t *testing.T) {
	link := adbtest.Dial(t, func(p *adbtest.Peer) {
		p.Expect(adb.CommandConnect)
		p.SendData(adb.CommandConnect, adb.VersionMin, 4096, []byte("device::"))
		id := p.ExpectOpen("x:")
		p.Send(adb.CommandOkay, 5, id)
		_ = p.Link.WritePacket(context.Background(), adb.Packet{Command: adb.CommandWrite, Arg0: 5, Arg1: id, Payload: []byte("x"), Check: 1})
		_, _ = p.Link.ReadPacket(context.Background(), normal)
	})
	c := connect(t, link, adb.Options{})
	s, err := c.Open(within(t), "x:")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 9)); !errors.Is(err, adb.ErrProtocol) || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("got %v", err)
	}
}

func echo(_ string, s *adbtest.Service) error {
	_, err := io.Copy(s, s)
	return err
}

func checkEcho(t *testing.T, s *adb.Stream, data []byte) {
	t.Helper()
	defer s.Close()
	_ = s.SetDeadline(time.Now().Add(20 * time.Second))
	written := make(chan error, 1)
	go func() {
		_, err := s.Write(data)
		written <- err
	}()
	got := make([]byte, len(data))
	if _, err := io.ReadFull(s, got); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Fatal("the echo differs")
	}
}
