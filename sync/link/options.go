package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/wire"
)

// Bucket is a part of the rack's database; firmware/store has it.
type Bucket interface {
	View(fn func(*bolt.Bucket) error) error
	Update(fn func(*bolt.Bucket) error) error
	// In is the bucket inside a transaction of the same database.
	In(tx *bolt.Tx) *bolt.Bucket
}

// Options say where the cloud is and who this rack is. Broker, Tenant, Rack,
// Keys, Generation, Boot and Bucket are needed.
type Options struct {
	Broker string // tcp://, ssl://, tls://, ws:// or wss://, with a port; without user and password
	Tenant string
	Rack   string // also the MQTT client id and user name

	// Keys gives the keys of the enrolment, the newest first. It is asked at each
	// use, so that keys rotate while the link runs. The first that the cloud's
	// welcome names signs.
	Keys func() []wire.Keys

	Generation uint64 // of the rack's database and enrolment
	Boot       string // "<counter>-<random>"
	Versions   map[string]string
	Bucket     Bucket

	TLS          TLS
	PasswordFile string // broker-only password; not readable by others; read at each connect
	// Credentials gives, at each connect, what TLS and PasswordFile would name files
	// of; they then stay empty, but for TLS.ServerName.
	Credentials func() (Credentials, error)
	Proxy       string // http://, https:// or socks5://; empty for none
	// ProxyFromEnvironment asks HTTP_PROXY, HTTPS_PROXY and NO_PROXY where Proxy is
	// empty. Without it the environment is never read.
	ProxyFromEnvironment bool
	Header               http.Header // of the websocket's opening request

	MaxFrame    int           // bytes that the broker lets through; 0 is wire.MaxFrame
	OutboxBytes int64         // 0 is DefaultOutboxBytes
	Heartbeat   time.Duration // longest silence of the cloud before it is asked for a sign of life; 0 is DefaultHeartbeat

	Floor  time.Time // it cannot be earlier than this: the time of the build
	Logger *slog.Logger
	// Round is called while Run makes progress: every few seconds, but for waits that are bounded, of 30 s at most. May be nil.
	Round func()

	// For tests.
	Clock  Clock
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Jitter func(limit time.Duration) time.Duration // a random time up to limit
}

// TLS says how the broker is recognised and how the rack shows itself. The files
// are read at each connect.
type TLS struct {
	CAFile     string // PEM; the only authorities that count. Empty: the system's
	CertFile   string // PEM, of the rack
	KeyFile    string // PEM, not readable by others
	ServerName string // if it is not the broker's host
}

// Credentials are those of an enrolment. Certificates and key are PEM; what is
// empty is not used.
type Credentials struct {
	CA          string // the only authorities that count
	Certificate string
	Key         string
	Password    string // for the broker alone
}

// Defaults of Options.
const (
	DefaultOutboxBytes = 32 << 20
	DefaultHeartbeat   = 20 * time.Second // above wire.HeartbeatEvery: a rack at work asks for no sign of life
)

var schemes = []string{"tcp", "mqtt", "ssl", "tls", "mqtts", "ws", "wss"}

// check fills in what is missing and says what is wrong.
func (o *Options) check() (*url.URL, error) {
	u, err := url.Parse(o.Broker)
	if err != nil {
		return nil, errors.New("the broker's address is no URL") // it might hold a password
	}
	if !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" || u.Port() == "" {
		return nil, fmt.Errorf("broker %s: want %v://host:port", u.Redacted(), schemes)
	}
	if u.User != nil {
		return nil, fmt.Errorf("broker %s: a password belongs into its own file, not into the address", u.Redacted())
	}
	if err := (wire.Topic{Tenant: o.Tenant, Rack: o.Rack, Direction: wire.Up, Kind: wire.KindState}).Check(); err != nil {
		return nil, err
	}
	if o.Keys == nil || o.Bucket == nil || o.Boot == "" || o.Generation == 0 {
		return nil, errors.New("keys, bucket, boot and generation are needed")
	}
	if o.Credentials != nil && (o.TLS.CAFile != "" || o.TLS.CertFile != "" || o.PasswordFile != "") {
		return nil, errors.New("credentials come from their function or from files, not from both")
	}
	if (o.TLS.CertFile == "") != (o.TLS.KeyFile == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate")
	}
	if o.MaxFrame < 0 || o.MaxFrame > wire.MaxFrame || o.MaxFrame != 0 && o.MaxFrame < minFrame {
		return nil, fmt.Errorf("frames of %d bytes: want %d to %d", o.MaxFrame, minFrame, wire.MaxFrame)
	}
	if o.MaxFrame == 0 {
		o.MaxFrame = wire.MaxFrame
	}
	if o.OutboxBytes == 0 {
		o.OutboxBytes = DefaultOutboxBytes
	}
	if o.OutboxBytes < minOutbox {
		return nil, fmt.Errorf("an outbox of %d bytes is too small, %d are needed", o.OutboxBytes, minOutbox)
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Jitter == nil {
		o.Jitter = jitter
	}
	return u, nil
}

const (
	minFrame  = 16 << 10
	minOutbox = 1 << 20
)
