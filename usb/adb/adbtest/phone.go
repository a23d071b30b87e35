package adbtest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"phonerack/usb/adb"
)

// Phone is a small adbd. Its services run in goroutines of their own.
type Phone struct {
	// Features are announced in the banner.
	Features []string
	// Version is the protocol version; 0 means adb.VersionSkipChecksum.
	Version uint32
	// Window is the receive window announced with delayed_ack; 0 means 64 KiB.
	Window int
	// Keys are accepted; with none and no Accept there is no authentication.
	Keys []*rsa.PublicKey
	// Accept is asked whether to accept an offered key, and may block.
	Accept func(key *rsa.PublicKey, comment string) bool
	// Serve runs a service; the stream is closed when it returns. A nil Serve
	// refuses everything, and so does one that returns ErrRefuse.
	Serve func(service string, s *Service) error
}

// ErrRefuse makes a phone refuse a service; it must be returned before the
// service is used.
var ErrRefuse = errors.New("adbtest: refuse")

// Run speaks to one host until the link ends, and returns nil then. A host that
// breaks a rule ends it too, with an error that is adb.ErrProtocol.
func (p *Phone) Run(ctx context.Context, link adb.Link) error {
	ctx, cancel := context.WithCancel(ctx)
	r := &phoneRun{p: p, link: link, ctx: ctx, streams: make(map[uint32]*Service)}
	err := r.loop()
	cancel()
	r.offline()
	_ = link.Close()
	r.work.Wait()
	if errors.Is(err, adb.ErrProtocol) {
		return err
	}
	return nil
}

type phoneRun struct {
	p       *Phone
	link    adb.Link
	ctx     context.Context
	work    sync.WaitGroup
	online  bool
	token   []byte
	payload int
	delayed bool
	version uint32

	mu      sync.Mutex // guards the fields below
	streams map[uint32]*Service
	lastID  uint32
}

func (r *phoneRun) send(p adb.Packet) error {
	if r.version < adb.VersionSkipChecksum {
		p.Check = p.Sum()
	}
	return r.link.WritePacket(r.ctx, p)
}

func (r *phoneRun) loop() error {
	for {
		p, err := r.link.ReadPacket(r.ctx, adb.Expect{MaxPayload: adb.MaxPayload})
		if err != nil {
			return err
		}
		if p.Command == adb.CommandConnect || p.Command == adb.CommandAuth || r.version < adb.VersionSkipChecksum {
			if err := p.Verify(); err != nil {
				return err
			}
		}
		if err := r.handle(p); err != nil {
			return err
		}
	}
}

func (r *phoneRun) handle(p adb.Packet) error {
	switch p.Command {
	case adb.CommandConnect:
		r.offline()
		own := r.p.Version
		if own == 0 {
			own = adb.VersionSkipChecksum
		}
		r.version, r.payload = min(own, p.Arg0), int(min(p.Arg1, adb.MaxPayload))
		r.delayed = slices.Contains(r.p.Features, adb.FeatureDelayedAck) && adb.ParseBanner(p.Payload).Has(adb.FeatureDelayedAck)
		if r.p.Accept != nil || len(r.p.Keys) > 0 {
			return r.challenge()
		}
		return r.connect()
	case adb.CommandAuth:
		return r.auth(p)
	case adb.CommandOpen:
		if r.online {
			return r.open(p)
		}
		return nil
	}
	r.mu.Lock()
	s := r.streams[p.Arg1]
	r.mu.Unlock()
	if s == nil || p.Arg0 != s.remote {
		return nil
	}
	switch p.Command {
	case adb.CommandOkay:
		return s.okay(p)
	case adb.CommandWrite:
		return s.data(p)
	case adb.CommandClose:
		return s.shut()
	}
	return nil
}

func (r *phoneRun) offline() {
	r.mu.Lock()
	streams := r.streams
	r.streams = make(map[uint32]*Service)
	r.mu.Unlock()
	for _, s := range streams {
		s.set(func() { s.ended = true })
	}
}

func (r *phoneRun) challenge() error {
	r.online = false
	r.token = make([]byte, adb.TokenSize)
	_, _ = rand.Read(r.token)
	return r.send(adb.Packet{Command: adb.CommandAuth, Arg0: 1, Payload: r.token})
}

func (r *phoneRun) connect() error {
	r.online = true
	version := r.p.Version
	if version == 0 {
		version = adb.VersionSkipChecksum
	}
	return r.send(adb.Packet{Command: adb.CommandConnect, Arg0: version, Arg1: adb.MaxPayload, Payload: []byte(DeviceBanner(r.p.Features...))})
}

func (r *phoneRun) auth(p adb.Packet) error {
	switch p.Arg0 {
	case 2:
		for _, key := range r.p.Keys {
			if rsa.VerifyPKCS1v15(key, crypto.SHA1, r.token, p.Payload) == nil {
				return r.connect()
			}
		}
		return r.challenge()
	case 3:
		line := strings.TrimSuffix(string(p.Payload), "\x00")
		if len(line) == len(p.Payload) || strings.ContainsAny(line, "\r\n") {
			return fmt.Errorf("%w: public key without NUL or with a line break", adb.ErrProtocol)
		}
		key, comment, err := adb.ParsePublicLine(p.Payload)
		if err != nil {
			return fmt.Errorf("%w: %w", adb.ErrProtocol, err)
		}
		if r.p.Accept != nil && r.p.Accept(key, comment) {
			return r.connect()
		}
		return nil
	}
	return fmt.Errorf("%w: AUTH of type %d", adb.ErrProtocol, p.Arg0)
}

func (r *phoneRun) open(p adb.Packet) error {
	service, ended := strings.CutSuffix(string(p.Payload), "\x00")
	if !ended || p.Arg0 == 0 || r.delayed != (p.Arg1 != 0) || r.p.Serve == nil {
		return r.send(adb.Packet{Command: adb.CommandClose, Arg1: p.Arg0})
	}
	r.mu.Lock()
	r.lastID++
	s := &Service{r: r, id: 1000 + r.lastID, remote: p.Arg0, changed: make(chan struct{}), ready: true, credit: int(p.Arg1), window: r.p.Window}
	if s.window == 0 {
		s.window = 64 << 10
	}
	r.streams[s.id] = s
	r.mu.Unlock()
	r.work.Go(func() {
		err := r.p.Serve(service, s)
		if errors.Is(err, ErrRefuse) {
			s.set(func() { s.ended = true })
			_ = r.send(adb.Packet{Command: adb.CommandClose, Arg1: s.remote})
			return
		}
		_ = s.Close()
	})
	return nil
}

// Service is a stream as a phone's service sees it. The first use accepts it.
type Service struct {
	r          *phoneRun
	id, remote uint32
	accept     sync.Once

	mu      sync.Mutex // guards the fields below
	changed chan struct{}
	buf     []byte
	window  int
	taken   int  // with delayed_ack: bytes that the host has sent beyond acks
	pending bool // without: a WRTE is not acknowledged yet
	ready   bool // without: the host has acknowledged ours
	credit  int
	ended   bool
}

var _ io.ReadWriteCloser = (*Service)(nil)

func (s *Service) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Accept answers the OPEN.
func (s *Service) Accept() {
	s.accept.Do(func() { s.acknowledge(s.window) })
}

func (s *Service) acknowledge(n int) {
	p := adb.Packet{Command: adb.CommandOkay, Arg0: s.id, Arg1: s.remote}
	if s.r.delayed {
		p.Payload = binary.LittleEndian.AppendUint32(nil, uint32(n))
	}
	_ = s.r.send(p)
}

func (s *Service) okay(p adb.Packet) error {
	if s.r.delayed != (len(p.Payload) == 4) {
		return fmt.Errorf("%w: OKAY with %d bytes", adb.ErrProtocol, len(p.Payload))
	}
	s.set(func() {
		s.ready = true
		if s.r.delayed {
			s.credit += int(int32(binary.LittleEndian.Uint32(p.Payload)))
		}
	})
	return nil
}

func (s *Service) data(p adb.Packet) error {
	var err error
	s.set(func() {
		switch {
		case s.r.delayed && s.taken+len(p.Payload) > s.window:
			err = fmt.Errorf("%w: WRTE beyond the window", adb.ErrProtocol)
		case !s.r.delayed && s.pending:
			err = fmt.Errorf("%w: second WRTE without OKAY", adb.ErrProtocol)
		}
		s.taken += len(p.Payload)
		s.pending = true
		s.buf = append(s.buf, p.Payload...)
	})
	return err
}

func (s *Service) shut() error {
	s.r.mu.Lock()
	delete(s.r.streams, s.id)
	s.r.mu.Unlock()
	s.set(func() { s.ended = true })
	return s.r.send(adb.Packet{Command: adb.CommandClose, Arg0: s.id, Arg1: s.remote})
}

// Read implements io.Reader.
func (s *Service) Read(p []byte) (int, error) {
	s.Accept()
	s.mu.Lock()
	for len(s.buf) == 0 {
		if s.ended {
			s.mu.Unlock()
			return 0, io.EOF
		}
		s.wait()
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	s.taken -= n
	acknowledge := s.r.delayed || s.pending && len(s.buf) == 0
	if len(s.buf) == 0 {
		s.pending = false
	}
	s.mu.Unlock()
	if acknowledge {
		s.acknowledge(n)
	}
	return n, nil
}

// Write implements io.Writer.
func (s *Service) Write(p []byte) (int, error) {
	s.Accept()
	sent := 0
	for sent < len(p) {
		n := min(len(p)-sent, s.r.payload)
		s.mu.Lock()
		for !s.ended && (s.r.delayed && s.credit <= 0 || !s.r.delayed && !s.ready) {
			s.wait()
		}
		ended := s.ended
		s.ready = false
		s.credit -= n
		s.mu.Unlock()
		if ended {
			return sent, io.ErrClosedPipe
		}
		data := append([]byte(nil), p[sent:sent+n]...)
		if err := s.r.send(adb.Packet{Command: adb.CommandWrite, Arg0: s.id, Arg1: s.remote, Payload: data}); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

func (s *Service) wait() {
	changed := s.changed
	s.mu.Unlock()
	<-changed
	s.mu.Lock()
}

// Close ends the stream; the host may still have data to read.
func (s *Service) Close() error {
	s.Accept()
	s.mu.Lock()
	ended := s.ended
	s.ended = true
	s.mu.Unlock()
	s.r.mu.Lock()
	delete(s.r.streams, s.id)
	s.r.mu.Unlock()
	if !ended {
		_ = s.r.send(adb.Packet{Command: adb.CommandClose, Arg0: s.id, Arg1: s.remote})
	}
	return nil
}
