package adb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// arg0 of AUTH packets (AOSP adb_auth.h).
const (
	authToken     = 1
	authSignature = 2
	authPublicKey = 3
)

// maxTokens bounds the tokens that a phone may send without being answered.
const maxTokens = 64

// authenticator answers tokens. The phone rejects a signature by sending a new
// token, but a second token need not be a rejection: one may have been queued
// for an earlier connection, or a repeated CNXN drew two. Then every answer
// would lag one token behind and be rejected in turn. So the first apparent
// rejection waits a moment; if a newer token comes, the same key signs that.
type authenticator struct {
	h        *handshake
	key      int  // index of the key to try next
	signed   int  // signatures sent
	settled  bool // the lag above is ruled out
	lastSent time.Time
}

// answer reacts to p, an AUTH packet, and returns the packet that follows.
func (a *authenticator) answer(ctx context.Context, p Packet) (Packet, error) {
	h := a.h
	token, err := parseToken(p)
	if err != nil {
		return Packet{}, err
	}
	if len(h.o.Keys) == 0 {
		return Packet{}, fmt.Errorf("%w: it asks for a key and none is configured", ErrUnauthorized)
	}
	if h.prompt {
		return a.answerWaiting(ctx, token)
	}
	if a.signed > 0 && !a.settled {
		next, newest, err := a.newest(ctx)
		if err != nil || next.Command != 0 {
			return next, err
		}
		if newest != nil {
			token = newest
			a.key--
		}
		a.settled = true
	}
	if a.key >= len(h.o.Keys) {
		return a.offer(ctx)
	}
	if err := a.sign(ctx, h.o.Keys[a.key], token); err != nil {
		return Packet{}, err
	}
	a.key++
	next, err := h.next(ctx, h.o.HandshakeTimeout)
	if errors.Is(err, errQuiet) {
		err = fmt.Errorf("%w: the phone does not answer a signature", ErrTimeout)
	}
	return next, err
}

// newest waits until no more tokens come and returns the last, nil if there
// was none. Another packet that came instead is returned first.
func (a *authenticator) newest(ctx context.Context) (other Packet, newest []byte, err error) {
	for range maxTokens {
		next, err := a.h.next(ctx, tokenQuiet)
		switch {
		case errors.Is(err, errQuiet):
			return Packet{}, newest, nil
		case err != nil || next.Command != CommandAuth:
			return next, nil, err
		}
		if newest, err = parseToken(next); err != nil {
			return Packet{}, nil, err
		}
	}
	return Packet{}, nil, protocolError("more than %d AUTH tokens unasked", maxTokens)
}

// offer sends the public key and waits for the person.
func (a *authenticator) offer(ctx context.Context) (Packet, error) {
	h := a.h
	line := append(h.o.Keys[0].PublicLine(h.o.Comment), 0)
	if err := h.send(ctx, Packet{Command: CommandAuth, Arg0: authPublicKey, Payload: line}); err != nil {
		return Packet{}, err
	}
	h.prompt = true
	h.o.Logger.Debug("key offered to the phone", "key", h.o.Keys[0])
	if h.o.OnPrompt != nil {
		h.o.OnPrompt()
	}
	a.lastSent = time.Now()
	return a.wait(ctx)
}

// answerWaiting answers a token that comes while the person decides: some
// phones ask anew after the key was accepted. A phone that keeps rejecting is
// answered once a second.
func (a *authenticator) answerWaiting(ctx context.Context, token []byte) (Packet, error) {
	for {
		pause := tokenPause - time.Since(a.lastSent)
		if pause <= 0 {
			break
		}
		next, err := a.h.next(ctx, pause)
		if errors.Is(err, errQuiet) {
			break
		}
		if err != nil || next.Command != CommandAuth {
			return next, err
		}
		if token, err = parseToken(next); err != nil {
			return Packet{}, err
		}
	}
	if err := a.sign(ctx, a.h.o.Keys[0], token); err != nil {
		return Packet{}, err
	}
	return a.wait(ctx)
}

// wait returns the next packet, however long it takes.
func (a *authenticator) wait(ctx context.Context) (Packet, error) {
	for {
		next, err := a.h.next(ctx, time.Hour)
		if !errors.Is(err, errQuiet) {
			return next, err
		}
	}
}

func (a *authenticator) sign(ctx context.Context, key *Key, token []byte) error {
	signature, err := key.Sign(token)
	if err != nil {
		return err
	}
	a.signed++
	a.h.signed = key
	a.lastSent = time.Now()
	return a.h.send(ctx, Packet{Command: CommandAuth, Arg0: authSignature, Payload: signature})
}

func parseToken(p Packet) ([]byte, error) {
	if p.Check != 0 {
		if err := p.Verify(); err != nil {
			return nil, err
		}
	}
	if p.Arg0 != authToken || len(p.Payload) != TokenSize {
		return nil, protocolError("AUTH of type %d with %d bytes, want a token of %d", p.Arg0, len(p.Payload), TokenSize)
	}
	return p.Payload, nil
}
