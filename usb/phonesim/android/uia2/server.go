package uia2

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"phonerack/usb/phonesim/screen"
)

// Port is where the server listens.
const Port = 6790

// Phone is what the server uses of the phone that it runs on.
type Phone interface {
	Tree() *screen.Node    // of the active window; nil while there is none
	Trees() []*screen.Node // of all windows that are seen, the topmost first
	Display() screen.Display
	Idle() bool
	Screenshot() *image.RGBA // nil: the screen must not be shown
	Clipboard() string
	SetClipboard(text string) error
	// Wait waits for phone time to pass.
	Wait(ctx context.Context, d time.Duration) error
	Faults() Faults
}

// Faults is what is wrong with the server. The zero value is a healthy one.
type Faults struct {
	// SlowStart is how much longer it takes until the server listens.
	SlowStart time.Duration
	// Crash ends the server at the next request, which is not answered.
	Crash bool
	// Hang takes requests and answers none, until it is false again.
	Hang bool
	// Stale answers page sources with the last one from before, as a cache does that nobody clears.
	Stale bool
	// Error answers page sources and screenshots with an error.
	Error ErrorKind
}

// ErrorKind is an error of the automation behind the server.
type ErrorKind uint8

// The errors.
const (
	NoError      ErrorKind = iota
	NotConnected           // "UiAutomation not connected"
	StaleObject            // "StaleObjectException"
	DeadObject             // "DeadObjectException"
)

// Config describes a server.
type Config struct {
	API int // level of the phone's Android
	// Detached is a server whose starter is gone: it listens, but its automation is dead.
	Detached bool
}

// Server is a running server.
type Server struct {
	phone  Phone
	config Config

	mu       sync.Mutex // guards what follows
	session  string
	sessions int // ever
	settings map[string]any
	last     string // page source
	over     chan struct{}
	crashed  bool
}

// ErrOver is returned by Serve when the server has ended.
var ErrOver = errors.New("uia2: the server has ended")

// New starts a server.
func New(p Phone, c Config) *Server {
	return &Server{phone: p, config: c, settings: defaultSettings(), over: make(chan struct{})}
}

// Over is closed when the server has ended by itself.
func (s *Server) Over() <-chan struct{} { return s.over }

// Crashed tells whether it ended by a fault.
func (s *Server) Crashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashed
}

// end ends the server.
func (s *Server) end(crashed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
	default:
		s.crashed = crashed
		close(s.over)
	}
}

// maxRequest bounds a request, in bytes.
const maxRequest = 1 << 20

// How often a waiting server looks again: for an idle screen by the phone's clock, for the end of a fault by the
// host's, which moves by itself.
const (
	pollEvery = 50 * time.Millisecond
	pollHang  = 5 * time.Millisecond
)

// Serve speaks to one connection until either side ends it. The connection's reads must end with it.
func (s *Server) Serve(ctx context.Context, conn io.ReadWriter) error {
	limited := &io.LimitedReader{R: conn}
	r := bufio.NewReader(limited)
	for {
		select {
		case <-s.over:
			return ErrOver
		default:
		}
		limited.N = maxRequest
		req, err := readRequest(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := s.hang(ctx); err != nil {
			return err
		}
		if s.phone.Faults().Crash {
			s.end(true)
			return ErrOver
		}
		a := s.answer(ctx, req)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		alive := strings.EqualFold(req.header.Get("Connection"), "keep-alive") || req.newer && !strings.EqualFold(req.header.Get("Connection"), "close")
		if err := a.write(conn, alive); err != nil {
			return err
		}
		if a.ends {
			s.end(false)
		}
		if !alive {
			return nil
		}
	}
}

// request is one that has been read whole.
type request struct {
	method, path string
	header       http.Header
	newer        bool // HTTP/1.1
	body         []byte
}

func readRequest(r *bufio.Reader) (*request, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	return &request{method: req.Method, path: req.URL.Path, header: req.Header, newer: req.ProtoAtLeast(1, 1), body: body}, nil
}

// hang waits while the server does not answer.
func (s *Server) hang(ctx context.Context) error {
	for s.phone.Faults().Hang {
		select {
		case <-s.over:
			return ErrOver
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollHang):
		}
	}
	return nil
}

// answer is what goes back.
type answer struct {
	status int
	body   []byte
	ends   bool // the server, once it is sent
}

func (a answer) write(w io.Writer, alive bool) error {
	connection := "close"
	if alive {
		connection = "keep-alive"
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nConnection: %s\r\nPragma: no-cache\r\nCache-Control: no-store\r\nContent-Encoding: identity\r\n"+
		"Content-Type: application/json\r\nContent-Length: %s\r\n\r\n", a.status, http.StatusText(a.status), connection, strconv.Itoa(len(a.body)))
	_, err := w.Write(append([]byte(head), a.body...))
	return err
}
