package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// overHTTP is a client that knows nothing of this process's environment, follows no redirect, and reads no more than it
// has to.
func overHTTP(s *Server) (*http.Client, *http.Transport) {
	plain := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: openTime, ResponseHeaderTimeout: callTime,
		MaxResponseHeaderBytes: 64 << 10, MaxConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
	}
	return &http.Client{
		Transport: &bounded{next: plain, token: s.Token},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it redirects, which is not followed")
		},
	}, plain
}

// bounded adds the token, and bounds the bodies of answers.
type bounded struct {
	next  http.RoundTripper
	token string
}

func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	res, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	res.Body = &limitedBody{ReadCloser: res.Body, left: maxMessage}
	return res, nil
}

// limitedBody fails where a body goes on beyond its bound, so that a cut one is not taken for a whole one.
type limitedBody struct {
	io.ReadCloser
	left int64
}

var errBody = fmt.Errorf("it answers with more than %d KiB", maxMessage>>10)

func (l *limitedBody) Read(p []byte) (int, error) {
	if l.left <= 0 {
		var one [1]byte
		n, err := l.ReadCloser.Read(one[:])
		if n > 0 {
			return 0, errBody
		}
		return 0, err
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
