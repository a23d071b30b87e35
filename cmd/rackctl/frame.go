package main

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"phonerack/sync/wire"
)

// frameCommands let mosquitto_pub and mosquitto_sub take part: docs/wire.md.
type frameCommands struct {
	Sign frameSign `cmd:"" help:"Make the frame of a JSON message, for mosquitto_pub -s."`
	Open frameOpen `cmd:"" help:"Check a frame, as mosquitto_sub -N -C 1 prints it, and print its JSON."`
}

// secretFlags name the MAC secret, which is never on a command line.
type secretFlags struct {
	Secret string `help:"File of mode 0600 with the MAC secret: 32 bytes, or those as base64 or hexadecimal." placeholder:"FILE" xor:"secret" required:""`
	Bundle string `help:"File of mode 0600 with the bundle of an enrolment, instead of --secret and --kid." placeholder:"FILE" xor:"secret" required:""`
	KID    string `name:"kid" help:"Name of the secret's keys." placeholder:"ID"`
}

func (f secretFlags) keys(kid string) (wire.Keys, error) {
	path := f.Secret + f.Bundle
	info, err := os.Stat(path)
	if err != nil {
		return wire.Keys{}, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return wire.Keys{}, fmt.Errorf("%s has mode %04o: others may read it; want 0600", path, info.Mode().Perm())
	}
	if info.Size() > wire.MaxBundle {
		return wire.Keys{}, fmt.Errorf("%s is too large for a secret", path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return wire.Keys{}, err
	}
	if f.Bundle != "" {
		b, err := wire.ParseBundle(raw)
		if err != nil {
			return wire.Keys{}, err
		}
		return b.Keys()
	}
	secret, err := parseSecret(raw)
	if err != nil {
		return wire.Keys{}, fmt.Errorf("%s: %w", path, err)
	}
	return wire.DeriveKeys(kid, secret)
}

// parseSecret tells the three forms by their length.
func parseSecret(raw []byte) ([]byte, error) {
	if len(raw) == wire.SecretBytes {
		return raw, nil
	}
	text := strings.TrimSpace(string(raw))
	switch len(text) {
	case hex.EncodedLen(wire.SecretBytes):
		return hex.DecodeString(text)
	case base64.StdEncoding.EncodedLen(wire.SecretBytes):
		return base64.StdEncoding.DecodeString(text)
	}
	return nil, fmt.Errorf("the secret has to be %d bytes, or those as base64 or hexadecimal", wire.SecretBytes)
}

type frameSign struct {
	secretFlags
	Topic  string        `arg:"" help:"Topic of the frame, such as pr/v1/acme/rack-1/up/event."`
	JSON   string        `arg:"" optional:"" help:"File of the message; standard input if it is left out." placeholder:"FILE"`
	Attach []string      `help:"Attachment as name=media/type=file; may be repeated." sep:"none" placeholder:"N=T=F"`
	Life   time.Duration `help:"Time until a message without exp expires; 0 for never." default:"1m"`
	Raw    bool          `help:"Sign the JSON byte for byte, without filling in v, id, ts, exp and attachments."`
}

func (c frameSign) Run(s *session) error {
	topic, err := wire.ParseTopic(c.Topic)
	if err != nil {
		return err
	}
	if c.Secret != "" && c.KID == "" {
		return errors.New("--secret needs --kid, the name of its keys")
	}
	keys, err := c.keys(c.KID)
	if err != nil {
		return err
	}
	raw, err := readInput(s.stdin, c.JSON, wire.MaxJSON)
	if err != nil {
		return err
	}
	attached, err := c.attachments()
	if err != nil {
		return err
	}
	frame, err := c.seal(topic, keys, raw, attached)
	if err != nil {
		return err
	}
	_, err = s.stdout.Write(frame)
	return err
}

func (c frameSign) seal(topic wire.Topic, keys wire.Keys, raw []byte, attached []wire.Attachment) ([]byte, error) {
	if c.Raw {
		data := make([][]byte, len(attached))
		for i, a := range attached {
			data[i] = a.Data
		}
		return wire.SealJSON(topic, keys, raw, data...)
	}
	var m wire.Message
	if err := wire.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("the message: %w", err)
	}
	now := time.Now()
	if m.V == 0 {
		m.V = 1
	}
	if m.ID == "" {
		m.ID = wire.NewID(now)
	}
	if m.TS == 0 {
		m.TS = now.UnixMilli()
	}
	if m.Exp == 0 && c.Life > 0 {
		m.Exp = m.TS + c.Life.Milliseconds()
	}
	if m.Body == nil {
		m.Body = []byte("{}")
	}
	if len(m.Attachments) > 0 {
		return nil, errors.New("attachments are named by --attach, or described in the JSON with --raw")
	}
	for _, a := range attached {
		m.Attach(a.Name, a.Type, a.Data)
	}
	return wire.Seal(topic, keys, &m)
}

func (c frameSign) attachments() ([]wire.Attachment, error) {
	var list []wire.Attachment
	for _, a := range c.Attach {
		parts := strings.SplitN(a, "=", 3)
		if len(parts) != 3 || !wire.ValidID(parts[0]) {
			return nil, fmt.Errorf("attachment %q: want name=media/type=file, with a name of a-z, 0-9 and -", a)
		}
		data, err := readInput(nil, parts[2], wire.MaxFrame)
		if err != nil {
			return nil, err
		}
		list = append(list, wire.Attachment{Name: parts[0], Type: parts[1], Data: data})
	}
	return list, nil
}

// readInput reads a file, or stdin without one, up to a bound.
func readInput(stdin io.Reader, path string, limit int64) ([]byte, error) {
	name, r := "standard input", stdin
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		name, r = path, f
	}
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return raw, nil
}

type frameOpen struct {
	secretFlags
	Topic       string `arg:"" help:"Topic on which the frame came."`
	Frame       string `arg:"" optional:"" help:"File of the frame; standard input if it is left out." placeholder:"FILE"`
	Attachments string `help:"Folder for the attachments, each under its name." placeholder:"FOLDER"`
}

func (c frameOpen) Run(s *session) error {
	topic, err := wire.ParseTopic(c.Topic)
	if err != nil {
		return err
	}
	raw, err := readInput(s.stdin, c.Frame, wire.MaxFrame)
	if err != nil {
		return err
	}
	var fault error
	m, err := wire.Open(topic, func(kid string) (wire.Keys, bool) {
		var k wire.Keys
		k, fault = c.keys(kid)
		return k, fault == nil && k.KID == kid && (c.KID == "" || c.KID == kid)
	}, raw)
	if fault != nil {
		return fault
	}
	if err != nil {
		return fmt.Errorf("the frame is refused: %w", err)
	}
	if c.Attachments != "" {
		if err := writeAttachments(c.Attachments, m); err != nil {
			return err
		}
	}
	if m.Expired(time.Now()) {
		fmt.Fprintln(s.stderr, "the message has expired: a receiver would refuse it")
	}
	return s.print(m)
}

// writeAttachments writes them below a folder and overwrites nothing. Their names
// are ids, which no file system gives a meaning.
func writeAttachments(folder string, m *wire.Message) error {
	for _, a := range m.Attachments {
		f, err := os.OpenFile(filepath.Join(folder, a.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(a.Data)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
