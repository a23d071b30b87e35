package phonesim

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// What the phone chooses for port 0: the kernel's range of ports for anybody.
const (
	firstFree = 32768
	lastFree  = 60999
)

// ErrNoListener is what a connection to a port that no host serves fails with.
var ErrNoListener = errors.New("phonesim: connection refused: no host serves this port")

// reverseService answers the requests of "adb reverse" (AOSP adb.cpp, handle_forward_request): OKAY or FAIL with a text,
// the list without either.
func (d *daemon) reverseService(s *stream, request string) {
	answer := func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case request == "list-forward":
			var list strings.Builder
			for _, port := range slices.Sorted(maps.Keys(d.reverse)) {
				fmt.Fprintf(&list, "host-%d tcp:%d %s\n", s.id, port, d.reverse[port])
			}
			return protocolString(list.String())
		case request == "killforward-all":
			d.reverse = nil
			return "OKAY"
		case strings.HasPrefix(request, "killforward:"):
			port, err := tcpPort(strings.TrimPrefix(request, "killforward:"))
			if _, ok := d.reverse[port]; err != nil || !ok {
				return fail("listener '%s' not found", strings.TrimPrefix(request, "killforward:"))
			}
			delete(d.reverse, port)
			return "OKAY"
		case strings.HasPrefix(request, "forward:"):
			return d.addReverse(strings.TrimPrefix(request, "forward:"))
		}
		return fail("unknown request '%.40s'", request)
	}()
	io.WriteString(s, answer)
}

// addReverse handles "[norebind:]tcp:PORT;SERVICE"; d.mu is held.
func (d *daemon) addReverse(request string) string {
	request, norebind := strings.CutPrefix(request, "norebind:")
	local, service, found := strings.Cut(request, ";")
	if !found || local == "" || service == "" || service[0] == '*' {
		return fail("bad forward: %s", request)
	}
	port, err := tcpPort(local)
	if err != nil {
		return fail("%v", err)
	}
	chosen := port == 0
	for port = cmp.Or(port, firstFree); chosen && port < lastFree && d.reverse[port] != ""; port++ {
	}
	if ports, ok := d.phone.config.System.(PortSystem); ok {
		if _, taken := ports.Port(port); taken {
			return fail("cannot bind listener: Address already in use")
		}
	}
	if norebind && d.reverse[port] != "" {
		return fail("cannot rebind existing socket")
	}
	if d.reverse == nil {
		d.reverse = map[int]string{}
	}
	d.reverse[port] = service
	if chosen {
		return "OKAY" + protocolString(strconv.Itoa(port))
	}
	return "OKAY"
}

func tcpPort(spec string) (int, error) {
	text, ok := strings.CutPrefix(spec, "tcp:")
	port, err := strconv.Atoi(text)
	if !ok || err != nil || port < 0 || port > 65535 {
		return 0, fmt.Errorf("bad port in '%.40s'", spec)
	}
	return port, nil
}

func protocolString(text string) string { return fmt.Sprintf("%04x%s", len(text), text) }

func fail(format string, args ...any) string {
	return "FAIL" + protocolString(fmt.Sprintf(format, args...))
}

// DialReverse connects, as a program on the phone does, to a port that a host serves by "adb reverse". It blocks until
// the host has accepted or refused (ErrNoListener), or ctx ends. The caller closes the connection.
func (p *Phone) DialReverse(ctx context.Context, port int) (io.ReadWriteCloser, error) {
	for _, d := range p.daemons() {
		d.mu.Lock()
		service := d.reverse[port]
		if service == "" || d.state != online {
			d.mu.Unlock()
			continue
		}
		s := d.openToHost(service)
		d.mu.Unlock()
		select {
		case <-s.opened:
		case <-s.ctx.Done():
		case <-ctx.Done():
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if s.peer == 0 || ctx.Err() != nil {
			d.closeStream(s, s.peer != 0)
			return nil, cmp.Or(ctx.Err(), ErrNoListener)
		}
		return hostConn{s}, nil
	}
	return nil, ErrNoListener
}

// hostConn is a stream that the phone has opened.
type hostConn struct{ *stream }

// Close ends the stream.
func (c hostConn) Close() error {
	c.daemon.mu.Lock()
	defer c.daemon.mu.Unlock()
	c.daemon.closeStream(c.stream, true)
	return nil
}

// openToHost sends OPEN for a service of the host; d.mu is held.
func (d *daemon) openToHost(service string) *stream {
	d.lastID++
	s := newStream(d, d.lastID, 0, 0)
	s.ready, s.opened = false, make(chan struct{})
	d.streams[s.id] = s
	window := uint32(0)
	if d.delayedAck {
		window = uint32(d.phone.config.Window)
		s.credit.Store(int64(window))
	}
	d.queueMessage(cmdOPEN, s.id, window, append([]byte(service), 0), nil)
	return s
}

// answered handles the host's answer to an OPEN of the phone; d.mu is held.
func (d *daemon) answered(s *stream, m message) error {
	switch m.command {
	case cmdCLSE:
		d.closeStream(s, false)
		return nil
	case cmdWRTE:
		return violationf(RuleFlow, "WRTE on stream %d before its OKAY", s.id)
	}
	if m.arg0 == 0 || d.delayedAck != (len(m.payload) == 4) {
		return violationf(RuleOpen, "OKAY of id %d with %d bytes for a stream of the phone, delayed acknowledgement is %t", m.arg0, len(m.payload), d.delayedAck)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peer, s.ready = m.arg0, true
	if d.delayedAck {
		s.window = int64(int32(binary.LittleEndian.Uint32(m.payload)))
	}
	close(s.opened)
	s.cond.Broadcast()
	return nil
}
