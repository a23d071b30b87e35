package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"phonerack/cloud/bus"
	"phonerack/cloud/bus/callout"
	"phonerack/cloud/bus/embedded"
	"phonerack/cloud/enroll"
)

// broker is the bus with what belongs to it.
type broker struct {
	bus    bus.Bus
	url    string // for racks
	kicker bus.Kicker
	server *embedded.Server
	k      *cloud

	callout *callout.Service // for an external NATS
}

func (c *serveCommand) openBroker(ctx context.Context, k *cloud, names []string) (*broker, error) {
	b := &broker{k: k, url: c.BrokerAddress}
	if c.Broker == "embedded" {
		return b, b.embed(ctx, c, names)
	}
	if b.url == "" {
		return nil, fmt.Errorf("%w: --broker-address must tell racks where the external broker is", errUsage)
	}
	security, err := c.brokerTLS(k.authority)
	if err != nil {
		return nil, err
	}
	if c.Broker == "nats" {
		return b, b.joinNATS(ctx, c, security)
	}
	var password string
	if c.BrokerPass != "" {
		if password, err = readSecretFile(c.BrokerPass); err != nil {
			return nil, err
		}
	}
	m := bus.MQTT{URLs: c.MQTTURL, Username: c.BrokerUser, Password: password, TLS: security}
	b.bus, err = bus.OpenShared(bus.Shared{MQTT: m, Group: c.Group, Log: k.log})
	return b, err
}

// joinNATS logs in at the servers and tells them which racks may.
func (b *broker) joinNATS(ctx context.Context, c *serveCommand, security *tls.Config) error {
	if c.NATSSecrets == "" {
		return fmt.Errorf("%w: --nats-secrets must name the file of rackcloud broker nats", errUsage)
	}
	secrets, err := readNATSSecrets(c.NATSSecrets)
	if err != nil {
		return err
	}
	native := security // for its own listener TLS is an option of the client, not a matter of the address
	if !slices.ContainsFunc(c.NATSURL, func(u string) bool { return strings.HasPrefix(u, "tls://") }) {
		native = nil
	}
	b.callout, err = callout.Start(ctx, callout.Options{
		URLs: c.NATSURL, Password: secrets.Callout, SystemPassword: secrets.System, TLS: native, Seed: secrets.Seed,
		Authenticator: b.k.office, Log: b.k.log,
	})
	if err != nil {
		return err
	}
	b.kicker = b.callout
	m := bus.MQTT{URLs: c.MQTTURL, Username: bus.CloudUser, Password: secrets.Cloud, TLS: security}
	b.bus, err = bus.OpenNATS(bus.NATS{
		URLs: c.NATSURL, Username: bus.CloudUser, Password: secrets.Cloud, TLS: native, MQTT: m, Group: c.Group, Log: b.k.log,
	})
	return err
}

func (b *broker) embed(ctx context.Context, c *serveCommand, names []string) error {
	o := embedded.Options{Dir: filepath.Join(c.State, "broker"), MQTT: c.MQTT, Websocket: c.Websocket, Authenticator: b.k.office, Log: b.k.log}
	scheme := "tcp"
	if !c.Plain {
		o.TLS, scheme = b.k.authority.Server(names), "ssl"
	}
	var err error
	if b.server, err = embedded.Start(ctx, o); err != nil {
		return err
	}
	b.kicker = b.server
	if b.url == "" {
		_, port, _ := net.SplitHostPort(b.server.MQTTAddr())
		b.url = scheme + "://" + net.JoinHostPort(names[0], port)
	}
	b.bus, err = b.server.Open(c.Group, bus.Limits{}, b.k.log)
	return err
}

// brokerTLS is how the cloud shows itself to an external broker: by a certificate of its own authority, as racks do.
func (c *serveCommand) brokerTLS(own *enroll.Authority) (*tls.Config, error) {
	security := own.Peer(bus.CloudUser)
	if c.BrokerCA == "" {
		return security, nil
	}
	pem, err := os.ReadFile(c.BrokerCA)
	if err != nil {
		return nil, err
	}
	security.RootCAs = x509.NewCertPool()
	if !security.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", c.BrokerCA)
	}
	return security, nil
}

// kick ends the connections of a rack whose sets have ended. A shared broker does not let us: there the MACs alone keep the
// rack out.
func (b *broker) kick(ctx context.Context, rack string) {
	if b == nil || b.kicker == nil {
		return
	}
	if err := b.kicker.Kick(ctx, rack); err != nil {
		b.k.log.Warn("the connections of a revoked rack were not ended", "rack", rack, "error", err)
	}
}

func (b *broker) close() error {
	var err error
	if b.bus != nil {
		err = b.bus.Close()
	}
	if b.callout != nil {
		err = errors.Join(err, b.callout.Close())
	}
	if b.server != nil {
		err = errors.Join(err, b.server.Close())
	}
	return err
}

// busFigures shows the counts of the bus as metrics.
type busFigures struct {
	bus    bus.Bus
	server *embedded.Server // nil for an external broker, which counts for itself
}

var busFrames = prometheus.NewDesc("phonerack_bus_frames_total", "Frames on the bus, by what became of them.", []string{"what"}, nil)

// Describe implements prometheus.Collector.
func (busFigures) Describe(ch chan<- *prometheus.Desc) { ch <- busFrames }

// Collect implements prometheus.Collector.
func (b busFigures) Collect(ch chan<- prometheus.Metric) {
	s := b.bus.Stats()
	if b.server != nil {
		s.Oversize += b.server.Oversize()
	}
	for what, n := range map[string]uint64{
		"delivered": s.Delivered, "odd": s.Odd, "oversize": s.Oversize, "overflow": s.Overflow, "published": s.Published, "failed": s.Failed,
	} {
		ch <- prometheus.MustNewConstMetric(busFrames, prometheus.CounterValue, float64(n), what)
	}
}
