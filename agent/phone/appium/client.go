package appium

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"phonerack/agent/phone"
)

// port is where the server listens on the phone.
const port = "6790"

// Bounds of one request.
const (
	maxAnswer    = 1 << 20  // bytes
	maxSource    = 16 << 20 // bytes of a tree, as JSON
	maxHeader    = 16 << 10 // bytes
	callTimeout  = 5 * time.Second
	probeTimeout = 2 * time.Second
	// Callers allow about 15 s for a tree: the rest is for a restart.
	sourceTimeout = 8 * time.Second
)

// newClient returns an HTTP client whose connections are streams to the server.
// Each request has a stream of its own: an OPEN costs one round trip over USB,
// and a stream that was kept could have died in between, which net/http answers
// by sending some requests twice.
func newClient(c conn) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				s, err := c.open(ctx, "tcp:"+port)
				if err != nil {
					return nil, err
				}
				return tcpStream{s}, nil
			},
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request is one call of the server's interface.
type request struct {
	method, path string
	body         any           // as JSON; none if nil
	limit        int64         // bytes of the answer, maxAnswer if 0
	timeout      time.Duration // callTimeout if 0
}

// serverError is an error that the server answered with.
type serverError struct {
	Status  int
	Code    string `json:"error"`
	Message string `json:"message"`
	Trace   string `json:"stacktrace"`
}

// Error implements error.
func (e *serverError) Error() string {
	return fmt.Sprintf("the server answered %d, %s: %s", e.Status, excerpt(e.Code), excerpt(e.Message))
}

// mentions reports whether the error is about something.
func (e *serverError) mentions(words string) bool {
	return strings.Contains(e.Message, words) || strings.Contains(e.Trace, words)
}

// envelope is the form of each answer.
type envelope struct {
	Value   json.RawMessage `json:"value"`
	Session string          `json:"sessionId"`
}

// do sends r once and returns the value of the answer. It fails with a
// *serverError if the server answers with an error.
func do(ctx context.Context, client *http.Client, r request) (envelope, error) {
	timeout := r.timeout
	if timeout == 0 {
		timeout = callTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return envelope{}, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, "http://127.0.0.1:"+port+r.path, body)
	if err != nil {
		return envelope{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	resp, err := client.Do(req)
	if err != nil {
		return envelope{}, err
	}
	defer resp.Body.Close()
	limit := r.limit
	if limit == 0 {
		limit = maxAnswer
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return envelope{}, fmt.Errorf("the answer broke off: %w", err)
	case int64(len(b)) > limit:
		return envelope{}, fmt.Errorf("more than %d bytes: %w", limit, phone.ErrTooLarge)
	}
	return answer(resp.StatusCode, b)
}

// answer reads an answer of the server.
func answer(status int, b []byte) (envelope, error) {
	var e envelope
	if err := decode(b, &e); err != nil {
		return envelope{}, fmt.Errorf("answer %d, %s: %w", status, excerpt(string(b[:min(len(b), maxExcerpt)])), err)
	}
	if status == http.StatusOK {
		return e, nil
	}
	failed := &serverError{Status: status}
	if err := json.Unmarshal(e.Value, failed); err != nil || failed.Code == "" {
		return envelope{}, fmt.Errorf("answer %d without an error: %w", status, phone.ErrMalformed)
	}
	return envelope{}, failed
}

// decode reads exactly one JSON value without unknown fields.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", phone.ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more than one value: %w", phone.ErrMalformed)
	}
	return nil
}
