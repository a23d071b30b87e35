package phonesim

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
)

// streamLink carries messages over a byte stream.
type streamLink struct {
	phone *Phone
	plug  *plug
	rwc   io.ReadWriteCloser
	out   *outbox
}

// ServeStream lets one host talk to the phone over a byte stream, such as a TCP connection or net.Pipe, until
// it ends, and closes it. The rules of USB transfers have no meaning there; all others have.
//
// It returns nil if the host closed the stream, ErrUnplugged, ErrRebooting, the *Violation for which the phone
// dropped the link, or the cause of ctx's end.
func (p *Phone) ServeStream(ctx context.Context, rwc io.ReadWriteCloser) error {
	defer rwc.Close()
	s, err := p.plugIn(ctx)
	if err != nil {
		return err
	}
	defer p.plugOut(s)
	l := &streamLink{phone: p, plug: s, rwc: rwc, out: newOutbox()}
	backend, err := p.backend(s.ctx, l)
	if err != nil {
		return err
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		if err := l.out.run(s.ctx); err != nil {
			s.end(err)
		}
	})
	unblock := context.AfterFunc(s.ctx, func() { rwc.Close() })
	defer unblock()

	err = l.read(backend)
	p.recordError(err)
	s.end(err)
	err = context.Cause(s.ctx)
	backend.wait()
	writer.Wait()
	if hungUp(err) {
		return nil
	}
	return err
}

// read passes the host's messages on until the stream ends.
func (l *streamLink) read(b backend) error {
	r := bufio.NewReaderSize(faultyReader{l}, 64<<10)
	var fixed [headerSize]byte
	for {
		if _, err := io.ReadFull(r, fixed[:]); err != nil {
			return err
		}
		m := message{header: parseHeader(fixed[:])}
		if err := m.check(b.limit()); err != nil {
			return err
		}
		if m.length > 0 {
			m.payload = make([]byte, m.length)
			if _, err := io.ReadFull(r, m.payload); err != nil {
				return err
			}
		}
		if l.phone.Faults().Hang {
			continue
		}
		if err := b.receive(m); err != nil {
			return err
		}
	}
}

// errBrokenLink is what a failing USB transfer comes to on a byte stream.
var errBrokenLink = errors.New("phonesim: the link failed")

// faultyReader reads from the host what the faults let through.
type faultyReader struct{ l *streamLink }

func (r faultyReader) Read(b []byte) (int, error) {
	n, err := r.l.rwc.Read(b)
	if n > 0 && r.l.phone.faults.transfer(true) != NoError {
		return 0, errBrokenLink
	}
	pass, ends := r.l.phone.faults.pass(true, n)
	if ends {
		return pass, ErrUnplugged
	}
	return pass, err
}

// queue implements link.
func (l *streamLink) queue(m message, sent func()) {
	header, payload := l.phone.faults.frame(m)
	if header == nil {
		return
	}
	l.out.put(func(ctx context.Context) error {
		if err := sleep(ctx, l.phone.faults.pause(len(header)+len(payload))); err != nil {
			return err
		}
		if l.phone.faults.transfer(false) != NoError {
			return errBrokenLink
		}
		if sent != nil {
			sent()
		}
		if err := l.write(header); err != nil {
			return err
		}
		return l.write(payload)
	})
}

// write writes to the host what the faults let through.
func (l *streamLink) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	pass, ends := l.phone.faults.pass(false, len(b))
	_, err := l.rwc.Write(b[:pass])
	if ends {
		return ErrUnplugged
	}
	return err
}

// dropQueued implements link: bytes in a stream cannot be called back.
func (l *streamLink) dropQueued() {}

// end implements link.
func (l *streamLink) end(err error) { l.plug.end(err) }
