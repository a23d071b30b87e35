package control

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"phonerack/sync/wire"
)

const (
	upgradeName = "phonerack-stream"
	actionsPath = "/v1/actions"

	maxArgs   = 1 << 20  // bytes of arguments
	maxAnswer = 32 << 20 // bytes of an answer that is not a stream
	maxPacket = 1 << 16  // bytes of data in a packet
)

// kind says what a packet carries.
type kind byte

const (
	kindIn     kind = 1 // client: data for the action
	kindInEnd  kind = 2 // client: no more of it
	kindOut    kind = 3 // server
	kindErr    kind = 4 // server
	kindPing   kind = 5 // server: nothing
	kindResult kind = 6 // server: an answer, the last packet; split over several of this kind if it is long
	kindEnd    kind = 7 // server: the answer is complete
)

const packetHeader = 5 // bytes

// answer is what every call ends with.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *wire.Refusal   `json:"error,omitempty"`
}

func newAnswer(result any, err error) answer {
	if err != nil {
		return answer{Error: wire.From(err)}
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return answer{Error: wire.Refuse(wire.Internal, nil).Because(err)}
	}
	return answer{Result: encoded}
}

// into gives the answer's result or its refusal.
func (a answer) into(result any) error {
	if a.Error != nil {
		return a.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(a.Result, result)
}

// A packetWriter sends packets of several goroutines over one connection.
type packetWriter struct {
	mu sync.Mutex // held for a whole packet
	w  io.Writer
}

func (p *packetWriter) send(k kind, data []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n := min(len(data), maxPacket)
		packet := make([]byte, packetHeader, packetHeader+n)
		packet[0] = byte(k)
		binary.BigEndian.PutUint32(packet[1:], uint32(n))
		if _, err := p.w.Write(append(packet, data[:n]...)); err != nil {
			return err
		}
		if data = data[n:]; len(data) == 0 {
			return nil
		}
	}
}

// as is the writer of one kind of packet.
func (p *packetWriter) as(k kind) io.Writer { return kindWriter{p, k} }

type kindWriter struct {
	packets *packetWriter
	kind    kind
}

func (w kindWriter) Write(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	if err := w.packets.send(w.kind, data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// readPacket reads one packet into buf, which must have maxPacket bytes.
func readPacket(r *bufio.Reader, buf []byte) (kind, []byte, error) {
	var header [packetHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(header[1:])
	if n > maxPacket {
		return 0, nil, fmt.Errorf("a packet has %d bytes, at most %d are allowed", n, maxPacket)
	}
	if _, err := io.ReadFull(r, buf[:n]); err != nil {
		return 0, nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return kind(header[0]), buf[:n], nil
}
