package adb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options of a connection. The zero value is usable for a phone that does not
// ask for authentication.
type Options struct {
	// Keys are tried in order. The first is offered to the person at the phone
	// when none is accepted.
	Keys []*Key
	// ChooseKeys, if set, is asked by each Connect for the keys to use instead.
	ChooseKeys func() []*Key
	// Comment goes with the offered key; phones may show it. Empty means
	// "phonerack".
	Comment string
	// OnPrompt is called, from Connect's goroutine, when the key has been
	// offered and a person has to accept it on the phone.
	OnPrompt func()
	// MaxPayload is the largest packet payload in bytes to announce, at most
	// 1 MiB. 0 means what the link prefers.
	MaxPayload int
	// Window bounds in bytes what is kept for a stream whose reader is slow,
	// plus one payload. With delayed_ack it is announced to the phone, and a
	// phone that overdraws it (adbd does at times) is borne with for 8 MiB
	// more. 0 means 1 MiB.
	Window int
	// NoDelayedAck leaves the delayed_ack feature unannounced.
	NoDelayedAck bool

	// HandshakeTimeout bounds the silence of a phone that has not yet
	// connected or asked for authentication, or does not answer a signature.
	// 0 means 10 s.
	HandshakeTimeout time.Duration
	// WriteTimeout bounds the time a phone takes to accept one packet, after
	// which the connection is dead. 0 means 30 s.
	WriteTimeout time.Duration
	// OpenTimeout bounds the wait for a service to be accepted or refused.
	// 0 means 30 s.
	OpenTimeout time.Duration
	// IdleTimeout bounds the time without progress in a file transfer.
	// 0 means 60 s.
	IdleTimeout time.Duration
	// ShellOutput bounds in bytes what Shell collects of stdout and stderr
	// together. 0 means 16 MiB.
	ShellOutput int

	// Logger takes debug messages about the connection; nil means none.
	Logger *slog.Logger
}

const (
	resendInterval = 2 * time.Second
	// drainQuiet is how long a link must be silent before CNXN is sent, so
	// that replies to an earlier connection are not taken for ours.
	drainQuiet = 30 * time.Millisecond
	drainMost  = 500 * time.Millisecond
	// tokenQuiet is how long a newer token is waited for before a rejected
	// signature counts as such; see authenticator.
	tokenQuiet = 150 * time.Millisecond
	// lateAnswers is how long answers to a repeated CNXN are waited for: one
	// that came after the first stream was opened would end it.
	lateAnswers = 300 * time.Millisecond
	// tokenPause spaces answers to tokens that come while a person decides.
	tokenPause = time.Second
)

func (o Options) withDefaults(link LinkProperties) Options {
	setDefault(&o.Comment, "phonerack")
	setDefault(&o.MaxPayload, link.MaxPayload)
	setDefault(&o.MaxPayload, MaxPayload)
	setDefault(&o.Window, 1<<20)
	setDefault(&o.HandshakeTimeout, 10*time.Second)
	setDefault(&o.WriteTimeout, 30*time.Second)
	setDefault(&o.OpenTimeout, 30*time.Second)
	setDefault(&o.IdleTimeout, 60*time.Second)
	setDefault(&o.ShellOutput, 16<<20)
	o.MaxPayload = min(max(o.MaxPayload, MaxPayloadV1), MaxPayload)
	// A sender may wait for room for a whole payload.
	o.Window = min(max(o.Window, o.MaxPayload), 64<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](v *T, def T) {
	if *v == *new(T) {
		*v = def
	}
}

// Connect shakes hands with the phone at the other end of link and returns the
// connection. From the call on link belongs to Connect; it is closed on
// failure.
//
// Connect blocks until the phone is online, ctx ends, or the phone is silent
// for HandshakeTimeout (ErrTimeout: it may be hung, which is not the same as
// unauthorised). While a person has to accept the key on the phone it waits
// until ctx ends, and then fails with ErrUnauthorized (and ctx.Err()). It also
// fails with ErrDisconnected, ErrProtocol or ErrTLS.
func Connect(ctx context.Context, link Link, o Options) (*Conn, error) {
	o = o.withDefaults(link.Properties())
	if o.ChooseKeys != nil {
		o.Keys = o.ChooseKeys()
	}
	ioCtx, cancel := context.WithCancel(context.Background())
	h := &handshake{
		link: link, o: o,
		packets: make(chan handshakePacket),
		resume:  make(chan bool),
		ended:   make(chan struct{}),
	}
	go h.read(ioCtx)
	connect, err := h.run(ctx)
	if err != nil {
		cancel()
		closeErr := link.Close()
		close(h.resume)
		<-h.ended
		if closeErr != nil {
			o.Logger.Debug("closing the link after a failed handshake", "err", closeErr)
		}
		return nil, err
	}
	h.resume <- false
	<-h.ended
	c := newConn(ioCtx, cancel, link, o, connect, h.sent-1)
	if !h.prompt { // what a person accepted may hold for this once
		c.key = h.signed
	}
	if h.sent > 1 {
		select {
		case <-time.After(lateAnswers):
		case <-ctx.Done():
		}
	}
	o.Logger.Debug("connected", "type", c.banner.Type, "model", c.banner.Model, "version", fmt.Sprintf("0x%08x", c.version), "payload", c.sendMax, "delayed_ack", c.delayedAck)
	return c, nil
}

// handshake is the conversation up to the phone's CNXN. Its reader goroutine
// reads a packet, hands it over and waits to be told whether to read another:
// the packet after CNXN must be read by the Conn.
type handshake struct {
	link    Link
	o       Options
	packets chan handshakePacket
	resume  chan bool // true: read one more
	ended   chan struct{}
	waiting bool // a packet was taken and the reader not yet resumed
	prompt  bool // the public key was offered
	signed  *Key // whose signature was sent last; nil if the phone has not asked
	sent    int  // times CNXN was sent
}

type handshakePacket struct {
	Packet
	err error
}

// errQuiet: nothing came in the time given.
var errQuiet = errors.New("adb: quiet")

func (h *handshake) read(ctx context.Context) {
	defer close(h.ended)
	for {
		p, err := h.link.ReadPacket(ctx, Expect{MaxPayload: MaxPayloadV1, Handshake: true})
		select {
		case h.packets <- handshakePacket{p, err}:
		case <-ctx.Done():
			return
		}
		if err != nil || !<-h.resume {
			return
		}
	}
}

// next returns the next packet, or errQuiet after d.
func (h *handshake) next(ctx context.Context, d time.Duration) (Packet, error) {
	if h.waiting {
		h.waiting = false
		h.resume <- true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case p := <-h.packets:
		if p.err != nil {
			if errors.Is(p.err, ErrProtocol) {
				return Packet{}, p.err
			}
			return Packet{}, disconnected(p.err)
		}
		h.waiting = true
		return p.Packet, nil
	case <-timer.C:
		return Packet{}, errQuiet
	case <-ctx.Done():
		return Packet{}, h.contextError(ctx)
	}
}

func (h *handshake) contextError(ctx context.Context) error {
	if h.prompt {
		return fmt.Errorf("%w: nobody accepted the key on its display: %w", ErrUnauthorized, ctx.Err())
	}
	return fmt.Errorf("adb: waiting for the phone to connect: %w", ctx.Err())
}

// run returns the phone's CNXN.
func (h *handshake) run(ctx context.Context) (Packet, error) {
	if h.link.Properties().Stale {
		if err := h.drain(ctx); err != nil {
			return Packet{}, err
		}
	}
	p, err := h.connect(ctx)
	if err != nil {
		return Packet{}, err
	}
	auth := authenticator{h: h}
	for {
		switch p.Command {
		case CommandConnect:
			if err := checkConnect(p); err != nil {
				return Packet{}, err
			}
			return p, nil
		case CommandStartTLS:
			return Packet{}, ErrTLS
		}
		if p, err = auth.answer(ctx, p); err != nil {
			return Packet{}, err
		}
	}
}

// drain discards what the phone still had to say to an earlier connection.
func (h *handshake) drain(ctx context.Context) error {
	for start := time.Now(); time.Since(start) < drainMost; {
		switch _, err := h.next(ctx, drainQuiet); {
		case errors.Is(err, errQuiet):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// connect sends CNXN until something answers: CNXN is also how the protocol
// resynchronises, and one that filled up an unfinished payload of an earlier
// connection was not understood.
func (h *handshake) connect(ctx context.Context) (Packet, error) {
	banner := hostBanner(!h.o.NoDelayedAck)
	for start := time.Now(); ; {
		err := h.send(ctx, Packet{Command: CommandConnect, Arg0: VersionSkipChecksum, Arg1: uint32(h.o.MaxPayload), Payload: banner})
		if err != nil {
			return Packet{}, err
		}
		h.sent++
		left := h.o.HandshakeTimeout - time.Since(start)
		p, err := h.next(ctx, min(left, resendInterval))
		if err == nil || !errors.Is(err, errQuiet) {
			return p, err
		}
		if time.Since(start) >= h.o.HandshakeTimeout {
			return Packet{}, fmt.Errorf("%w: the phone does not answer CNXN", ErrTimeout)
		}
	}
}

// send writes a handshake packet, which always carries its checksum.
func (h *handshake) send(ctx context.Context, p Packet) error {
	p.Check = p.Sum()
	timed, cancel := context.WithTimeout(ctx, h.o.WriteTimeout)
	defer cancel()
	err := h.link.WritePacket(timed, p)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return h.contextError(ctx)
	case timed.Err() != nil:
		return fmt.Errorf("%w: the phone does not take %s", ErrTimeout, p.Command)
	}
	return disconnected(err)
}

// checkConnect looks at the phone's CNXN. Phones that know version 0x01000001
// leave its checksum out.
func checkConnect(p Packet) error {
	if p.Check != 0 {
		if err := p.Verify(); err != nil {
			return err
		}
	}
	if p.Arg0 < VersionMin {
		return protocolError("version 0x%08x in CNXN", p.Arg0)
	}
	if p.Arg1 < HeaderSize {
		return protocolError("payload limit of %d bytes in CNXN", p.Arg1)
	}
	return nil
}
