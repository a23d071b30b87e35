package link

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/oklog/ulid/v2"

	"phonerack/sync/wire"
)

// envelope is the room that a frame needs besides body and attachments, in bytes.
const envelope = 4 << 10

// stored is an entry as it lies in the outbox. The frame is made of it anew at
// each sending: keys rotate, and time passes.
type stored struct {
	ID          string            `json:"id"`
	Type        wire.Type         `json:"type"`
	Body        json.RawMessage   `json:"body"`
	Attachments []wire.Attachment `json:"attachments,omitempty"`
	Key         string            `json:"key,omitempty"` // that the attachments' bytes are sealed with; "" in what an earlier version has left
}

// prepare holds an entry to the bounds of a frame. An event takes along how many
// were dropped before it.
func (o *Outbox) prepare(e Entry, l lane, dropped int) (stored, error) {
	if _, err := ulid.ParseStrict(e.ID); err != nil {
		return stored{}, fmt.Errorf("%s: the id %.40q is no ULID", e.Type, e.ID)
	}
	body, err := wire.Marshal(e.Body)
	if err != nil {
		return stored{}, fmt.Errorf("%s: %w", e.Type, err)
	}
	if l.class == Events && dropped > 0 {
		if body, err = withDropped(body, dropped); err != nil {
			return stored{}, err
		}
	}
	m := wire.Message{Type: e.Type, Body: body}
	size := len(body) + envelope
	for _, a := range e.Attachments {
		m.Attach(a.Name, a.Type, a.Data)
		size += len(a.Data)
	}
	if size > o.maxFrame || len(body) > wire.MaxJSON-envelope || len(m.Attachments) > wire.MaxAttachments {
		return stored{}, fmt.Errorf("%s: %w: about %d bytes", e.Type, ErrTooLarge, size)
	}
	return stored{ID: e.ID, Type: e.Type, Body: body, Attachments: m.Attachments}, nil
}

// withDropped adds to the number that an event tells.
func withDropped(body []byte, n int) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, errors.New("an event's body is an object")
	}
	own := 0
	if raw, ok := fields["dropped"]; ok {
		_ = json.Unmarshal(raw, &own)
	}
	fields["dropped"] = json.RawMessage(fmt.Sprint(own + n))
	return wire.Marshal(fields)
}

// dropped is what the event tells of others.
func (s stored) dropped() int {
	var body struct {
		Dropped int `json:"dropped"`
	}
	_ = json.Unmarshal(s.Body, &body)
	return body.Dropped
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode gives CRC-32C of the rest, length of the JSON, both four bytes, big
// endian, the JSON, and the attachments' bytes, sealed. The database has no checksums
// over values of its own.
func (s stored) encode() ([]byte, error) {
	var data []byte
	if len(s.Attachments) > 0 {
		for _, a := range s.Attachments {
			data = append(data, a.Data...)
		}
		s.Key, data = ownKey.name, ownKey.seal(data)
	}
	raw, err := wire.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Type, err)
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(len(raw)))
	b = append(append(b, raw...), data...)
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b, nil
}

// decodeEntry reads what encode has written, in another process without the attachments. Nothing of it points into b.
func decodeEntry(b []byte) (stored, error) {
	if len(b) < 8 || binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return stored{}, errors.New("its checksum is wrong")
	}
	n := int64(binary.BigEndian.Uint32(b[4:]))
	if n > int64(len(b)-8) {
		return stored{}, errors.New("it is cut")
	}
	var s stored
	if err := json.Unmarshal(b[8:8+n], &s); err != nil {
		return stored{}, err
	}
	if _, ok := lanes[s.Type]; !ok {
		return stored{}, fmt.Errorf("%.40q does not travel by the outbox", string(s.Type))
	}
	rest := append([]byte(nil), b[8+n:]...)
	if s.Key != "" {
		data, ok := ownKey.open(s.Key, rest)
		if rest = data; !ok {
			s.Attachments = nil
		}
		s.Key = ""
	}
	for i := range s.Attachments {
		a := &s.Attachments[i]
		if a.Size < 0 || a.Size > len(rest) {
			return stored{}, errors.New("an attachment is cut")
		}
		a.Data, rest = rest[:a.Size:a.Size], rest[a.Size:]
	}
	return s, nil
}

// message makes what is sent now.
func (s stored) message() *wire.Message {
	return &wire.Message{V: 1, ID: s.ID, Type: s.Type, Body: s.Body, Attachments: s.Attachments}
}
