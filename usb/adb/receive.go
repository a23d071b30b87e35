package adb

// What the connection's reader does with packets of a stream. None of these
// methods blocks.

// okay takes in an OKAY. It reports false if the packet is not this stream's.
func (s *Stream) okay(p Packet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Arg0 == 0 || isClosed(s.closed) {
		return false
	}
	switch s.remote {
	case 0:
		s.remote = p.Arg0
		if s.conn.delayedAck {
			s.out.open(p.Payload)
		} else {
			s.out.open(nil)
		}
		close(s.answered)
	case p.Arg0:
		s.out.acknowledge(p.Payload)
	default:
		return false
	}
	notify(s.writable)
	return true
}

// receive takes in a WRTE. Without room the phone waits for its OKAY; a phone
// that does not wait loses the stream, not the connection.
func (s *Stream) receive(p Packet) {
	s.mu.Lock()
	if s.remote == 0 || s.remote != p.Arg0 || isClosed(s.ended) {
		s.mu.Unlock()
		return
	}
	reply, ok := s.in.put(p.Payload)
	if !ok {
		s.fault = protocolError("the phone sent more on a stream than it was allowed to")
		s.in.drop()
		close(s.ended)
	}
	remote := s.remote
	s.mu.Unlock()
	switch {
	case !ok:
		s.conn.remove(s)
		s.conn.queue(Packet{Command: CommandClose, Arg0: s.id, Arg1: remote})
		return
	case reply != nil:
		s.conn.queue(Packet{Command: CommandOkay, Arg0: s.id, Arg1: remote, Payload: reply.payload()})
	}
	notify(s.readable)
}

// peerClosed takes in a CLSE: a refusal before the first OKAY, otherwise the
// end, which is answered with a CLSE of our own. Old phones put 0 for their id.
func (s *Stream) peerClosed(p Packet) {
	s.mu.Lock()
	if p.Arg0 != 0 && s.remote != 0 && p.Arg0 != s.remote || isClosed(s.ended) {
		s.mu.Unlock()
		return
	}
	close(s.ended)
	remote := s.remote
	if remote == 0 {
		close(s.answered)
	}
	tell := remote != 0 && !isClosed(s.closed)
	s.mu.Unlock()
	s.conn.remove(s)
	if tell {
		s.conn.queue(Packet{Command: CommandClose, Arg0: s.id, Arg1: remote})
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
