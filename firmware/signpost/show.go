package signpost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"phonerack/usb/adb"
)

// Ports on the phone that are tried, one after the other. They are fixed, because phones before Android 8 cannot choose one.
const (
	firstPort = 18473
	lastPort  = 18480
)

const (
	pageTimeout = 5 * time.Second // of a request
	endTimeout  = 5 * time.Second // for the phone to be put back
	maxConns    = 8
)

// Phone is the phone that shows the sign, under a lease; *adb.Conn has Reverse, *phone.Controls the rest.
type Phone struct {
	Reverse func(ctx context.Context, port int) (*adb.ReverseListener, error)
	Wake    func(ctx context.Context) error
	OpenURL func(ctx context.Context, url, pkg string) error
	Key     func(ctx context.Context, name string) error
}

// ErrNotShown: the phone could not open the page, and shows what it showed before.
var ErrNotShown = errors.New("the phone did not open the page")

// Show shows the sign until ctx ends, and then returns nil; the phone is at its home screen. Other errors are those of the
// phone.
func Show(ctx context.Context, p Phone, s Sign) (err error) {
	html, err := s.HTML()
	if err != nil {
		return err
	}
	l, err := listen(ctx, p)
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	server := &http.Server{
		Handler: handler(html), ReadTimeout: pageTimeout, WriteTimeout: pageTimeout, IdleTimeout: pageTimeout, MaxHeaderBytes: 8 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // what a phone sends is not worth a line
	}
	serving.Go(func() { server.Serve(&limited{Listener: l, room: make(chan struct{}, maxConns)}) })
	defer func() {
		server.Close()
		serving.Wait()
	}()
	if err := p.Wake(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrNotShown, err)
	}
	if err := p.OpenURL(ctx, fmt.Sprintf("http://127.0.0.1:%d/", l.Port()), ""); err != nil {
		return fmt.Errorf("%w: %w", ErrNotShown, err)
	}
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return p.Key(end, "home")
}

// listen takes the first port that is free on the phone.
func listen(ctx context.Context, p Phone) (*adb.ReverseListener, error) {
	for port := firstPort; ; port++ {
		l, err := p.Reverse(ctx, port)
		if err == nil || port == lastPort || !errors.Is(err, adb.ErrRefused) {
			return l, err
		}
	}
}

// handler answers every request with the page: there is nothing else here.
func handler(html []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" || r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		w.Write(html)
	})
}

// limited accepts so many connections at a time.
type limited struct {
	net.Listener
	room chan struct{} // one for each that is open
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.room <- struct{}{}:
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { <-l.room })}, nil
		default:
			conn.Close()
		}
	}
}

type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
