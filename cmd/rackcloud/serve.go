package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"phonerack/cloud/api"
	"phonerack/cloud/bus"
	"phonerack/cloud/catalog"
	"phonerack/cloud/durable"
	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
	"phonerack/cloud/planner"
	"phonerack/cloud/store"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

const (
	expireEvery = 5 * time.Second
	tokenFile   = "admin-token.sha256" // below the state folder
)

type serveCommand struct {
	Config kong.ConfigFlag `help:"TOML file with any of these flags by their names." placeholder:"FILE"`

	stateArgs
	Listen      string   `help:"Where hosts speak HTTP." default:":8470" placeholder:"HOST:PORT"`
	AdminListen string   `help:"Where operators of this machine speak HTTP without a token; a loopback address." default:"127.0.0.1:8471" placeholder:"HOST:PORT"`
	Name        []string `help:"Names and addresses by which racks reach this machine, the first goes into bundles; its host name without any." placeholder:"HOST"`
	Plain       bool     `help:"No TLS on the listeners: behind a proxy, or on one machine alone."`

	DSN     string `name:"dsn" help:"Database: sqlite:PATH or postgres://...; a SQLite file in the state folder without it." placeholder:"DSN"`
	DSNFile string `name:"dsn-file" help:"File of mode 0600 with the DSN, for one with a password." placeholder:"FILE"`
	keyArgs

	Broker        string   `help:"embedded, nats (a server or cluster) or shared ($share on any MQTT broker)." enum:"embedded,nats,shared" default:"embedded"`
	MQTT          string   `name:"mqtt" help:"Where the embedded broker listens." default:":8883" placeholder:"HOST:PORT"`
	Websocket     string   `help:"Where it listens for MQTT over websocket." placeholder:"HOST:PORT"`
	MQTTURL       []string `name:"mqtt-url" help:"MQTT listeners of an external broker." placeholder:"URL"`
	NATSURL       []string `name:"nats-url" help:"Servers of an external NATS." placeholder:"URL"`
	NATSSecrets   string   `name:"nats-secrets" help:"File of mode 0600 with the secrets for an external NATS, as rackcloud broker nats writes it." placeholder:"FILE"`
	BrokerUser    string   `help:"User at a shared broker." default:"cloud"`
	BrokerPass    string   `name:"broker-password-file" help:"File of mode 0600 with the password there." placeholder:"FILE"`
	BrokerCA      string   `name:"broker-ca" help:"Authority of the external broker; rackcloud's own without it." placeholder:"FILE"`
	BrokerAddress string   `help:"Address of the broker in bundles, such as ssl://broker.example:8883; made of the name and port without it." placeholder:"URL"`
	Group         string   `help:"Name that replicas share." default:"rackcloud"`

	Rules          string        `help:"Folder with rule files for scripted profiles." placeholder:"DIR"`
	Retention      time.Duration `help:"How long decisions of a task stay after its end." default:"720h"`
	AuditRetention time.Duration `help:"How long the audit stays; 0 keeps it." default:"0s"`

	TaskRetention    time.Duration `help:"How long a task stays after its end, with its attempts and result; 0 keeps it." default:"2160h"`
	CommandRetention time.Duration `help:"How long a command stays after its end; 0 keeps it." default:"720h"`
	AccountRetention time.Duration `help:"How long the accounts of a day stay; 0 keeps them." default:"9600h"`

	LogFormat string `help:"text or json." enum:"text,json" default:"text"`
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
}

// Run serves until the session's context ends.
func (c *serveCommand) Run(s *session) error {
	log := newLogger(s.stderr, c.LogFormat, c.LogLevel)
	if err := c.check(); err != nil {
		return err
	}
	cloud, err := c.open(s.ctx, log)
	if err != nil {
		return err
	}
	defer cloud.close()
	defer runtime.KeepAlive(ballast())
	fmt.Fprintf(s.stdout, "ready: api %s, admin http://%s, broker %s\n", cloud.apiURL, cloud.local.Addr(), cloud.broker.url)
	return cloud.run(s.ctx)
}

func (c *serveCommand) check() error {
	host, _, err := net.SplitHostPort(c.AdminListen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%w: --admin-listen is %q, where a loopback address such as 127.0.0.1:8471 is needed: it takes orders without a token", errUsage, c.AdminListen)
	}
	if u, err := url.Parse(c.DSN); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return fmt.Errorf("%w: --dsn holds a password, which every user of the machine can see: write the DSN to a file of mode 0600 and name it by --dsn-file", errUsage)
		}
	}
	if c.DSN != "" && c.DSNFile != "" || c.KEK != "" && c.KEKCredential != "" {
		return fmt.Errorf("%w: --dsn and --dsn-file, as --kek and --kek-credential, exclude each other", errUsage)
	}
	return nil
}

// cloud is a running rackcloud.
type cloud struct {
	c      *serveCommand
	log    *slog.Logger
	vault  *vault.Vault
	store  *store.Store
	office *enroll.Office
	fleet  *fleet.Fleet
	skills *catalog.Catalog
	broker *broker
	link   *api.Link
	server *api.Server

	authority     *enroll.Authority
	public, local net.Listener
	apiURL        string
	retention     planner.Retention
}

// late is a Pusher that is known only after the fleet.
type late struct{ api **api.Link }

func (p late) Push(ctx context.Context, to enroll.Caller, t wire.Type, body any) error {
	return (*p.api).Push(ctx, to, t, body)
}

// open puts everything together and listens. What fails closes what was opened.
func (c *serveCommand) open(ctx context.Context, log *slog.Logger) (_ *cloud, err error) {
	k := &cloud{c: c, log: log}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	if err := durable.MakeFolder(c.State, 0o700); err != nil {
		return nil, err
	}
	dsn, err := c.dsn()
	if err != nil {
		return nil, err
	}
	var made string
	if k.vault, made, err = openVault(c.State, c.keyArgs, strings.TrimPrefix(dsn, "sqlite:")); err != nil {
		return nil, err
	}
	if k.store, err = store.Open(ctx, dsn, store.Options{}); err != nil {
		return nil, err
	}
	if err := checkNewKey(ctx, k.store, k.vault.Writing(), made); err != nil {
		return nil, err
	}
	if k.authority, err = enroll.OpenAuthority(c.State, k.vault, nil); err != nil {
		return nil, err
	}
	if err := enroll.SealAnew(ctx, k.store, k.vault, log); err != nil {
		return nil, err
	}
	if err := k.listen(ctx); err != nil {
		return nil, err
	}
	return k, k.assemble(ctx)
}

// listen opens the listeners and the broker.
func (k *cloud) listen(ctx context.Context) (err error) {
	names := k.c.names()
	if k.public, err = net.Listen("tcp", k.c.Listen); err != nil {
		return err
	}
	if k.local, err = net.Listen("tcp", k.c.AdminListen); err != nil {
		return err
	}
	scheme := "https"
	if k.c.Plain {
		scheme = "http"
	}
	k.apiURL = scheme + "://" + at(names[0], k.public.Addr())
	k.skills = catalog.New(catalog.Options{Store: k.store, Vault: k.vault, Push: late{&k.link}, Log: k.log})
	k.office = enroll.New(enroll.Options{
		Store: k.store, Vault: k.vault, Authority: k.authority, API: k.apiURL, Log: k.log, SkillKeys: k.skills.PublicKeys,
		Broker: func() string { return k.broker.url },
		Ended:  func(ctx context.Context, rack string) { k.broker.kick(ctx, rack) },
	})
	k.broker, err = k.c.openBroker(ctx, k, names)
	return err
}

// at is a listener as others reach it.
func at(name string, a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return net.JoinHostPort(name, port)
}

// assemble joins the parts behind the listeners.
func (k *cloud) assemble(ctx context.Context) error {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), busFigures{k.broker.bus, k.broker.server})
	figures := planner.NewMetrics(reg)
	k.fleet = fleet.New(fleet.Options{
		Store: k.store, Push: late{&k.link}, Log: k.log,
		KIDs: func(ctx context.Context, c enroll.Caller) ([]string, error) {
			ring, err := k.office.Keys(ctx, c)
			if err != nil {
				return nil, err
			}
			return ring.KIDs(), nil
		},
	})
	proxy, err := planner.New(planner.Options{
		Store: k.store, Vault: k.vault, Owner: store.NewID(), Logger: k.log, Metrics: figures, RulesDir: k.c.Rules,
	})
	if err != nil {
		return err
	}
	if err := reportKeys(ctx, proxy, k.log); err != nil {
		return err
	}
	calls := api.NewCalls(k.fleet, k.skills, func(ctx context.Context, c enroll.Caller, req wire.PlanRequest, screen []byte, accepted func(time.Duration)) (wire.PlanDecision, error) {
		return proxy.Decide(ctx, planner.Caller{Tenant: c.Tenant, Host: c.Rack}, req, screen, accepted)
	})
	metrics := api.NewMetrics(reg)
	k.link = api.NewLink(api.LinkOptions{Bus: k.broker.bus, Office: k.office, Fleet: k.fleet, Calls: calls, Metrics: metrics, Log: k.log})
	token, err := readTokenHash(filepath.Join(k.c.State, tokenFile))
	if err != nil {
		return err
	}
	k.server = api.New(api.Options{
		Calls: calls, Office: k.office, Fleet: k.fleet, Store: k.store, Providers: api.Profiles{Store: k.store, Vault: k.vault}, Skills: k.skills,
		Metrics: metrics, Gatherer: reg, Token: token, Log: k.log, Backup: k.store.System().Backup, Ready: k.ready,
	})
	k.retention = planner.Retention{
		Store: k.store.System(), Window: k.c.Retention, AuditWindow: k.c.AuditRetention, Tasks: k.c.TaskRetention, Commands: k.c.CommandRetention,
		Accounts: k.c.AccountRetention, Logger: k.log, Metrics: figures,
	}
	return nil
}

// reportKeys tells at the start which profiles cannot be used.
func reportKeys(ctx context.Context, proxy *planner.Proxy, log *slog.Logger) error {
	faults, err := proxy.CheckCredentials(ctx)
	for _, f := range faults {
		log.Error("the key of a provider profile cannot be decrypted, enter it again by rackcloud provider rotate", "fault", f)
	}
	return err
}

func (k *cloud) ready(ctx context.Context) error {
	return errors.Join(k.store.System().Ping(ctx), k.broker.bus.Check(ctx))
}

// run serves until ctx ends, or one of the parts fails.
func (k *cloud) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return k.link.Serve(ctx) })
	g.Go(func() error {
		if k.c.Plain {
			return api.Serve(ctx, k.public, k.server.Public(), nil, k.log)
		}
		return api.Serve(ctx, k.public, k.server.Public(), k.authority.Server(k.c.names()), k.log)
	})
	g.Go(func() error { return api.Serve(ctx, k.local, k.server.Local(), nil, k.log) })
	g.Go(func() error { k.fleet.Expire(ctx, expireEvery); return nil })
	g.Go(func() error { k.retention.Run(ctx); return nil })
	if err := g.Wait(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (k *cloud) close() {
	var errs []error
	for _, l := range []net.Listener{k.public, k.local} {
		if l != nil {
			_ = l.Close() // closed already where it has served
		}
	}
	if k.broker != nil {
		errs = append(errs, k.broker.close())
	}
	if k.store != nil {
		errs = append(errs, k.store.Close())
	}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, bus.ErrClosed) {
		k.log.Error("closing", "error", err)
	}
}

// names are those of this machine, the one for bundles first.
func (c *serveCommand) names() []string {
	names := append([]string(nil), c.Name...)
	if len(names) == 0 {
		if host, err := os.Hostname(); err == nil {
			names = append(names, host)
		}
	}
	return append(names, "localhost", "127.0.0.1", "::1")
}

func (c *serveCommand) dsn() (string, error) {
	switch {
	case c.DSN != "":
		return c.DSN, nil
	case c.DSNFile != "":
		return readSecretFile(c.DSNFile)
	}
	return "sqlite:" + filepath.Join(c.State, "cloud.db"), nil
}
