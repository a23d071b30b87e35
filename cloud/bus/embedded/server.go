package embedded

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"phonerack/cloud/bus"
	"phonerack/cloud/bus/callout"
	"phonerack/cloud/durable"
)

const startLimit = 2 * time.Minute // its store is read again after a crash, on whatever disk there is

// Options of the server.
type Options struct {
	Dir       string // where JetStream stores sessions and retained frames; made if it is missing
	MQTT      string // host:port of the MQTT listener; port 0 picks one
	Websocket string // host:port of MQTT over websocket, path /mqtt; "" for none
	// TLS is for both listeners; nil: none. With ClientCAs, set ClientAuth too. Over websocket the server does not tell
	// the certificate, so racks that come that way need a password.
	TLS *tls.Config
	// Authenticator decides on every login of a rack.
	Authenticator bus.Authenticator
	Log           *slog.Logger
}

// Server is a running broker. It implements bus.Kicker.
type Server struct {
	server   *server.Server
	options  *server.Options // the server writes the ports that it has picked into it before Start returns
	callout  *callout.Service
	password string // of the cloud, made for this process
	tls      *tls.Config
	log      *slog.Logger
	words    *logger // what the server says
	unlock   func()  // gives the folder back
}

// Start runs a broker and returns when it can be used, or with an error when ctx ends or after 30 seconds.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	seed, public, err := callout.NewKey()
	if err != nil {
		return nil, err
	}
	if err := durable.MakeFolder(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	unlock, err := durable.Lock(o.Dir) // two servers would write over each other's store
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	s := &Server{password: rand.Text(), tls: o.TLS, log: o.Log, unlock: unlock}
	calloutPassword := rand.Text()
	s.options, err = configure(o, bus.NATSServer{
		CloudPassword: s.password, CalloutPassword: calloutPassword, SystemPassword: rand.Text(), Issuer: public,
	})
	if err != nil {
		unlock()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	if s.server, err = server.NewServer(s.options); err != nil {
		unlock()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	log := newLogger(o.Log)
	s.words = log
	s.server.SetLoggerV2(log, false, false, false)
	s.server.Start() // returns when the listeners are open
	if !s.ready(ctx, log) {
		s.stop()
		return nil, fmt.Errorf("embedded broker does not start: %s", log.last())
	}
	s.callout, err = callout.Start(ctx, callout.Options{
		Server: s.server, Password: calloutPassword, Seed: seed, Authenticator: o.Authenticator, Log: o.Log,
	})
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	return s, nil
}

// configure makes the server's options from the same text that an external server gets.
func configure(o Options, c bus.NATSServer) (*server.Options, error) {
	c.Name, c.StoreDir, c.Listen = "rackcloud", o.Dir, "127.0.0.1:-1"
	var err error
	if c.MQTT, err = picked(o.MQTT); err != nil {
		return nil, err
	}
	if o.Websocket != "" {
		if c.Websocket, err = picked(o.Websocket); err != nil {
			return nil, err
		}
	}
	text, err := bus.NATSConfig(c)
	if err != nil {
		return nil, err
	}
	options := new(server.Options)
	if err := options.ProcessConfigString(text); err != nil {
		return nil, err
	}
	options.DontListen = true // the cloud's own connection is in this process
	options.NoSigs = true
	options.NoLog = true
	if o.TLS != nil {
		options.MQTT.TLSConfig = o.TLS.Clone()
		options.MQTT.TLSTimeout = 10
		if o.Websocket != "" {
			options.Websocket.TLSConfig = o.TLS.Clone()
			options.Websocket.NoTLS = false
		}
	}
	return options, nil
}

// picked writes an address as NATS has it: there port -1 picks one, and 0 is off.
func picked(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if port == "0" {
		port = "-1"
	}
	return net.JoinHostPort(host, port), nil
}

func (s *Server) ready(ctx context.Context, log *logger) bool {
	for ctx.Err() == nil && !log.dead() {
		if s.server.ReadyForConnections(100 * time.Millisecond) {
			return true
		}
	}
	return false
}

// MQTTAddr is where the MQTT listener is.
func (s *Server) MQTTAddr() string {
	return net.JoinHostPort(s.options.MQTT.Host, strconv.Itoa(s.options.MQTT.Port))
}

// WebsocketAddr is where MQTT over websocket is, "" if it is off.
func (s *Server) WebsocketAddr() string {
	if s.options.Websocket.Port == 0 {
		return ""
	}
	return net.JoinHostPort(s.options.Websocket.Host, strconv.Itoa(s.options.Websocket.Port))
}

// Open makes a bus of this process on the server.
func (s *Server) Open(group string, l bus.Limits, log *slog.Logger) (bus.Bus, error) {
	m := bus.MQTT{URLs: []string{"tcp://" + s.loopback()}, Username: bus.CloudUser, Password: s.password}
	if s.tls != nil {
		m.URLs[0] = "ssl://" + s.loopback()
		m.TLS = toItself(s.tls)
	}
	return bus.OpenNATS(bus.NATS{
		Server: s.server, Username: bus.CloudUser, Password: s.password,
		MQTT: m, Group: group, Limits: l, Log: log,
	})
}

// Oversize counts messages of more than [bus.MaxPayload] bytes, each of which has cost its sender the connection. They reach
// no bus, and so are in no bus.Stats.
func (s *Server) Oversize() uint64 { return s.words.oversize.Load() }

// Kick ends the connections of a rack. Its will is published as after any loss.
func (s *Server) Kick(ctx context.Context, rack string) error {
	list, err := s.server.Connz(&server.ConnzOptions{MQTTClient: rack, Limit: 16})
	if err != nil {
		return fmt.Errorf("kick %s: %w", rack, err)
	}
	for _, c := range list.Conns {
		if err := s.server.DisconnectClientByID(c.Cid); err != nil {
			s.log.Debug("kick", "rack", rack, "err", err) // it has left by itself
		}
	}
	return ctx.Err()
}

// Close shuts the broker down and waits until its files are closed. Buses on it are closed before.
func (s *Server) Close() error {
	err := s.callout.Close()
	s.stop()
	return err
}

func (s *Server) stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
	s.unlock()
}

// loopback is the MQTT listener as this process reaches it.
func (s *Server) loopback() string {
	host, port, _ := net.SplitHostPort(s.MQTTAddr())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// toItself is how this process, which holds the listener's key, knows the listener: by the certificate that it has given
// it, whatever names and authorities are in there.
func toItself(listener *tls.Config) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(cs tls.ConnectionState) error {
			own := listener.Certificates
			if listener.GetCertificate != nil {
				c, err := listener.GetCertificate(&tls.ClientHelloInfo{ServerName: cs.ServerName, Conn: nil})
				if err != nil {
					return err
				}
				own = []tls.Certificate{*c}
			}
			for _, c := range own {
				if len(c.Certificate) > 0 && bytes.Equal(c.Certificate[0], cs.PeerCertificates[0].Raw) {
					return nil
				}
			}
			return errors.New("the listener shows a certificate that is not its own")
		},
	}
}
