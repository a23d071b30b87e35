package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"phonerack/sync/wire"
)

// Options are what a Page needs.
type Options struct {
	Source Source
	Actor  Actor
	Log    *slog.Logger
	PIN    string // printed on the unit; "": nobody can sign in

	// Hosts are names and addresses of the rack besides those that its connections come in by, such as "rack7.local".
	// It is asked with each request and may be nil.
	Hosts func() []string
}

// Page serves the technician's page.
type Page struct {
	o        Options
	sessions sessions
	gate     *gate
	passes   passes
	streams  *streams
	looks    chan struct{} // a place for each picture that is taken now
	bundles  chan struct{} // a place for each bundle that is packed now
	acting   chan struct{} // a place for each act that is carried out now
	handler  http.Handler
}

// Bounds of work that a request may ask for.
const (
	maxLooks   = 2
	maxBundles = 1
)

// New returns a page.
func New(o Options) *Page {
	p := &Page{
		o: o, gate: newGate(o.PIN), streams: newStreams(),
		looks: make(chan struct{}, maxLooks), bundles: make(chan struct{}, maxBundles), acting: make(chan struct{}, maxActing),
	}
	p.sessions.all = map[[32]byte]*session{}
	p.passes.all = map[[32]byte]*pass{}
	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"GET /{$}":                    p.front,
		"GET /slot/{slot}":            p.slot,
		"GET /slot/{slot}/screen":     p.needPIN(p.screen),
		"GET /slot/{slot}/screen.jpg": p.needPIN(p.screenJPEG),
		"GET /S/{slot}":               p.short, // what the QR codes have: short and in capitals
		"GET /controller":             p.controller,
		"GET /map":                    p.labels,
		"GET /tasks":                  p.needPIN(p.tasks),
		"GET /tasks/{task}":           p.needPIN(p.task),
		"GET /tasks/{task}/{picture}": p.needPIN(p.taskPicture),
		"GET /log":                    p.needPIN(p.log),
		"GET /support":                p.needPIN(p.support),
		"GET /support/bundle.zip":     p.needPIN(p.bundle),
		"GET /P/{pass}":               p.enter, // what the QR code on a phone's screen has
		"GET /signin":                 p.signInForm,
		"POST /signin":                p.signIn,
		"POST /signout":               p.signOut,
		"POST /language":              p.chooseLanguage,
		"POST /act":                   p.needPIN(p.act),
		"GET /events":                 p.events,
		"GET /static/{file}":          static,
		"GET /favicon.ico":            noIcon,
		"/":                           nowhere,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				p.refuse(w, r, err)
			}
		})
	}
	p.handler = p.guard(mux)
	return p
}

// handler answers a request, or returns why not, having written nothing.
type handler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// Bounds of connections.
const (
	maxConnections = 128
	maxHeaderBytes = 16 << 10
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second // of an answer; streams set their own for each write
	idleTimeout    = time.Minute
	endTimeout     = time.Second // of answers that are on their way when ctx ends
)

// serving is one Serve, which a request finds by servingKey: its own context ends with the request.
type serving struct {
	ctx  context.Context
	acts sync.WaitGroup
}

type servingKey struct{}

// Serve answers on a listener until ctx ends, and returns when every request and every act has that came by it. The listener
// is closed. Several listeners may be served at once.
func (p *Page) Serve(ctx context.Context, l net.Listener) error {
	requests, cancel := context.WithCancel(ctx)
	serves := &serving{ctx: requests}
	defer serves.acts.Wait()
	defer cancel()
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(p.o.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithValue(requests, servingKey{}, serves) },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(l, maxConnections)) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer stop()
	err := server.Shutdown(grace)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	<-ended
	return err
}

// needPIN lets through who has signed in.
func (p *Page) needPIN(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if p.sessions.of(r) != nil {
			return next(w, r)
		}
		if p.o.PIN == "" {
			return wire.Refuse(wire.PINUnset, nil)
		}
		return wire.Refuse(wire.PINNeeded, nil)
	}
}

// short leads from a QR code to its slot.
func (p *Page) short(w http.ResponseWriter, r *http.Request) error {
	n, err := slotNumber(r.PathValue("slot"))
	if err != nil {
		return err
	}
	http.Redirect(w, r, fmt.Sprintf("/slot/%d", n), http.StatusSeeOther)
	return nil
}

func noIcon(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func nowhere(http.ResponseWriter, *http.Request) error { return wire.Refuse(wire.PageUnknown, nil) }

// slotNumber reads a slot's number as board files have them.
func slotNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 999 || strconv.Itoa(n) != s {
		return 0, wire.Refuse(wire.PageUnknown, nil)
	}
	return n, nil
}

// find is a slot with the snapshot that it is of.
func (p *Page) find(number string) (Snapshot, *Slot, error) {
	n, err := slotNumber(number)
	if err != nil {
		return Snapshot{}, nil, err
	}
	snap := p.o.Source.Snapshot()
	for i := range snap.Slots {
		if snap.Slots[i].Number == n {
			return snap, &snap.Slots[i], nil
		}
	}
	return snap, nil, wire.Refuse(wire.SlotUnknown, map[string]any{"slot": n})
}

// answer sends JSON or the page of a template, whichever the request prefers.
func (p *Page) answer(w http.ResponseWriter, r *http.Request, status int, template string, v *view, body any) error {
	h := w.Header()
	h.Add("Vary", "Accept, Accept-Language, Cookie")
	if wantsJSON(r.Header.Get("Accept")) {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		h.Set("Content-Type", "application/json")
		return send(w, status, append(b, '\n'))
	}
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, template, v); err != nil {
		p.o.Log.Error("a page could not be made", "page", template, "err", err)
		return wire.Refuse(wire.Internal, nil).Because(err)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", v.Lang)
	return send(w, status, b.Bytes())
}

// send writes a whole answer. That the other side went away is nobody's fault.
func send(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
	return nil
}

// refused is a refusal as JSON.
type refused struct {
	Refusal  *wire.Refusal `json:"refusal"`
	Sentence string        `json:"sentence"`
}

// refuse says why there is nothing else, as a page or as JSON.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": "form", "size": r.ContentLength, "limit": tooLarge.Limit})
	}
	refusal := wire.From(err)
	status := statusOf(refusal)
	if status == http.StatusInternalServerError {
		p.o.Log.Error("a request failed", "path", r.URL.Path, "err", errors.Unwrap(refusal))
	}
	v := p.view(r, "refused.title", "")
	v.Refusal = refusal.Sentence(v.Lang)
	v.Next = next(r)
	if r.Method == http.MethodPost {
		v.Path = v.Next // the address of the form is no page
	}
	name := "refused.html"
	switch refusal.Code {
	case wire.HostForeign: // its links and forms would be the other name's
		name = "foreign.html"
	case wire.PINNeeded, wire.PINWrong, wire.PINWait:
		name, v.Title = "signin.html", say(v.Lang, "signin.title")
	}
	if after := refusal.RetryAfter(); after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
	}
	if failed := p.answer(w, r, status, name, v, refused{refusal, v.Refusal}); failed != nil {
		http.Error(w, v.Refusal, http.StatusInternalServerError)
	}
}
