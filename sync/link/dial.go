package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
)

// connectTime bounds dialling, TLS, the websocket's opening and MQTT's CONNECT together.
const connectTime = 20 * time.Second

// websocketBuffer holds a whole packet of the usual size: some servers refuse a
// packet that is cut into several websocket frames (paho #413).
const websocketBuffer = 64 << 10

// dial opens the byte stream to the broker.
func (l *Link) dial(ctx context.Context, c Credentials) (net.Conn, error) {
	secure := l.broker.Scheme != "tcp" && l.broker.Scheme != "mqtt" && l.broker.Scheme != "ws"
	var config *tls.Config
	if secure {
		var err error
		if config, err = l.tlsConfig(c); err != nil {
			return nil, err
		}
	}
	stream := func(ctx context.Context) (net.Conn, error) {
		conn, err := l.dialTCP(ctx, l.broker.Host)
		if err != nil || !secure {
			return conn, err
		}
		tlsConn := tls.Client(conn, config)
		if err := tlsConn.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return tlsConn, nil
	}
	if l.broker.Scheme != "ws" && l.broker.Scheme != "wss" {
		return stream(ctx)
	}
	return l.dialWebsocket(ctx, stream)
}

// dialWebsocket opens a websocket over what stream opens; TLS is in it already.
func (l *Link) dialWebsocket(ctx context.Context, stream func(context.Context) (net.Conn, error)) (net.Conn, error) {
	open := func(ctx context.Context, _, _ string) (net.Conn, error) { return stream(ctx) }
	d := websocket.Dialer{
		NetDialContext: open, NetDialTLSContext: open,
		Subprotocols: []string{"mqtt"}, ReadBufferSize: websocketBuffer, WriteBufferSize: websocketBuffer,
	}
	conn, answer, err := d.DialContext(ctx, l.broker.String(), l.o.Header)
	if err != nil {
		if answer != nil {
			return nil, fmt.Errorf("open the websocket: %w: HTTP status %d", err, answer.StatusCode)
		}
		return nil, fmt.Errorf("open the websocket: %w", err)
	}
	return &websocketConn{Conn: conn}, nil
}

// dialTCP reaches a host, through the proxy if there is one.
func (l *Link) dialTCP(ctx context.Context, address string) (net.Conn, error) {
	via, err := l.proxyFor()
	if err != nil {
		return nil, err
	}
	if via == nil {
		return l.dialDirect(ctx, "tcp", address)
	}
	switch via.Scheme {
	case "socks5", "socks5h":
		d, err := proxy.FromURL(via, dialer(l.dialDirect))
		if err != nil {
			return nil, err
		}
		conn, err := d.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
		return conn, wrap("through the proxy", err)
	case "http", "https":
		conn, err := l.dialConnect(ctx, via, address)
		return conn, wrap("through the proxy", err)
	}
	return nil, fmt.Errorf("proxy %s: want http, https or socks5", via.Redacted())
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// proxyFor gives the proxy, nil for none.
func (l *Link) proxyFor() (*url.URL, error) {
	if l.o.Proxy != "" {
		u, err := url.Parse(l.o.Proxy)
		if err != nil || u.Host == "" {
			return nil, errors.New("the proxy's address is no URL with a host") // it might hold a password
		}
		return u, nil
	}
	if !l.o.ProxyFromEnvironment {
		return nil, nil
	}
	target := *l.broker
	target.Scheme = "http"
	if _, plain := map[string]bool{"tcp": true, "mqtt": true, "ws": true}[l.broker.Scheme]; !plain {
		target.Scheme = "https"
	}
	return httpproxy.FromEnvironment().ProxyFunc()(&target)
}

// dialer makes a function what package proxy wants.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

func (l *Link) dialDirect(ctx context.Context, network, address string) (net.Conn, error) {
	if l.o.Dial != nil {
		return l.o.Dial(ctx, network, address)
	}
	d := net.Dialer{KeepAlive: 20 * time.Second, Control: userTimeout}
	return d.DialContext(ctx, network, address)
}

// dialConnect asks an HTTP proxy for a tunnel.
func (l *Link) dialConnect(ctx context.Context, via *url.URL, address string) (net.Conn, error) {
	host := via.Host
	if via.Port() == "" {
		host = net.JoinHostPort(via.Hostname(), map[string]string{"http": "80", "https": "443"}[via.Scheme])
	}
	conn, err := l.dialDirect(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	if via.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: via.Hostname(), Time: l.verificationTime})
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if via.User != nil {
		password, _ := via.User.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(via.User.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		conn.Close()
		return nil, err
	}
	// The broker says nothing before CONNECT, so the reader holds nothing of it.
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 4<<10), request)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		conn.Close()
		return nil, fmt.Errorf("HTTP status %d", answer.StatusCode)
	}
	return conn, nil
}

// tlsConfig makes the settings of one connect.
func (l *Link) tlsConfig(c Credentials) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: l.o.TLS.ServerName, Time: l.verificationTime}
	if config.ServerName == "" {
		config.ServerName = l.broker.Hostname()
	}
	if c.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return nil, errors.New("certificate authority: the file has no certificate")
		}
	}
	if c.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// verificationTime is what certificates are judged by: a board without a clock
// would find each of them not valid yet.
func (l *Link) verificationTime() time.Time {
	now, _ := l.time.Now()
	if wall := l.o.Clock.Now(); wall.After(now) {
		return wall
	}
	return now
}

// credentials reads what may have been replaced since the last connect.
func (l *Link) credentials() (c Credentials, err error) {
	if l.o.Credentials != nil {
		if c, err = l.o.Credentials(); err != nil {
			err = fmt.Errorf("credentials of the rack: %w", err)
		}
		return c, err
	}
	for _, f := range []struct {
		path   string
		secret bool
		to     *string
	}{
		{l.o.TLS.CAFile, false, &c.CA},
		{l.o.TLS.CertFile, false, &c.Certificate},
		{l.o.TLS.KeyFile, true, &c.Key},
		{l.o.PasswordFile, true, &c.Password},
	} {
		if f.path == "" {
			continue
		}
		if f.secret {
			if err := private(f.path); err != nil {
				return c, err
			}
		}
		raw, err := os.ReadFile(f.path)
		if err != nil {
			return c, fmt.Errorf("credentials of the rack: %w", err)
		}
		*f.to = string(raw)
	}
	c.Password = strings.TrimRight(c.Password, "\r\n")
	if l.o.TLS.CAFile != "" && c.CA == "" {
		return c, fmt.Errorf("certificate authority: %s has no certificate", l.o.TLS.CAFile)
	}
	return c, nil
}

// private refuses a secret's file that others may read.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o: others may read it; want 0600", path, info.Mode().Perm())
	}
	return nil
}
