package bustest

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"phonerack/cloud/bus"
	"phonerack/cloud/bus/callout"
)

const nodes = 3

// Cluster starts three NATS servers as an operator would from the files that bus.NATSConfig writes, and the callout
// beside them.
func Cluster(t testing.TB) *Broker { return startCluster(t, nil) }

// ClusterWithTLS starts the same with certificates of an authority; each MQTT client has to show one.
func ClusterWithTLS(t testing.TB, a *Authority) *Broker { return startCluster(t, a) }

func startCluster(t testing.TB, a *Authority) *Broker {
	t.Helper()
	seed, public, err := callout.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{dir: t.TempDir(), log: logger(t), ports: freePorts(t, 3*nodes)}
	scheme := "tcp://"
	if a != nil {
		scheme, c.files = "ssl://", a.Files(t, "127.0.0.1")
	}
	b := &Broker{Name: "cluster", Racks: new(Racks), RefusesForeign: true, Encrypted: true}
	var urls []string
	for i := range nodes {
		c.write(t, i, public)
		b.Dirs = append(b.Dirs, c.store(i))
		b.URLs = append(b.URLs, scheme+c.ports[nodes+i])
		urls = append(urls, "nats://"+c.ports[i])
	}
	t.Cleanup(func() {
		for i := range nodes {
			c.kill(i)
		}
	})
	for i := range nodes {
		c.start(t, i)
	}
	c.wait(t)
	service, err := callout.Start(t.Context(), callout.Options{
		URLs: urls, Password: Password(bus.CalloutUser), SystemPassword: Password(bus.SystemUser),
		Seed: seed, Authenticator: b.Racks, Log: c.log, TLS: a.Client(""),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	b.Kicker = service
	b.Replica = Replica{Driver: "nats", NATS: urls, MQTT: b.URLs, Password: Password(bus.CloudUser)}
	b.open = func(group string, l bus.Limits) (bus.Bus, error) {
		return bus.OpenNATS(bus.NATS{
			URLs: urls, Username: bus.CloudUser, Password: Password(bus.CloudUser), Group: group, Limits: l, Log: logger(t),
			TLS:  a.Client(""),
			MQTT: bus.MQTT{URLs: b.URLs, Username: bus.CloudUser, Password: Password(bus.CloudUser), TLS: a.Client("cloud")},
		})
	}
	victim := 0
	b.Restart = func(t testing.TB) { // one node after the other
		c.kill(victim % nodes)
		time.Sleep(500 * time.Millisecond) // the others find out under load
		c.start(t, victim%nodes)
		victim++
		c.wait(t)
	}
	return b
}

type cluster struct {
	dir     string
	log     *slog.Logger
	files   *bus.NATSFiles
	ports   []string // addresses for clients, then for MQTT, then for the cluster
	servers [nodes]*server.Server
}

func (c *cluster) store(i int) string { return filepath.Join(c.dir, fmt.Sprint("store", i)) }
func (c *cluster) file(i int) string  { return filepath.Join(c.dir, fmt.Sprint("nats", i, ".conf")) }

func (c *cluster) write(t testing.TB, i int, issuer string) {
	t.Helper()
	cluster := &bus.NATSCluster{Name: "racks", Listen: c.ports[2*nodes+i]}
	for n := range nodes {
		cluster.Routes = append(cluster.Routes, "nats://"+c.ports[2*nodes+n])
	}
	text, err := bus.NATSConfig(bus.NATSServer{
		Name: fmt.Sprint("n", i), StoreDir: c.store(i), Listen: c.ports[i], MQTT: c.ports[nodes+i], Cluster: cluster,
		StoreKey:      Password(fmt.Sprint("store", i)),
		CloudPassword: Password(bus.CloudUser), CalloutPassword: Password(bus.CalloutUser), SystemPassword: Password(bus.SystemUser),
		Issuer: issuer, TLS: c.files,
	})
	if err == nil {
		err = os.WriteFile(c.file(i), []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) start(t testing.TB, i int) {
	t.Helper()
	o, err := server.ProcessConfigFile(c.file(i))
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	c.servers[i] = s
}

func (c *cluster) kill(i int) {
	if s := c.servers[i]; s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// wait waits until the cluster can make streams.
func (c *cluster) wait(t testing.TB) {
	t.Helper()
	Eventually(t, 20*time.Second, "the cluster is whole", func() bool {
		leader := false
		for _, s := range c.servers {
			if !s.ReadyForConnections(time.Second) || !s.JetStreamIsCurrent() || len(s.JetStreamClusterPeers()) < nodes && s.JetStreamIsLeader() {
				return false
			}
			leader = leader || s.JetStreamIsLeader()
		}
		return leader
	})
}
