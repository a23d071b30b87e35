package adb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"phonerack/usb/adb"
)

func TestParseHeaderSaysWhatIsWrong(t *testing.T) {
	good := adb.Packet{Command: adb.CommandWrite, Arg0: 1, Arg1: 2, Payload: make([]byte, 100)}.Header().Append(nil)
	badMagic := append([]byte(nil), good...)
	badMagic[20] ^= 1
	for _, test := range []struct {
		name  string
		b     []byte
		limit int
		field string
		text  string
	}{
		{"short", good[:23], 4096, "size", "23 bytes where a header of 24"},
		{"long", append(append([]byte(nil), good...), 0), 4096, "size", "25 bytes"},
		{"empty", nil, 4096, "size", "0 bytes"},
		{"magic", badMagic, 4096, "magic", "WRTE: magic"},
		{"length", good, 99, "length", "payload of 100 bytes, at most 99"},
		{"negative limit", good, -1, "length", "at most 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := adb.ParseHeader(test.b, test.limit)
			bad, ok := errors.AsType[*adb.PacketError](err)
			if !ok || bad.Field != test.field || !errors.Is(err, adb.ErrProtocol) {
				t.Fatalf("got %#v, want a PacketError about %s", err, test.field)
			}
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("%q does not say %q", err, test.text)
			}
		})
	}
}

// The bytes of a CNXN as usb4java's issue 61 shows them.
func TestHeaderBytes(t *testing.T) {
	p := adb.Packet{Command: adb.CommandConnect, Arg0: adb.VersionMin, Arg1: 4096, Payload: []byte("host::\x00")}
	p.Check = p.Sum()
	want := []byte("CNXN\x00\x00\x00\x01\x00\x10\x00\x00\x07\x00\x00\x00\x32\x02\x00\x00\xbc\xb1\xa7\xb1")
	if diff := cmp.Diff(want, p.Header().Append(nil)); diff != "" {
		t.Error(diff)
	}
	if err := p.Verify(); err != nil {
		t.Error(err)
	}
	p.Check++
	if err := p.Verify(); !errors.Is(err, adb.ErrProtocol) || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add(adb.Packet{Command: adb.CommandOpen, Arg0: 1, Payload: []byte("sync:\x00")}.Header().Append(nil), 4096)
	f.Add(adb.Packet{Command: 7, Arg0: 0xffffffff}.Header().Append(nil), 0)
	f.Add(adb.Packet{Command: adb.CommandSync}.Header().Append(nil), -1)
	f.Add([]byte("HTTP/1.1 400 Bad Request"), adb.MaxPayload)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		h, err := adb.ParseHeader(b, limit)
		if err != nil {
			if !errors.Is(err, adb.ErrProtocol) {
				t.Fatal(err)
			}
			return
		}
		if int64(h.Length) > int64(max(limit, 0)) {
			t.Fatalf("length %d beyond %d", h.Length, limit)
		}
		if got := h.Append(nil); string(got) != string(b) {
			t.Fatalf("%x became %x", b, got)
		}
	})
}
