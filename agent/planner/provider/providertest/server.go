package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Key is the key that a server takes unless its [Config] names another.
const Key = "test-key-4f2d8c6a90b1e357"

// Config of a server. The zero value is a server that takes [Key] and answers
// each request with a call of the first tool, with {} as its arguments.
type Config struct {
	Key     string
	Latency time.Duration // before each answer
	// Default answers when the script is used up.
	Default func(*Seen) Reply
	// Keep is how many requests [Server.Seen] remembers at most, the newest
	// ones; 0 means 64, less than 0 none.
	Keep int
	// RecordWire keeps every byte that clients send, for [Server.Wire].
	RecordWire bool
	// Unchecked takes bodies as they are, for benchmarks: only path, headers and key
	// are looked at, [Seen] holds no more than those and the body, and Default has to
	// know what to call.
	Unchecked bool
	// NoSampling refuses temperature, as newer models do.
	NoSampling bool
}

// Server is a fake provider. Close ends it.
type Server struct {
	// URL is where it listens. Base URLs are URL for Messages and URL + "/v1" for
	// the others.
	URL string

	cfg      Config
	http     *http.Server
	listener net.Listener
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	stop     chan struct{} // closed by Close: what hangs ends
	done     chan struct{} // closed when serving has ended
	closed   sync.Once
	handlers sync.WaitGroup

	mu     sync.Mutex // guards what follows
	script []Reply
	seen   []Seen
	calls  int
	wire   bytes.Buffer
}

// Start starts a server on a loopback port.
func Start(cfg Config) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := newServer(cfg, l, "http://"+l.Addr().String())
	s.dial = (&net.Dialer{}).DialContext
	return s, nil
}

// StartInMemory starts a server that only [Server.Dial] reaches. Its
// connections are pipes, so that it works within testing/synctest, where hours
// of waiting cost nothing.
func StartInMemory(cfg Config) *Server {
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := newServer(cfg, l, "http://localhost")
	s.dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) }
	return s
}

func newServer(cfg Config, l net.Listener, url string) *Server {
	if cfg.Key == "" {
		cfg.Key = Key
	}
	if cfg.Keep == 0 {
		cfg.Keep = 64
	}
	if cfg.Default == nil {
		cfg.Default = func(r *Seen) Reply { return Call(r.Tools[0].Name, "{}") }
	}
	s := &Server{URL: url, cfg: cfg, listener: l, stop: make(chan struct{}), done: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(&recorded{Listener: l, server: s})
	}()
	return s
}

// Close ends the server and every connection, and waits for it.
func (s *Server) Close() {
	s.closed.Do(func() {
		close(s.stop)
		_ = s.http.Close()
	})
	<-s.done
	s.handlers.Wait()
}

// Dial connects to the server, whatever the address. It is where a scripted
// [Refuse] takes effect.
func (s *Server) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	s.mu.Lock()
	refuse := len(s.script) > 0 && s.script[0].refuse
	if refuse {
		s.script = s.script[1:]
		s.calls++
	}
	s.mu.Unlock()
	if refuse {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return s.dial(ctx, network, s.listener.Addr().String())
}

// Script adds the answers of the next requests. Requests that the server
// refuses by itself use none.
func (s *Server) Script(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, replies...)
}

// Seen returns the remembered requests, oldest first.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Calls counts the requests, those refused included.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Wire returns every byte that clients have sent, if the server records them.
func (s *Server) Wire() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.wire.Bytes())
}

// next notes a request and finds its answer.
func (s *Server) next(r *Seen) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.cfg.Keep > 0 {
		if len(s.seen) == s.cfg.Keep {
			s.seen = slices.Delete(s.seen, 0, 1)
		}
		s.seen = append(s.seen, *r)
	}
	if r.Problem != "" {
		return Status(r.status, r.Problem)
	}
	if len(s.script) == 0 {
		return s.cfg.Default(r)
	}
	reply := s.script[0]
	s.script = s.script[1:]
	return reply
}

// maxBody is what Anthropic takes; OpenAI takes more.
const maxBody = 32 << 20

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()
	var body []byte
	var err error
	if n := r.ContentLength; n >= 0 && n <= maxBody {
		body = make([]byte, n)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	}
	if err != nil {
		return
	}
	seen := s.look(r, body)
	reply := s.next(seen)
	if s.cfg.Latency > 0 && !s.wait(r.Context(), s.cfg.Latency) {
		return
	}
	reply.serve(&turn{server: s, w: w, r: r, seen: seen})
}

// wait waits, unless the client goes or the server ends.
func (s *Server) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.stop:
	}
	return false
}

// recorded is a listener whose connections tell the server what they read.
type recorded struct {
	net.Listener
	server *Server
}

func (l *recorded) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil || !l.server.cfg.RecordWire {
		return c, err
	}
	return &recordedConn{Conn: c, server: l.server}, nil
}

type recordedConn struct {
	net.Conn
	server *Server
}

func (c *recordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.server.mu.Lock()
	c.server.wire.Write(p[:n])
	c.server.mu.Unlock()
	return n, err
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn // never closed
	closed chan struct{} // closed by Close
	once   sync.Once
}

func (l *pipes) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, errors.New("closed")
	}
}

// Close implements net.Listener.
func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }
