package control

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPacketsSplitWhatIsLong(t *testing.T) {
	var conn bytes.Buffer
	long := strings.Repeat("x", 2*maxPacket+1)
	w := &packetWriter{w: &conn}
	if err := errors.Join(w.send(kindOut, []byte(long)), w.send(kindPing, nil)); err != nil {
		t.Fatal(err)
	}
	r, buf := bufio.NewReader(&conn), make([]byte, maxPacket)
	var got strings.Builder
	for {
		k, data, err := readPacket(r, buf)
		if err != nil {
			t.Fatal(err)
		}
		if k == kindPing {
			break
		}
		got.Write(data)
	}
	if got.String() != long {
		t.Errorf("%d of %d bytes came back", got.Len(), len(long))
	}
	if _, _, err := readPacket(r, buf); err != io.EOF {
		t.Errorf("after the last packet: %v", err)
	}
}

func FuzzReadPacket(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2, 'h', 'i'})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r, buf := bufio.NewReader(bytes.NewReader(stream)), make([]byte, maxPacket)
		for {
			_, data, err := readPacket(r, buf)
			if err != nil {
				return
			}
			if len(data) > len(stream) {
				t.Fatalf("%d bytes out of %d", len(data), len(stream))
			}
		}
	})
}
