package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
)

// Bounds of a frame. A broker's own limit has to be above MaxFrame.
const (
	MaxFrame       = 900 << 10 // bytes of all of it
	MaxJSON        = 256 << 10 // bytes of the JSON part
	MaxAttachments = 4
	MaxLife        = 5 * time.Minute // from ts to exp
)

const (
	frameMagic = "pr1"
	algHMAC    = "h1" // HMAC-SHA256; s1, sealed bodies, is reserved
	maxHeader  = 160  // bytes before the line's end
)

// Why a frame is not taken. A receiver counts them by these; none is answered,
// as nobody knows who has sent it.
var (
	ErrMalformed = errors.New("malformed frame")
	ErrTooLarge  = errors.New("frame too large")
	ErrMAC       = errors.New("wrong MAC")               // also on another topic, or altered on its way
	ErrUnknown   = errors.New("unknown key")             // the kid is none of the sender's
	ErrContent   = errors.New("malformed frame content") // its MAC is right, so its sender is at fault
)

// Message is what a frame carries. As JSON it is PROTOCOL.md's envelope. Times
// are milliseconds since the epoch.
type Message struct {
	V           int             `json:"v"`
	ID          string          `json:"id"` // ULID; a repeated one has no second effect
	Type        Type            `json:"type"`
	TS          int64           `json:"ts"`
	Exp         int64           `json:"exp"`            // 0: never
	Boot        string          `json:"boot,omitempty"` // "<counter>-<random>", of the rack
	Seq         uint64          `json:"seq,omitempty"`  // within a boot
	Sess        string          `json:"sess,omitempty"` // the nonce of the session's hello, in every dn frame but desired
	Corr        string          `json:"corr,omitempty"` // id of the message that this one answers
	Body        json.RawMessage `json:"body"`
	Attachments []Attachment    `json:"attachments,omitempty"`
}

// Attachment is a run of bytes behind the JSON, such as a screenshot.
type Attachment struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // media type
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"` // lower-case hex
	Data   []byte `json:"-"`
}

// NewMessage makes a message with an id of its own that ends after life, or
// never if life is 0. The body is encoded as JSON.
func NewMessage(t Type, now time.Time, life time.Duration, body any) (*Message, error) {
	raw, err := Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	m := &Message{V: 1, ID: NewID(now), Type: t, TS: now.UnixMilli(), Body: raw}
	if life > 0 {
		m.Exp = m.TS + min(life, MaxLife).Milliseconds()
	}
	return m, nil
}

// Marshal encodes JSON for frames. Unlike [json.Marshal] it writes <, > and & as they are: no page is made of it, and as
// \u003c each would take six times its room, so that a decision about a page of HTML would fit no frame.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// NewID returns a fresh ULID.
func NewID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy()).String()
}

// Attach adds bytes under a name; their size and hash are computed.
func (m *Message) Attach(name, mediaType string, data []byte) {
	sum := sha256.Sum256(data)
	m.Attachments = append(m.Attachments, Attachment{Name: name, Type: mediaType, Size: len(data), SHA256: hex.EncodeToString(sum[:]), Data: data})
}

// Attachment returns the bytes under a name, nil if there are none.
func (m *Message) Attachment(name string) []byte {
	for _, a := range m.Attachments {
		if a.Name == name {
			return a.Data
		}
	}
	return nil
}

// Expired tells whether the message's time is over. It does not say so for a
// message that never expires.
func (m *Message) Expired(now time.Time) bool { return m.Exp != 0 && now.UnixMilli() >= m.Exp }

// Decode reads the body into v, strictly, see [Unmarshal].
func (m *Message) Decode(v any) error {
	if err := Unmarshal(m.Body, v); err != nil {
		return fmt.Errorf("%w: body of %s: %v", ErrContent, m.Type, err)
	}
	return nil
}

// check holds a message to what does not depend on who receives it.
func (m *Message) check(t Topic) error {
	if m.V != 1 {
		return fmt.Errorf("version %d is not known", m.V)
	}
	if _, err := ulid.ParseStrict(m.ID); err != nil {
		return errors.New("the id is no ULID")
	}
	if m.Corr != "" {
		if _, err := ulid.ParseStrict(m.Corr); err != nil {
			return errors.New("the correlation id is no ULID")
		}
	}
	if !m.Type.valid() {
		return fmt.Errorf("%.40q is no type", string(m.Type))
	}
	if len(m.Boot) > 80 || len(m.Sess) > 80 {
		return errors.New("boot or session is too long")
	}
	if m.TS <= 0 || m.TS > 1<<53 {
		return errors.New("there is no time of sending")
	}
	if m.Exp == 0 && !m.Type.lasting() || m.Exp < 0 || m.Exp != 0 && (m.Exp <= m.TS || m.Exp-m.TS > MaxLife.Milliseconds()) {
		return fmt.Errorf("a message of type %s expires within %s of its sending", m.Type, MaxLife)
	}
	if s, known := specs[m.Type]; known && (s.direction != "" && s.direction != t.Direction || s.kind != "" && s.kind != t.Kind) {
		return fmt.Errorf("%s does not belong on %s/%s", m.Type, t.Direction, t.Kind)
	}
	if len(m.Attachments) > MaxAttachments {
		return fmt.Errorf("it has %d attachments where %d are allowed", len(m.Attachments), MaxAttachments)
	}
	for i, a := range m.Attachments {
		if !ValidID(a.Name) || len(a.Type) > 80 || a.Size < 0 {
			return fmt.Errorf("attachment %d has no proper name, type or size", i)
		}
		if slices.ContainsFunc(m.Attachments[:i], func(b Attachment) bool { return a.Name == b.Name }) {
			return fmt.Errorf("the attachment %s is there twice", a.Name)
		}
	}
	return nil
}

// Seal makes the frame of a message for its topic.
func Seal(t Topic, k Keys, m *Message) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("seal %s: %w", m.Type, err)
	}
	if err := m.check(t); err != nil {
		return nil, fmt.Errorf("seal %s: %w", m.Type, err)
	}
	raw, err := Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", m.Type, err)
	}
	return seal(t, k, raw, m.Attachments)
}

// SealJSON signs JSON that somebody else has written. It is read back as the
// receiver will, so that what nobody would take is not sent.
func SealJSON(t Topic, k Keys, raw []byte, attachments ...[]byte) ([]byte, error) {
	list := make([]Attachment, len(attachments))
	for i, data := range attachments {
		list[i].Data = data
	}
	frame, err := seal(t, k, raw, list)
	if err != nil {
		return nil, err
	}
	_, err = Open(t, func(string) (Keys, bool) { return k, true }, frame)
	return frame, err
}

func seal(t Topic, k Keys, raw []byte, attachments []Attachment) ([]byte, error) {
	mac, err := k.mac(t, algHMAC, raw)
	if err != nil {
		return nil, err
	}
	size := len(raw) + maxHeader
	for _, a := range attachments {
		size += len(a.Data)
	}
	if len(raw) > MaxJSON || size > MaxFrame {
		return nil, fmt.Errorf("%w: about %d bytes", ErrTooLarge, size)
	}
	b := bytes.NewBuffer(make([]byte, 0, size+1))
	fmt.Fprintf(b, "%s %s %s %x\n", frameMagic, algHMAC, k.KID, mac)
	b.Write(raw)
	if len(attachments) > 0 {
		b.WriteByte(0)
	}
	for _, a := range attachments {
		b.Write(a.Data)
	}
	return b.Bytes(), nil
}

// Open reads a frame that came on a topic. keys gives the sender's keys by their
// kid. The MAC is proved before anything else is read. The attachments' bytes are
// parts of frame. An error is one of ErrMalformed, ErrTooLarge, ErrUnknown,
// ErrMAC and ErrContent; with the last the message comes too as far as it could
// be read, so that its sender can be told.
//
// Whether the message has expired and belongs to the session is the caller's to ask.
func Open(t Topic, keys func(kid string) (Keys, bool), frame []byte) (*Message, error) {
	if len(frame) > MaxFrame {
		return nil, fmt.Errorf("%w: %d bytes where %d are allowed", ErrTooLarge, len(frame), MaxFrame)
	}
	kid, mac, rest, err := openHeader(frame)
	if err != nil {
		return nil, err
	}
	raw, data, attached := bytes.Cut(rest, []byte{0})
	if len(raw) > MaxJSON {
		return nil, fmt.Errorf("%w: %d bytes of JSON where %d are allowed", ErrTooLarge, len(raw), MaxJSON)
	}
	k, ok := keys(kid)
	if !ok {
		return nil, ErrUnknown
	}
	k.KID = kid
	want, err := k.mac(t, algHMAC, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnknown, err)
	}
	if !hmac.Equal(mac, want) {
		return nil, ErrMAC
	}
	m := new(Message)
	if err := Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrContent, err)
	}
	if err := m.check(t); err != nil {
		return m, fmt.Errorf("%w: %v", ErrContent, err)
	}
	if attached != (len(m.Attachments) > 0) {
		return m, fmt.Errorf("%w: attachments are there or are announced, not both", ErrContent)
	}
	if err := m.cut(data); err != nil {
		return m, fmt.Errorf("%w: %v", ErrContent, err)
	}
	return m, nil
}

// openHeader reads "pr1 h1 <kid> <mac>" and its line's end.
func openHeader(frame []byte) (kid string, mac, rest []byte, err error) {
	line, _, ok := bytes.Cut(frame[:min(len(frame), maxHeader+1)], []byte{'\n'})
	if !ok {
		return "", nil, nil, fmt.Errorf("%w: no header line", ErrMalformed)
	}
	rest = frame[len(line)+1:]
	parts := bytes.Split(line, []byte{' '})
	if len(parts) != 4 || string(parts[0]) != frameMagic {
		return "", nil, nil, fmt.Errorf("%w: the header is not %q and three words", ErrMalformed, frameMagic)
	}
	if string(parts[1]) != algHMAC {
		return "", nil, nil, fmt.Errorf("%w: algorithm %.8q is not known", ErrMalformed, parts[1])
	}
	kid = string(parts[2])
	if !ValidID(kid) {
		return "", nil, nil, fmt.Errorf("%w: the key id is no id", ErrMalformed)
	}
	mac, err = hex.DecodeString(string(parts[3]))
	if err != nil || len(mac) != sha256.Size || !bytes.Equal(parts[3], bytes.ToLower(parts[3])) {
		return "", nil, nil, fmt.Errorf("%w: the MAC is not 64 lower-case hexadecimal digits", ErrMalformed)
	}
	return kid, mac, rest, nil
}

// cut gives each attachment its bytes and proves them.
func (m *Message) cut(data []byte) error {
	for i := range m.Attachments {
		a := &m.Attachments[i]
		if a.Size > len(data) {
			return fmt.Errorf("the attachment %s is cut", a.Name)
		}
		a.Data, data = data[:a.Size:a.Size], data[a.Size:]
		if sum := sha256.Sum256(a.Data); hex.EncodeToString(sum[:]) != a.SHA256 {
			return fmt.Errorf("the attachment %s is not what its hash says", a.Name)
		}
	}
	if len(data) > 0 {
		return errors.New("bytes follow the last attachment")
	}
	return nil
}
