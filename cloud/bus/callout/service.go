package callout

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

const (
	subject     = "$SYS.REQ.USER.AUTH" // where servers ask
	queue       = "phonerack"          // replicas share the questions
	atOnce      = 64                   // questions that are being answered
	decideLimit = 4 * time.Second      // below the timeout of bus.NATSConfig
	startLimit  = 30 * time.Second
	reconnect   = 200 * time.Millisecond
)

var errRefused = errors.New("refused")

// Options of a service.
type Options struct {
	URLs     []string                   // nats:// or tls:// host:port
	Server   nats.InProcessConnProvider // instead of URLs: a server in this process
	Password string                     // of bus.CalloutUser
	// SystemPassword is bus.SystemUser's; without it Kick is not supported.
	SystemPassword string
	TLS            *tls.Config
	Seed           string // of the key whose public half is the configuration's issuer, see [NewKey]
	Authenticator  bus.Authenticator
	Log            *slog.Logger
}

// NewKey makes the key that signs permissions: the seed is the service's secret, the public half belongs in the servers'
// configuration.
func NewKey() (seed, public string, err error) {
	kp, err := nkeys.CreateAccount()
	if err != nil {
		return "", "", err
	}
	raw, err := kp.Seed()
	if err != nil {
		return "", "", err
	}
	public, err = kp.PublicKey()
	return string(raw), public, err
}

// Service answers the servers until Close.
type Service struct {
	auth   bus.Authenticator
	key    nkeys.KeyPair
	log    *slog.Logger
	conn   *nats.Conn
	system *nats.Conn // nil if kicks are not asked for

	ctx    context.Context
	cancel context.CancelFunc
	places chan struct{}
	work   sync.WaitGroup // answers under way; added to by the subscription's goroutine alone
	over   chan struct{}  // closed when the subscription calls no more
}

// Start connects and begins to answer. It waits for the server until ctx ends, at most 30 seconds; a link that is lost later
// comes back.
func Start(ctx context.Context, o Options) (*Service, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	key, err := nkeys.FromSeed([]byte(o.Seed))
	if err != nil {
		return nil, fmt.Errorf("key of the callout: %w", err)
	}
	if o.Authenticator == nil {
		return nil, errors.New("callout without an authenticator")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{auth: o.Authenticator, key: key, log: o.Log, places: make(chan struct{}, atOnce), over: make(chan struct{})}
	if s.conn, err = connect(ctx, o, bus.CalloutUser, o.Password); err != nil {
		return nil, fmt.Errorf("callout: %w", err)
	}
	if o.SystemPassword != "" {
		if s.system, err = connect(ctx, o, bus.SystemUser, o.SystemPassword); err != nil {
			s.conn.Close()
			return nil, fmt.Errorf("system account: %w", err)
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	sub, err := s.conn.QueueSubscribe(subject, queue, s.asked)
	if err == nil {
		sub.SetClosedHandler(func(string) { close(s.over) })
		err = s.conn.FlushWithContext(ctx)
	}
	if err != nil {
		s.conn.Close()
		if s.system != nil {
			s.system.Close()
		}
		s.cancel()
		return nil, fmt.Errorf("callout: %w", err)
	}
	return s, nil
}

func connect(ctx context.Context, o Options, user, password string) (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name(user), nats.UserInfo(user, password), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(reconnect), nats.ReconnectJitter(reconnect, reconnect), nats.Timeout(5 * time.Second),
		nats.PingInterval(15 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Log.Warn("callout", "err", err) }),
	}
	if o.Server != nil {
		options = append(options, nats.InProcessServer(o.Server))
	}
	if o.TLS != nil {
		options = append(options, nats.Secure(o.TLS))
	}
	for {
		conn, err := nats.Connect(strings.Join(o.URLs, ","), options...)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(reconnect):
		}
	}
}

// asked takes one question. With all places taken it waits, and those who ask time out.
func (s *Service) asked(m *nats.Msg) {
	select {
	case s.places <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	s.work.Go(func() {
		defer func() { <-s.places }()
		if answer, err := s.answer(string(m.Data)); err != nil {
			s.log.Warn("question of a server cannot be answered", "err", err)
		} else if err := m.Respond([]byte(answer)); err != nil {
			s.log.Warn("answer to a server", "err", err)
		}
	})
}

func (s *Service) answer(question string) (string, error) {
	q, err := jwt.DecodeAuthorizationRequestClaims(question)
	if err != nil {
		return "", err
	}
	a := jwt.NewAuthorizationResponseClaims(q.UserNkey)
	a.Audience = q.Server.ID
	ctx, cancel := context.WithTimeout(s.ctx, decideLimit)
	defer cancel()
	if id, err := s.decide(ctx, q); err != nil {
		s.log.Info("login refused", "client_id", q.ClientInformation.MQTT, "from", q.ClientInformation.Host, "err", err)
		a.Error = errRefused.Error()
	} else if a.Jwt, err = s.permission(q.UserNkey, id); err != nil {
		return "", err
	}
	return a.Encode(s.key)
}

// decide finds out who it is and whether its client id is its own.
func (s *Service) decide(ctx context.Context, q *jwt.AuthorizationRequestClaims) (bus.Identity, error) {
	var none bus.Identity
	if q.ClientInformation.MQTT == "" {
		return none, errors.New("not MQTT")
	}
	l := bus.Login{ClientID: q.ClientInformation.MQTT, Username: q.ConnectOptions.Username, Password: q.ConnectOptions.Password}
	if q.TLS != nil && len(q.TLS.VerifiedChains) > 0 && len(q.TLS.VerifiedChains[0]) > 0 {
		block, _ := pem.Decode([]byte(q.TLS.VerifiedChains[0][0]))
		if block == nil {
			return none, errors.New("the server sent no certificate in its chain")
		}
		var err error
		if l.Certificate, err = x509.ParseCertificate(block.Bytes); err != nil {
			return none, err
		}
	}
	id, err := s.auth.Authenticate(ctx, l)
	if err != nil {
		return none, err
	}
	if !wire.ValidID(id.Tenant) || !wire.ValidID(id.Rack) {
		return none, fmt.Errorf("tenant %.80q or rack %.80q is no id", id.Tenant, id.Rack)
	}
	if l.ClientID != id.Rack {
		return none, fmt.Errorf("rack %s has to have its id as client id", id.Rack)
	}
	return id, nil
}

// permission is what a rack may do.
func (s *Service) permission(userKey string, id bus.Identity) (string, error) {
	u := jwt.NewUserClaims(userKey)
	u.Name = id.Rack
	u.Audience = bus.RackAccount
	publish, subscribe := bus.RackSubjects(id.Tenant, id.Rack)
	u.Pub.Allow.Add(publish...)
	u.Sub.Allow.Add(subscribe...)
	u.Limits.Payload = bus.MaxPayload
	u.AllowedConnectionTypes.Add(jwt.ConnectionTypeMqtt, jwt.ConnectionTypeMqttWS)
	return u.Encode(s.key)
}

// Close ends the service: those who ask from now on are refused for want of an answer.
func (s *Service) Close() error {
	s.cancel()
	s.conn.Close()
	select {
	case <-s.over:
	case <-time.After(decideLimit):
	}
	s.work.Wait()
	if s.system != nil {
		s.system.Close()
	}
	return nil
}
