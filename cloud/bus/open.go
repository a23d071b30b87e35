package bus

import (
	"crypto/tls"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go"
)

// MQTT says how to reach MQTT listeners of the broker.
type MQTT struct {
	URLs     []string // tcp://, ssl://, ws:// or wss:// host:port; several for the nodes of one cluster
	Username string
	Password string
	TLS      *tls.Config // for ssl and wss; nil: the system's authorities
}

// NATS are the options of [OpenNATS].
type NATS struct {
	URLs     []string                   // nats:// or tls:// host:port, of one server or of a cluster's
	Server   nats.InProcessConnProvider // instead of URLs: a server in this process
	Username string
	Password string
	TLS      *tls.Config
	MQTT     MQTT   // the same broker's MQTT listeners, for what goes to racks
	Group    string // the replicas that share the work; an id of the wire
	Limits   Limits
	Log      *slog.Logger
}

// Shared are the options of [OpenShared].
type Shared struct {
	MQTT   MQTT
	Group  string // the replicas that share the work; an id of the wire
	Limits Limits
	Log    *slog.Logger
}

// OpenNATS makes a bus on a NATS server or cluster with an MQTT listener. It returns at once; the links come up by
// themselves, and [Bus.Check] tells.
func OpenNATS(o NATS) (Bus, error) { return nil, errors.ErrUnsupported }

// OpenShared makes a bus on any MQTT broker that has shared subscriptions for 3.1.1 clients. It returns at once; the
// links come up by themselves, and [Bus.Check] tells.
func OpenShared(o Shared) (Bus, error) { return nil, errors.ErrUnsupported }
