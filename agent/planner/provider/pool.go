package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Bounds of connections and answers.
const (
	dialTimeout      = 10 * time.Second // also of a TLS handshake
	idleTimeout      = 90 * time.Second
	maxIdle          = 64 // connections kept for one provider
	maxHeaderBytes   = 64 << 10
	maxErrorBytes    = 64 << 10         // of an answer that is a failure
	pingAfter        = 15 * time.Second // of silence, on HTTP/2
	pingTimeout      = 15 * time.Second
	maxRequestIDSize = 128
)

// Pool holds the connections to providers, one set for each proxy. The zero
// value is ready; its fields are set before its first use.
type Pool struct {
	Roots *x509.CertPool // nil: the system's
	// Dial opens connections in place of a net.Dialer, for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu         sync.Mutex // guards transports
	transports map[string]*http.Transport
}

// defaultPool is the pool of the clients that bring none.
var defaultPool Pool

// CloseIdle closes the connections that no call uses.
func (p *Pool) CloseIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
}

// transport returns the connections that go through proxy, a checked URL or "".
// It has no ResponseHeaderTimeout: models think before the first byte, and the
// call's deadline bounds that. http.Transport repeats a request by itself only
// if none of it was written.
func (p *Pool) transport(proxy string) *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.transports[proxy]; t != nil {
		return t
	}
	dial := p.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	t := &http.Transport{
		Proxy:                  nil, // not the environment's
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.Roots},
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if proxy != "" {
		t.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
	}
	if p.transports == nil {
		p.transports = map[string]*http.Transport{}
	}
	p.transports[proxy] = t
	return t
}

// exchange is one request and what came back. It is the SDKs' HTTP client for
// that request, and hands them an empty success: they make requests, but what a
// provider answers is for this package alone.
type exchange struct {
	transport http.RoundTripper
	limit     int64 // bytes of a body that is a success

	sent   bool // there was a request
	status int  // 0: no answer began
	header http.Header
	body   []byte
	err    error // the connection's, or why the body is not whole
}

var errTooLarge = errors.New("it is too large")

// Do implements the HTTPClient of both SDKs.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	client := http.Client{
		Transport: x.transport,
		// A redirect would carry the key and the screen to somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		x.err = withoutURL(err)
		return nil, x.err
	}
	defer resp.Body.Close()
	x.status, x.header = resp.StatusCode, resp.Header
	limit := x.limit
	if x.status != http.StatusOK {
		limit = min(limit, maxErrorBytes)
	}
	if x.body, x.err = io.ReadAll(io.LimitReader(resp.Body, limit+1)); int64(len(x.body)) > limit {
		x.body, x.err = nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: http.NoBody, Request: req,
	}, nil
}

// withoutURL leaves out the address that net/http puts around an error.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
