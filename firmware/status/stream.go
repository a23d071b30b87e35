package status

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"phonerack/sync/wire"
)

// Bounds of streams of events.
const (
	maxStreams     = 24 // on the whole rack
	maxStreamsEach = 6  // of one address: as many connections as browsers make to a host

	heartbeat  = 20 * time.Second
	changesGap = time.Second            // between two words of a change
	together   = 100 * time.Millisecond // what changes within it is one change
	streamLife = time.Hour              // then the browser opens it again
	writeWait  = 10 * time.Second
	maxLines   = 100 // of the log in one go
)

// streams counts those that are open.
type streams struct {
	mu  sync.Mutex
	all int
	by  map[netip.Addr]int // guarded by mu, as all is
}

func newStreams() *streams { return &streams{by: map[netip.Addr]int{}} }

// enter counts one in; leave has to be called when ok.
func (s *streams) enter(from netip.Addr) (leave func(), ok bool) {
	from = network(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreams || s.by[from] >= maxStreamsEach {
		return nil, false
	}
	s.all++
	s.by[from]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.by[from]--; s.by[from] == 0 {
			delete(s.by, from)
		}
	}, true
}

// events is the one stream of a page: the word that something changed, and with log=N the lines of the log after N. It
// ends with the request, with the session if it has the log, and after an hour. While nothing changes it costs a
// heartbeat.
func (p *Page) events(w http.ResponseWriter, r *http.Request) error {
	s := p.sessions.of(r)
	var logged <-chan struct{} // nil without the log
	var ended <-chan struct{}
	var seen uint64
	if r.URL.Query().Has("log") {
		if s == nil {
			return wire.Refuse(wire.PINNeeded, nil)
		}
		var err error
		if seen, err = lastLine(r); err != nil {
			return err
		}
		logged, ended = closed, s.ended
	}
	leave, ok := p.streams.enter(remoteAddr(r))
	if !ok {
		return wire.Refuse(wire.LimitExceeded, map[string]any{"what": "streams of events", "limit": maxStreams})
	}
	defer leave()

	out := stream{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	changed := p.o.Source.Changed()
	// The browser's page may be older than the stream.
	if !out.write("retry: 3000\nevent: change\ndata:\n\n") {
		return nil
	}
	var told time.Time
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	over := time.NewTimer(streamLife)
	defer over.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-ended:
			return nil
		case <-over.C:
			return nil
		case <-beat.C:
			p.sessions.expire()
			if !out.write(":\n\n") {
				return nil
			}
		case <-changed:
			// What changes meanwhile is in the same word.
			if !rest(r, max(together, changesGap-time.Since(told))) {
				return nil
			}
			told = time.Now()
			changed = p.o.Source.Changed()
			if !out.write("event: change\ndata:\n\n") {
				return nil
			}
		case <-logged:
			logged = p.o.Source.Logged()
			lines := p.o.Source.Log(seen, maxLines)
			if len(lines) == 0 {
				continue
			}
			seen = lines[len(lines)-1].Seq
			if !out.lines(lines) || !rest(r, changesGap) {
				return nil
			}
		}
	}
}

// lastLine is the line of the log that the browser has: of the address, or what it had when a stream broke.
func lastLine(r *http.Request) (uint64, error) {
	at := r.Header.Get("Last-Event-ID")
	if at == "" {
		at = r.URL.Query().Get("log")
	}
	n, err := strconv.ParseUint(at, 10, 64)
	if err != nil {
		return 0, wire.Refuse(wire.BadRequest, map[string]any{"reason": "log is no number"})
	}
	return n, nil
}

// closed is a channel that is.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// rest waits; false if the request ended.
func rest(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// stream writes events, each within a bound of its own: the server's is for whole answers.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// write tells whether the other side still takes it.
func (s stream) write(text string) bool {
	_ = s.control.SetReadDeadline(time.Time{}) // else the server's ends the stream
	if err := s.control.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return false
	}
	if _, err := fmt.Fprint(s.w, text); err != nil {
		return false
	}
	return s.control.Flush() == nil
}

// lines sends lines of the log in one event.
func (s stream) lines(all []LogLine) bool {
	shown := make([]LogLine, len(all))
	for i, l := range all {
		shown[i] = l
		shown[i].Text = cut(l.Text, maxLineBytes)
	}
	b, err := json.Marshal(shown)
	if err != nil {
		return false
	}
	return s.write(fmt.Sprintf("id: %d\nevent: log\ndata: %s\n\n", all[len(all)-1].Seq, b))
}
