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
	var f follower
	if r.URL.Query().Has("log") {
		if s == nil {
			return wire.Refuse(wire.PINNeeded, nil)
		}
		var err error
		if f.seen, err = lastLine(r); err != nil {
			return err
		}
		f.logged, f.ended = closed, s.ended
	}
	leave, ok := p.streams.enter(remoteAddr(r))
	if !ok {
		return wire.Refuse(wire.LimitExceeded, map[string]any{"what": "streams of events", "limit": maxStreams})
	}
	defer leave()

	f.out = stream{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	f.changed = p.o.Source.Changed()
	// The browser's page may be older than the stream.
	if f.out.write("retry: 3000\nevent: change\ndata:\n\n") {
		f.run(r, p.o.Source, &p.sessions)
	}
	return nil
}

// follower writes what comes to one stream.
type follower struct {
	out     stream
	changed <-chan struct{}
	logged  <-chan struct{} // nil without the log
	ended   <-chan struct{} // of the session that may see the log; nil without the log
	seen    uint64          // number of the last line of the log that was sent
}

// run writes until the request or the session ends, the browser takes nothing more, or the stream is old.
func (f *follower) run(r *http.Request, source Source, sessions *sessions) {
	var told time.Time
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	over := time.NewTimer(streamLife)
	defer over.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-f.ended:
			return
		case <-over.C:
			return
		case <-beat.C:
			sessions.expire()
			if !f.out.write(":\n\n") {
				return
			}
		case <-f.changed:
			// What changes meanwhile is in the same word.
			if !rest(r, max(together, changesGap-time.Since(told))) {
				return
			}
			told = time.Now()
			f.changed = source.Changed()
			if !f.out.write("event: change\ndata:\n\n") {
				return
			}
		case <-f.logged:
			f.logged = source.Logged()
			lines := source.Log(f.seen, maxLines)
			if len(lines) == 0 {
				continue
			}
			f.seen = lines[len(lines)-1].Seq
			if !f.out.lines(lines) || !rest(r, changesGap) {
				return
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
