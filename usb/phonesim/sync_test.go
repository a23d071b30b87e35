package phonesim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"phonerack/usb/phonesim/phonesimtest"
)

// syncHost is a "sync:" stream as a byte stream: it acknowledges what comes and waits for the OKAYs of what it writes.
type syncHost struct {
	*host
	ours, theirs uint32
	inbox        []byte
	ended        bool
}

func openSync(t *testing.T, c Config) (*syncHost, *phonesimtest.System) {
	t.Helper()
	system := testSystem()
	system.ReadOnly = "/system"
	if c.System == nil {
		c.System = system
	}
	h := dialStream(t, newPhoneT(t, c))
	h.connect(hostFeatures)
	ours, theirs := h.open("sync:")
	return &syncHost{host: h, ours: ours, theirs: theirs}, system
}

// take handles one message from the phone.
func (s *syncHost) take() command {
	s.t.Helper()
	m := s.next()
	switch m.command {
	case cmdWRTE:
		s.inbox = append(s.inbox, m.payload...)
		s.send(cmdOKAY, s.ours, s.theirs, "")
	case cmdCLSE:
		s.ended = true
	}
	return m.command
}

func (s *syncHost) put(data string) {
	s.t.Helper()
	for len(data) > 0 && !s.ended {
		n := min(len(data), 256<<10)
		s.send(cmdWRTE, s.ours, s.theirs, data[:n])
		for c := s.take(); c != cmdOKAY && c != cmdCLSE; {
			c = s.take()
		}
		data = data[n:]
	}
}

func (s *syncHost) get(n int) string {
	s.t.Helper()
	for len(s.inbox) < n {
		if s.ended {
			s.t.Fatalf("the stream ended after %q", s.inbox)
		}
		s.take()
	}
	b := s.inbox[:n]
	s.inbox = s.inbox[n:]
	return string(b)
}

// answer reads four letters and a number, and the text after FAIL.
func (s *syncHost) answer() string {
	s.t.Helper()
	b := s.get(8)
	n := binary.LittleEndian.Uint32([]byte(b[4:]))
	if b[:4] == syncFail {
		return syncFail + " " + s.get(int(n))
	}
	return fmt.Sprintf("%s %d", b[:4], n)
}

// expectEnd wants the stream to be closed with nothing more said.
func (s *syncHost) expectEnd() {
	s.t.Helper()
	for !s.ended {
		s.take()
	}
	if len(s.inbox) > 0 {
		s.t.Errorf("%q came before the end", s.inbox)
	}
}

// syncWord builds four letters and a number.
func syncWord(id string, n int) string {
	return string(binary.LittleEndian.AppendUint32([]byte(id), uint32(n)))
}

func request(id, path string) string { return syncWord(id, len(path)) + path }

// chunks cuts data into DATA chunks and ends it with DONE.
func chunks(data string, mtime int) string {
	var b strings.Builder
	for len(data) > 0 {
		n := min(len(data), maxSyncData)
		b.WriteString(request(syncData, data[:n]))
		data = data[n:]
	}
	return b.String() + syncWord(syncDone, mtime)
}

const mtime2023 = 1700000000

func TestSendStoresContentModeAndTime(t *testing.T) {
	s, system := openSync(t, Config{Android: 7})
	for _, n := range []int{0, 1, 65536, 65537, 300000} {
		want := phonesimtest.Bytes(n)
		s.put(request(syncSend, "/data/a,b,33188") + chunks(string(want), mtime2023)) // 33188 is 0100644
		if got := s.answer(); got != "OKAY 0" {
			t.Fatalf("got %q", got)
		}
		got, err := system.ReadFile("/data/a,b")
		info, statErr := system.Stat("/data/a,b")
		if err != nil || statErr != nil || !bytes.Equal(got, want) || info.Mode() != 0o644 || info.ModTime().Unix() != mtime2023 {
			t.Errorf("%d bytes: the phone has %d bytes, %v, %v", n, len(got), info, err)
		}
	}
	s.put(request(syncSend, "/data/link,0120777") + chunks("/data/a,b", mtime2023))
	if got := s.answer(); got != "OKAY 0" {
		t.Fatalf("got %q", got)
	}
	// Android 7 has STAT only, which looks at the link.
	s.put(request(syncStat, "/data/link"))
	if mode := binary.LittleEndian.Uint32([]byte(s.get(16)[4:])); mode != 0o120777 {
		t.Errorf("mode of the link %o", mode)
	}
	s.put(syncWord(syncQuit, 0))
	s.expectEnd()
}

// TestFailedSendIsToldAtOnceAndDrained: FAIL comes while the host still sends; the stream closes only after DONE.
func TestFailedSendIsToldAtOnceAndDrained(t *testing.T) {
	for _, test := range []struct{ name, path, fail string }{
		{"read-only", "/system/x,33188", "couldn't create file: Read-only file system"},
		{"a folder", "/data/dir,33188", "couldn't create file: Is a directory"},
		{"full", "/data/full,33188", "write failed: No space left on device"},
		{"a device", "/data/x,0020666", "cannot make a file of mode 20666"},
	} {
		t.Run(test.name, func(t *testing.T) {
			system := testSystem()
			system.ReadOnly, system.Capacity = "/system", 100000
			system.WriteFile("/data/dir/x", nil, 0o600, time.Unix(0, 0))
			s, _ := openSync(t, Config{System: system})
			s.put(request(syncSend, test.path))
			for range 5 {
				s.put(request(syncData, strings.Repeat("x", 50000)))
			}
			if got := s.answer(); got != "FAIL "+test.fail {
				t.Errorf("got %q", got)
			}
			if s.ended {
				t.Error("closed before DONE")
			}
			s.put(syncWord(syncDone, 0))
			s.expectEnd()
			if _, err := system.Stat("/data/full"); err == nil {
				t.Error("half a file appeared")
			}
		})
	}
}

func TestNonsenseEndsFileTransfer(t *testing.T) {
	for _, test := range []struct{ name, in, fail string }{
		{"no mode", request(syncSend, "/data/x"), "missing , in ID_SEND"},
		{"bad mode", request(syncSend, "/data/x,rw"), `bad mode "rw"`},
		{"long path", syncWord(syncStat, 1025), "path too long"},
		{"unknown", request("NOPE", ""), "unknown command 45504f4e"},
		{"not DATA", request(syncSend, "/data/x,33188") + syncWord(syncQuit, 0), `unexpected "QUIT" among the data`},
		{"long DATA", request(syncSend, "/data/x,33188") + syncWord(syncData, maxSyncData+1), "oversize data message"},
		{"missing file", request(syncRecv, "/nowhere"), "open failed: No such file or directory"},
		{"folder", request(syncRecv, "/"), "open failed: Is a directory"},
		{"secret", request(syncRecv, "/data/secret"), "open failed: Permission denied"},
		{"two compressions", request(syncSend2, "/data/x") + syncWord(syncSend2, 33188) + "\x03\x00\x00\x00", "multiple compression flags received: 00000003"},
		{"unknown flag", request(syncSend2, "/data/x") + syncWord(syncSend2, 33188) + "\x08\x00\x00\x00", "unknown flags: 00000008"},
		{"second word", request(syncSend2, "/data/x") + syncWord(syncRecv2, 33188) + "\x00\x00\x00\x00", `unexpected "RCV2" in the place of SND2`},
		{"dry run of reading", request(syncRecv2, "/data/x") + syncWord(syncRecv2, flagDryRun), "bad flags 80000000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, system := openSync(t, Config{})
			system.WriteFile("/data/secret", nil, 0, time.Time{})
			s.put(test.in)
			if got := s.answer(); got != "FAIL "+test.fail {
				t.Errorf("got %q", got)
			}
			s.expectEnd()
		})
	}
}

// TestOldDaemonsDoNotKnowNewRequests: each request and flag exists where its feature is announced.
func TestOldDaemonsDoNotKnowNewRequests(t *testing.T) {
	for _, test := range []struct {
		android int
		in      string
	}{
		{7, request(syncStat2, "/")},
		{7, request(syncLstat2, "/")},
		{9, request(syncList2, "/")},
		{9, request(syncSend2, "/x")},
		{9, request(syncRecv2, "/x")},
		{11, request(syncRecv2, "/x") + syncWord(syncRecv2, flagZstd)},
		{11, request(syncSend2, "/x") + syncWord(syncSend2, 0) + "\x02\x00\x00\x00"},
	} {
		s, _ := openSync(t, Config{Android: test.android})
		s.put(test.in)
		if got := s.answer(); !strings.HasPrefix(got, "FAIL ") {
			t.Errorf("Android %d answers %q to %q", test.android, got, test.in)
		}
	}
}

func TestStatAndList(t *testing.T) {
	s, system := openSync(t, Config{})
	system.WriteFile("/data/dir/file", []byte("12345"), 0o640, time.Unix(mtime2023, 0))
	le := binary.LittleEndian
	for path, want := range map[string][3]uint32{
		"/data/dir/file": {0o100640, 5, mtime2023},
		"/data/dir":      {0o040771, 0, mtime2023},
		"/data/none":     {},
	} {
		s.put(request(syncStat, path))
		b := []byte(s.get(16))
		if got := [3]uint32{le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])}; got != want || string(b[:4]) != syncStat {
			t.Errorf("STAT %s: %q %o", path, b[:4], got)
		}
		s.put(request(syncStat2, path))
		b = []byte(s.get(72))
		if got := le.Uint32(b[24:]); got != want[0] || string(b[:4]) != syncStat2 {
			t.Errorf("STA2 %s: %q mode %o", path, b[:4], got)
		}
		if got := le.Uint64(b[40:]); got != uint64(want[1]) {
			t.Errorf("STA2 %s: size %d", path, got)
		}
		if got := le.Uint64(b[56:]); got != uint64(want[2]) {
			t.Errorf("STA2 %s: time %d", path, got)
		}
		if errno := le.Uint32(b[4:]); (errno == 2) != (path == "/data/none") {
			t.Errorf("STA2 %s: error %d", path, errno)
		}
	}
	system.WriteFile("/data/link", []byte("/data/dir"), fs.ModeSymlink|0o777, time.Time{})
	for id, want := range map[string]uint32{syncStat2: 0o040771, syncLstat2: 0o120777} {
		s.put(request(id, "/data/link"))
		b := s.get(72)
		if mode := le.Uint32([]byte(b[24:])); b[:4] != id || mode != want {
			t.Errorf("%s of a link: %q, mode %o", id, b[:4], mode)
		}
	}
	for id, size := range map[string]int{syncList: 20, syncList2: 76} {
		for path, want := range map[string][]string{"/data/dir": {".", "..", "file"}, "/nowhere": nil, "/data/dir/file": nil} {
			s.put(request(id, path))
			var names []string
			for b := []byte(s.get(size)); string(b[:4]) != syncDone; b = []byte(s.get(size)) {
				names = append(names, s.get(int(le.Uint32(b[size-4:]))))
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s %s: %q, want %q", id, path, names, want)
			}
		}
	}
}

// pack compresses with another setting than the phone does.
func pack(t *testing.T, flag uint32, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch flag {
	case flagBrotli:
		w = brotli.NewWriter(&b)
	case flagLZ4:
		w = lz4.NewWriter(&b)
	case flagZstd:
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		return string(data)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func unpack(t *testing.T, flag uint32, packed string) []byte {
	t.Helper()
	r := io.Reader(strings.NewReader(packed))
	switch flag {
	case flagBrotli:
		r = brotli.NewReader(r)
	case flagLZ4:
		r = lz4.NewReader(r)
	case flagZstd:
		z, err := zstd.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCompression(t *testing.T) {
	for _, flag := range []uint32{0, flagBrotli, flagLZ4, flagZstd} {
		for _, n := range []int{0, 1, 500000} {
			t.Run(fmt.Sprintf("flag %d, %d bytes", flag, n), func(t *testing.T) {
				want := phonesimtest.Bytes(n)
				s, system := openSync(t, Config{})
				packed := pack(t, flag, want)
				s.put(request(syncSend2, "/data/x") + syncWord(syncSend2, 33188) + string(binary.LittleEndian.AppendUint32(nil, flag)))
				s.put(chunks(packed, mtime2023))
				if got := s.answer(); got != "OKAY 0" {
					t.Fatalf("got %q", got)
				}
				if got, err := system.ReadFile("/data/x"); err != nil || !bytes.Equal(got, want) {
					t.Errorf("the phone has %d other bytes, %v", len(got), err)
				}
				s.put(request(syncRecv2, "/data/x") + syncWord(syncRecv2, int(flag)))
				var back strings.Builder
				for {
					head := s.get(8)
					if head[:4] == syncDone {
						break
					}
					back.WriteString(s.get(int(binary.LittleEndian.Uint32([]byte(head[4:])))))
				}
				if got := unpack(t, flag, back.String()); !bytes.Equal(got, want) {
					t.Errorf("%d other bytes came back", len(got))
				}
				if n > 1000 && flag != 0 && back.Len() > n/2 {
					t.Errorf("%d bytes were compressed to %d", n, back.Len())
				}
			})
		}
	}
}

func TestBadCompressedData(t *testing.T) {
	good := pack(t, flagZstd, phonesimtest.Bytes(1000))
	for name, data := range map[string]string{
		"garbage":             strings.Repeat("no zstd ", 20),
		"cut off":             good[:len(good)-4],
		"data after the data": good + "more",
	} {
		t.Run(name, func(t *testing.T) {
			s, system := openSync(t, Config{})
			s.put(request(syncSend2, "/data/x") + syncWord(syncSend2, 33188) + string(binary.LittleEndian.AppendUint32(nil, flagZstd)))
			s.put(chunks(data, 0))
			if got := s.answer(); !strings.HasPrefix(got, "FAIL decompression failed") {
				t.Errorf("got %q", got)
			}
			s.expectEnd()
			if _, err := system.Stat("/data/x"); err == nil {
				t.Error("a file appeared")
			}
		})
	}
}

func TestDryRunLeavesNothing(t *testing.T) {
	s, system := openSync(t, Config{})
	s.put(request(syncSend2, "/data/x") + syncWord(syncSend2, 33188) + "\x00\x00\x00\x80" + chunks("data", 0))
	if got := s.answer(); got != "OKAY 0" {
		t.Errorf("got %q", got)
	}
	if _, err := system.Stat("/data/x"); err == nil {
		t.Error("a file appeared")
	}
}

// TestHostThatLeavesInTheMiddle: half a file does not appear.
func TestHostThatLeavesInTheMiddle(t *testing.T) {
	s, _ := openSync(t, Config{})
	s.put(request(syncSend, "/data/x,33188") + request(syncData, "half") + syncWord(syncData, 1000) + "a quarter")
	s.send(cmdCLSE, s.ours, s.theirs, "")
	s.expectEnd()
	if out := s.run("exec:cat /data/x"); !strings.Contains(out, "No such file") {
		t.Errorf("cat gives %q", out)
	}
}
