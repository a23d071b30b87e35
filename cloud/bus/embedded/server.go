package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"

	"phonerack/cloud/bus"
)

// Options of the server.
type Options struct {
	Dir           string      // where JetStream stores sessions and retained frames; made if it is missing
	MQTT          string      // host:port of the MQTT listener; port 0 picks one
	Websocket     string      // host:port of MQTT over websocket, path /mqtt; "" for none
	TLS           *tls.Config // for both listeners; nil: none. ClientCAs makes client certificates count
	Authenticator bus.Authenticator
	Log           *slog.Logger
}

// Server is a running broker. It implements bus.Kicker.
type Server struct{}

// Start runs a broker and returns when it can be used, or with an error when ctx ends or after 30 seconds.
func Start(ctx context.Context, o Options) (*Server, error) { return nil, errors.ErrUnsupported }

// MQTTAddr is where the MQTT listener is.
func (s *Server) MQTTAddr() string { return "" }

// WebsocketAddr is where MQTT over websocket is, "" if it is off.
func (s *Server) WebsocketAddr() string { return "" }

// Open makes a bus of this process on the server.
func (s *Server) Open(group string, l bus.Limits, log *slog.Logger) (bus.Bus, error) {
	return nil, errors.ErrUnsupported
}

// Kick ends the connections of a rack. Its will is published as after any loss.
func (s *Server) Kick(ctx context.Context, rack string) error { return errors.ErrUnsupported }

// Close shuts the broker down and waits until its files are closed. Buses on it are closed before.
func (s *Server) Close() error { return nil }
