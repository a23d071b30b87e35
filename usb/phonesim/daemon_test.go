package phonesim

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/usb/phonesim/phonesimtest"
)

func TestBanner(t *testing.T) {
	for android, want := range map[int]struct {
		version, payload uint32
		features         string
	}{
		7:  {0x01000000, 256 << 10, "shell_v2,cmd"},
		9:  {0x01000001, 1 << 20, "shell_v2,cmd,stat_v2"},
		11: {0x01000001, 1 << 20, "sendrecv_v2_brotli,remount_shell,sendrecv_v2,abb_exec,fixed_push_mkdir,fixed_push_symlink_timestamp,abb,shell_v2,cmd,ls_v2,apex,stat_v2"},
	} {
		h := dialStream(t, newPhoneT(t, Config{Android: android}))
		m := h.connect(hostFeatures)
		banner := "device::ro.product.name=sim;ro.product.model=Sim 1;ro.product.device=simdev;features=" + want.features
		if m.arg0 != want.version || m.arg1 != want.payload || string(m.payload) != banner {
			t.Errorf("Android %d: CNXN(%08x, %d, %q)", android, m.arg0, m.arg1, m.payload)
		}
	}
}

func TestPayloadsAreNoLongerThanTheHostTakes(t *testing.T) {
	p := newPhoneT(t, Config{})
	h := dialStream(t, p)
	h.send(cmdCNXN, versionNoSums, 4096, "host::")
	if m := h.online(); m.arg1 != 4096 {
		t.Errorf("agreed to %d bytes", m.arg1)
	}
	ours, theirs := h.open("source:10000")
	for left := 10000; left > 0; left -= 4096 {
		if m := h.expect(cmdWRTE); len(m.payload) != min(left, 4096) {
			t.Errorf("WRTE of %d bytes with %d to come", len(m.payload), left)
		}
		h.send(cmdOKAY, ours, theirs, "")
	}
	h.expect(cmdCLSE)
	h.trySend(cmdWRTE, 1, 1, strings.Repeat("x", 4097))
	h.expectViolation(p, RuleLength)
}

// TestConnectingAgainEndsStreams: a host that starts anew on the same link finds the old streams closed, after CNXN.
func TestConnectingAgainEndsStreams(t *testing.T) {
	system := testSystem()
	p := newPhoneT(t, Config{Android: 11, System: system})
	h := dialStream(t, p)
	h.connect(hostFeatures)
	ours, theirs := h.open("exec:sleep 1000")
	h.send(cmdCNXN, versionNoSums, 1<<20, "host::")
	if m := h.expect(cmdCLSE); m.arg0 != theirs || m.arg1 != ours {
		t.Errorf("CLSE(%d, %d)", m.arg0, m.arg1)
	}
	h.online()
	if out := h.run("exec:echo alive"); out != "alive\n" {
		t.Errorf("got %q", out)
	}
	noViolations(t, p)
}

// TestStaleFrames: Android 11 leaves them for the host to skip, 14 drops them when the host connects.
func TestStaleFrames(t *testing.T) {
	for android, stale := range map[int]int{11: 3, 14: 0} {
		p := newPhoneT(t, Config{Android: android, Faults: Faults{StaleFrames: 3}})
		h, _ := dialUSB(t, p)
		h.send(cmdCNXN, versionNoSums, 1<<20, "host::")
		for i := range stale {
			want := cmdWRTE
			if i%2 == 1 {
				want = cmdCLSE
			}
			h.expect(want)
		}
		h.online()
	}
}

func TestAndroid7Peculiarities(t *testing.T) {
	p := newPhoneT(t, Config{Android: 7})
	h := dialStream(t, p)
	h.connect(hostFeatures)
	h.send(cmdOPEN, 1, 0, "shell:echo hi") // no NUL
	if m := h.expect(cmdCLSE); m.arg0 != 0 || m.arg1 != 1 {
		t.Errorf("CLSE(%d, %d)", m.arg0, m.arg1)
	}
	h.lastID = 1
	if out := h.run("exec:echo hi"); out != "hi\n" {
		t.Errorf("got %q", out)
	}
	h.expect(cmdCLSE) // the second
	expectRecorded(t, p, RuleDestination)
	h.sums = false
	h.trySend(cmdOPEN, 3, 0, "exec:echo hi\x00")
	if err := h.expectServed(); err == nil {
		t.Error("a payload without its sum was taken")
	}
}

func TestServicesThatDoNotExist(t *testing.T) {
	h := dialStream(t, newPhoneT(t, Config{Android: 9}))
	h.connect(hostFeatures)
	for i, name := range []string{"nonsense:", "tcp:80", "abb:package", "sink:x", ""} {
		h.send(cmdOPEN, uint32(i+1), 0, name+"\x00")
		if m := h.expect(cmdCLSE); m.arg0 != 0 || m.arg1 != uint32(i+1) {
			t.Errorf("%q: CLSE(%d, %d)", name, m.arg0, m.arg1)
		}
	}
}

func TestFramesForUnknownStreams(t *testing.T) {
	p := newPhoneT(t, Config{})
	h := dialStream(t, p)
	h.connect(hostFeatures)
	h.send(cmdWRTE, 5, 77, "late")
	h.send(cmdCLSE, 5, 77, "")
	h.send(cmdOKAY, 5, 77, "")
	if m := h.expect(cmdCLSE); m.arg0 != 77 || m.arg1 != 5 {
		t.Errorf("CLSE(%d, %d)", m.arg0, m.arg1)
	}
	noViolations(t, p)
}

func TestBrokenStreamRules(t *testing.T) {
	for _, test := range []struct {
		name    string
		rule    Rule
		violate func(h *host)
	}{
		{"a second WRTE before OKAY", RuleFlow, func(h *host) {
			ours, theirs := h.open("exec:sleep 1000")
			for range 2 {
				h.trySend(cmdWRTE, ours, theirs, "x")
			}
		}},
		{"OKAY for nothing", RuleFlow, func(h *host) {
			ours, theirs := h.open("exec:sleep 1000")
			h.trySend(cmdOKAY, ours, theirs, "")
		}},
		{"strange banner", RuleHandshake, func(h *host) { h.trySend(cmdCNXN, versionNoSums, 1<<20, "device::") }},
		{"tiny payloads", RuleHandshake, func(h *host) { h.trySend(cmdCNXN, versionNoSums, 100, "host::") }},
		{"long handshake", RuleLength, func(h *host) { h.trySend(cmdCNXN, versionNoSums, 1<<20, "host::"+strings.Repeat("x", 5000)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The OKAY is late, so that it has not left when the second WRTE comes.
			p := newPhoneT(t, Config{Faults: Faults{DelayOKAY: time.Minute}})
			h := dialStream(t, p)
			h.connect(hostFeatures)
			test.violate(h)
			h.expectViolation(p, test.rule)
		})
	}
}

func TestOpenHasAWindowIfAndOnlyIfItIsAgreed(t *testing.T) {
	p := newPhoneT(t, Config{Android: 14})
	h := dialStream(t, p)
	h.connect(hostFeatures)
	h.send(cmdOPEN, 1, 1<<20, "exec:echo\x00")
	h.expect(cmdCLSE)
	h.connect(hostFeatures + ",delayed_ack")
	h.send(cmdOPEN, 2, 0, "exec:echo\x00")
	h.expect(cmdCLSE)
	expectRecorded(t, p, RuleOpen, RuleOpen)
}

func windowOf(t *testing.T, m message) int32 {
	t.Helper()
	if m.command != cmdOKAY || len(m.payload) != 4 {
		t.Fatalf("got %s with %d bytes, want OKAY with 4", m.command, len(m.payload))
	}
	return int32(binary.LittleEndian.Uint32(m.payload))
}

func TestDelayedAcknowledgement(t *testing.T) {
	p := newPhoneT(t, Config{Android: 14, Window: 1000})
	h := dialStream(t, p)
	h.connect(hostFeatures + ",delayed_ack")
	ack := func(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

	t.Run("from the phone", func(t *testing.T) {
		h.send(cmdOPEN, 1, 2<<20, "source:5000000\x00")
		if n := windowOf(t, h.next()); n != 1000 {
			t.Errorf("window %d", n)
		}
		got := 0
		for range 2 { // fills the window without waiting
			got += len(h.expect(cmdWRTE).payload)
		}
		if got != 2<<20 {
			t.Errorf("%d bytes in the window", got)
		}
		h.send(cmdOKAY, 1, 1, "odd length") // says nothing
		h.send(cmdOKAY, 1, 1, ack(1))
		got += len(h.expect(cmdWRTE).payload) // into a window of one byte
		h.send(cmdOKAY, 1, 1, ack(4<<20))
		for got < 5000000 {
			got += len(h.expect(cmdWRTE).payload)
		}
		h.expect(cmdCLSE)
		noViolations(t, p)
	})
	t.Run("to the phone", func(t *testing.T) {
		h.send(cmdOPEN, 2, 1<<20, "exec:cat\x00")
		theirs := h.expect(cmdOKAY).arg0
		acked := int32(0)
		for range 3 {
			h.send(cmdWRTE, 2, theirs, strings.Repeat("x", 300))
		}
		echoed := 0
		for acked < 900 || echoed < 900 {
			if m := h.next(); m.command == cmdWRTE {
				echoed += len(m.payload)
			} else {
				acked += windowOf(t, m)
			}
		}
		if acked != 900 || echoed != 900 {
			t.Errorf("acknowledged %d, echoed %d", acked, echoed)
		}
		noViolations(t, p)
	})
	t.Run("beyond the window", func(t *testing.T) {
		p.SetFaults(Faults{DropOKAY: true})
		h.send(cmdOPEN, 3, 1<<20, "exec:sleep 1000\x00")
		theirs := h.expect(cmdOKAY).arg0
		for _, n := range []int{999, 500, 1} { // the second goes below zero, as real hosts do; the third is too much
			h.trySend(cmdWRTE, 3, theirs, strings.Repeat("x", n))
		}
		h.expectViolation(p, RuleWindow)
	})
}

func TestLateOKAY(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPhoneT(t, Config{Faults: Faults{DelayOKAY: 3 * time.Second}})
		h := dialStream(t, p)
		h.connect(hostFeatures)
		ours, theirs := h.open("sink:10")
		start := time.Now()
		h.write(ours, theirs, "x")
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("OKAY after %v", d)
		}
	})
}

func TestClosingAStreamEndsItsCommand(t *testing.T) {
	for _, service := range []string{"shell:sleep 1000", "exec:sleep 1000", "shell,v2,raw:sleep 1000", "shell,pty:sleep 1000", "exec:bytes 1000000000", "shell,v2:cat"} {
		t.Run(service, func(t *testing.T) {
			p := newPhoneT(t, Config{})
			h := dialStream(t, p)
			h.connect(hostFeatures)
			ours, theirs := h.open(service)
			if strings.Contains(service, "bytes") {
				h.expect(cmdWRTE)
			}
			h.send(cmdCLSE, ours, theirs, "")
			if m := h.expect(cmdCLSE); m.arg0 != theirs {
				t.Errorf("CLSE(%d, %d)", m.arg0, m.arg1)
			}
			// The end of the test waits for the command.
		})
	}
}

func TestShellKinds(t *testing.T) {
	v2 := func(packets ...string) string { return strings.Join(packets, "") }
	for _, test := range []struct{ service, in, want string }{
		{"shell:echo a; warn b", "", "a\nb\n"},
		{"shell,pty:echo a; warn b", "", "a\r\nb\r\n"},
		{"shell,v2,raw:echo a; warn b; exit 3", "", v2(
			shellPacket(shellStdout, "a\n"), shellPacket(shellStderr, "b\n"), shellPacket(shellExit, "\x03"))},
		{"shell,v2,TERM=xterm-256color,pty:warn b", "", v2(
			shellPacket(shellStdout, "b\r\n"), shellPacket(shellExit, "\x00"))},
		{
			"shell,v2:cat", v2(
				shellPacket(shellWindowSize, "24x80,0x0\x00"), shellPacket(shellStdin, "in"), shellPacket(shellStdin, ""), shellPacket(shellCloseStdin, "")),
			v2(shellPacket(shellStdout, "in"), shellPacket(shellExit, "\x00")),
		},
		{"shell:", "echo a\rexit 2\r", "$ echo a\r\na\r\n$ exit 2\r\n"},
		{"shell,v2:", shellPacket(shellStdin, "\x04"), v2(shellPacket(shellStdout, "$ "), shellPacket(shellExit, "\x00"))},
		{"shell,v2,pty:sleep 1000", shellPacket(shellStdin, "\x03"), v2(
			shellPacket(shellStdout, "^C\r\n"), shellPacket(shellExit, "\x82"))},
		{"abb:package\x00list it", "", v2(
			shellPacket(shellStderr, "sh: cmd: inaccessible or not found\n"), shellPacket(shellExit, "\x7f"))},
		{"abb_exec:package", "", "sh: cmd: inaccessible or not found\n"},
		{"root:", "", "adbd cannot run as root in production builds\n"},
	} {
		t.Run(test.service, func(t *testing.T) {
			system := testSystem()
			p := newPhoneT(t, Config{System: system})
			h := dialStream(t, p)
			h.connect(hostFeatures)
			ours, theirs := h.open(test.service)
			var got string
			// A byte at a time in both directions: packets are cut anywhere.
			in := test.in
			for {
				if in != "" {
					if err := h.trySend(cmdWRTE, ours, theirs, in[:1]); err != nil {
						t.Fatal(err)
					}
				}
				m := h.next()
				for m.command == cmdWRTE {
					got += string(m.payload)
					h.send(cmdOKAY, ours, theirs, "")
					m = h.next()
				}
				if m.command == cmdCLSE {
					break
				}
				if in != "" {
					in = in[1:]
				}
			}
			if normal := joinPackets(got, strings.Contains(test.service, "v2") || strings.HasPrefix(test.service, "abb:")); normal != test.want {
				t.Errorf("got %q, want %q", normal, test.want)
			}
			if test.service == "abb:package\x00list it" {
				if runs := system.Runs(); runs[0] != `cmd 'package' 'list it'` {
					t.Errorf("ran %q", runs)
				}
			}
		})
	}
}

// joinPackets joins neighbouring packets of the shell protocol that have the same id: where output is cut has no meaning.
func joinPackets(s string, v2 bool) string {
	if !v2 {
		return s
	}
	var out, data string
	last := byte(255)
	flush := func() {
		if last != 255 {
			out += shellPacket(last, data)
		}
		data = ""
	}
	for len(s) >= shellHeader {
		id, n := s[0], int(binary.LittleEndian.Uint32([]byte(s[1:])))
		if id != last {
			flush()
		}
		last = id
		data += s[shellHeader : shellHeader+n]
		s = s[shellHeader+n:]
	}
	flush()
	return out + s
}

func TestManyStreamsAtOnce(t *testing.T) {
	const streams, size = 50, 300000
	p := newPhoneT(t, Config{HighSpeed: true})
	h, _ := dialUSB(t, p)
	h.connect(hostFeatures)
	for i := range uint32(streams) {
		h.send(cmdOPEN, i+1, 0, fmt.Sprintf("exec:bytes %d\x00", size))
	}
	want := string(phonesimtest.Bytes(size))
	got := map[uint32]*strings.Builder{}
	for closed := 0; closed < streams; {
		switch m := h.next(); m.command {
		case cmdOKAY:
			got[m.arg1] = &strings.Builder{}
		case cmdWRTE:
			got[m.arg1].Write(m.payload)
			h.send(cmdOKAY, m.arg1, m.arg0, "")
		case cmdCLSE:
			h.send(cmdCLSE, m.arg1, m.arg0, "")
			closed++
		}
	}
	for id, b := range got {
		if b.String() != want {
			t.Errorf("stream %d: %d other bytes", id, b.Len())
		}
	}
	noViolations(t, p)
}

func TestManyPhonesAtOnce(t *testing.T) {
	var work sync.WaitGroup
	for range 8 {
		p := newPhoneT(t, Config{})
		h, _ := dialUSB(t, p)
		work.Go(func() {
			h.connect(hostFeatures)
			if out := h.run("exec:bytes 100000"); out != string(phonesimtest.Bytes(100000)) {
				t.Errorf("%d other bytes", len(out))
			}
		})
	}
	work.Wait()
}
