package phonesim

// outEndpoint puts the host's bulk writes together to messages and judges how they were cut.
//
// The daemon reads a header with one transfer and its payload with another. A transfer ends with a packet
// that is shorter than the endpoint's packet size, so a payload that fills its last packet ends with
// the zero-length packet after it. Long transfers arrive in pieces, cut where packets end.
type outEndpoint struct {
	packet int // bytes
	zero   ZeroPackets
	halted bool

	header  *header // of the message under way, or nil between messages
	payload []byte
	full    bool // the payload is complete but for its zero-length packet
}

// write takes a piece of a transfer and returns the message that it completes, if it does.
func (e *outEndpoint) write(b []byte, limit int) (*message, error) {
	switch {
	case e.full && len(b) == 0:
		return e.finish(), nil
	case e.full:
		return nil, e.reset()
	case len(b) == 0 && e.zero == ZeroPacketsOptional:
		return nil, nil
	case len(b) == 0:
		return nil, violationf(RuleStrayZLP, "%s", e.where())
	case e.header == nil:
		return e.writeHeader(b, limit)
	}
	return e.writePayload(b)
}

func (e *outEndpoint) where() string {
	if e.header == nil {
		return "a header was to come"
	}
	return "a payload was to come"
}

func (e *outEndpoint) writeHeader(b []byte, limit int) (*message, error) {
	if len(b) != headerSize {
		return nil, violationf(RuleHeader, "%d bytes", len(b))
	}
	h := parseHeader(b)
	if err := h.check(limit); err != nil {
		return nil, err
	}
	e.header = &h
	if h.length == 0 {
		return e.finish(), nil
	}
	return nil, nil
}

func (e *outEndpoint) writePayload(b []byte) (*message, error) {
	left := int(e.header.length) - len(e.payload)
	if len(b) > left || len(b) < left && len(b)%e.packet != 0 {
		return nil, violationf(RulePayload, "%d bytes with %d of %d bytes to come", len(b), left, e.header.length)
	}
	e.payload = append(e.payload, b...)
	switch {
	case len(b) < left:
		return nil, nil
	case len(e.payload)%e.packet == 0 && e.zero == ZeroPacketsRequired:
		e.full = true
		return nil, nil
	}
	return e.finish(), nil
}

func (e *outEndpoint) finish() *message {
	m := &message{header: *e.header, payload: e.payload}
	e.header, e.payload, e.full = nil, nil, false
	return m
}

// reset forgets a message under way. A payload without its zero-length packet is told as what it is.
func (e *outEndpoint) reset() error {
	full, length := e.full, len(e.payload)
	e.header, e.payload, e.full = nil, nil, false
	if full {
		return violationf(RuleMissingZLP, "none ended a payload of %d bytes in packets of %d", length, e.packet)
	}
	return nil
}
