package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"phonerack/sync/wire"
)

var (
	errUnreachable = errors.New("rackcloud cannot be reached")
	errUsage       = errors.New("wrong use")
)

const (
	requestTime = time.Minute
	maxAnswer   = 64 << 20 // bytes
	maxSecret   = 16 << 10 // bytes
)

// client speaks with the admin API.
type client struct {
	base   string
	token  string
	tenant string
	http   *http.Client
}

func newClient(base, tokenFile, caFile, tenant string) (*client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%w: --admin is no http or https address", errUsage)
	}
	c := &client{base: strings.TrimSuffix(base, "/"), tenant: tenant, http: &http.Client{Timeout: requestTime}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // the token is nobody else's
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	c.http.Transport = transport
	if tokenFile != "" {
		if c.token, err = readSecretFile(tokenFile); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// call asks and reads the answer into out, unless that is nil.
func (c *client) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	raw, err := c.raw(ctx, method, path, query, body)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("the answer of rackcloud cannot be read: %w", err)
	}
	return nil
}

func (c *client) raw(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	if body == nil {
		return c.send(ctx, method, path, query, "", nil)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, method, path, query, "application/json", bytes.NewReader(raw))
}

// send asks with a body of a kind, or with none.
func (c *client) send(ctx context.Context, method, path string, query url.Values, kind string, in io.Reader) ([]byte, error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("tenant", c.tenant)
	r, err := http.NewRequestWithContext(ctx, method, c.base+path+"?"+query.Encode(), in)
	if err != nil {
		return nil, err
	}
	if in != nil {
		r.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, errors.Unwrap(err))
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	if answer.StatusCode < 300 {
		return raw, nil
	}
	var failed struct {
		Error *wire.Refusal `json:"error"`
	}
	if json.Unmarshal(raw, &failed) != nil || failed.Error == nil {
		return nil, fmt.Errorf("%s answered %s: it is no admin API of rackcloud", c.base, answer.Status)
	}
	return nil, failed.Error
}

// list asks for all parts of a list, up to limit records; 0 for all.
func list[T any](s *session, path string, query url.Values, limit int) (all []T, err error) {
	all = []T{}
	if query == nil {
		query = url.Values{}
	}
	for {
		query.Set("limit", "1000")
		if limit > 0 {
			query.Set("limit", strconv.Itoa(min(1000, limit-len(all))))
		}
		var part struct {
			Items []T    `json:"items"`
			Next  string `json:"next"`
		}
		if err := s.client.call(s.ctx, http.MethodGet, path, query, nil, &part); err != nil {
			return nil, err
		}
		all = append(all, part.Items...)
		if part.Next == "" || limit > 0 && len(all) >= limit {
			return all, nil
		}
		query.Set("after", part.Next)
	}
}

// readSecret reads a key from a file of mode 0600, or from standard input for "-": never from an argument, which every
// user of the machine can see.
func (s *session) readSecret(from string) (string, error) {
	if from == "-" {
		raw, err := io.ReadAll(io.LimitReader(s.stdin, maxSecret))
		return strings.TrimSpace(string(raw)), err
	}
	return readSecretFile(from)
}
