package provider

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
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

// shared is the pool of the clients that bring none.
var shared Pool

// CloseIdle closes the connections that no call uses.
func (p *Pool) CloseIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
}
