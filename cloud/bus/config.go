package bus

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"phonerack/sync/wire"
)

// Names in the configuration of a NATS server.
const (
	RackAccount = "RACKS" // racks and cloud; its streams hold MQTT sessions and retained frames

	CloudUser   = "cloud"   // of RackAccount: what a bus logs in as
	CalloutUser = "callout" // of an account that sees only the questions who a client is
	SystemUser  = "system"  // of the system account: finds connections and ends them
)

// RackSubjects are the NATS subjects that a rack may publish and subscribe to. There is nothing it is denied: what is not
// listed does not exist for it. The up topics are listed one by one, so that a rack cannot fill the store with
// retained frames on topics that it makes up.
func RackSubjects(tenant, rack string) (publish, subscribe []string) {
	base := "pr.v1." + tenant + "." + rack
	for _, k := range wire.Kinds(wire.Up) {
		publish = append(publish, base+".up."+string(k))
	}
	return publish, []string{base + ".dn.*"}
}

// NATSServer is one server of a [NATSConfig]. Passwords may be bcrypt hashes.
type NATSServer struct {
	Name     string // unique in a cluster
	StoreDir string
	// StoreKey encrypts the store; a cluster needs it. What a rack publishes with QoS 1 passes through the Raft log of
	// the servers before they see that nobody wants it stored, so screens would lie there in clear. Servers need
	// not have the same key, and each has to keep its own.
	StoreKey string
	Listen   string // host:port for the cloud's replicas; port -1 picks one
	MQTT     string // host:port for racks; port -1 picks one
	// Websocket is host:port for racks that come over websocket, "" for none. Without TLS here a proxy has to have it.
	Websocket string
	Cluster   *NATSCluster // nil for a server alone
	TLS       *NATSFiles   // for all listeners; nil for none, on a network of one's own

	CloudPassword, CalloutPassword, SystemPassword string
	Issuer                                         string // public key of the callout, see callout.NewKey
}

// NATSCluster joins servers.
type NATSCluster struct {
	Name   string
	Listen string   // host:port for the other servers
	Routes []string // nats://host:port of the servers, this one may be among them
}

// NATSFiles are PEM files. The servers of a cluster show the same certificate to each other. With CA, each MQTT client has
// to show a certificate of it, the cloud too, and the servers hold each other to it.
type NATSFiles struct{ Cert, Key, CA string }

// NATSConfig writes the configuration file of a NATS server for racks and cloud.
func NATSConfig(s NATSServer) (string, error) {
	if s.Cluster != nil && s.StoreKey == "" {
		return "", errors.New("configuration of NATS: a cluster needs a key for its store, for its log holds screens")
	}
	w := &natsWriter{}
	w.line("server_name: %s", s.Name)
	w.line("listen: %s", s.Listen)
	w.line("max_payload: %d # a frame of %d bytes and what NATS adds", MaxPayload, wire.MaxFrame)
	w.line("jetstream {")
	w.line("  store_dir: %s", s.StoreDir)
	if s.StoreKey != "" {
		w.line("  cipher: chachapoly")
		w.line("  key: %s", s.StoreKey)
	}
	w.line("  sync_interval: \"30s\" # with the power so much may be lost, of which the database and the racks have all")
	w.line("  limits { default_max_consumers: -1 } # each subscription of a rack is one, and 1000 would be the limit")
	w.line("}")
	w.line("mqtt {")
	w.line("  listen: %s", s.MQTT)
	w.line("  ack_wait: \"30s\"")
	w.line("  max_ack_pending: 256")
	w.line("  js_api_timeout: \"10s\" # after a restart racks come all at once")
	w.line("  consumer_inactive_threshold: \"24h\" # of racks that never come back")
	if s.Cluster == nil {
		// A subscription lives no longer than its rack's connection, as sessions are clean. In files each would be written ten times
		// a second and have a goroutine for it, for which a server that stops waits 10 ms, one after the other.
		w.line("  consumer_memory_storage: true")
	}
	w.tls(s.TLS, true)
	w.line("}")
	if s.Websocket != "" {
		w.line("websocket {")
		w.line("  listen: %s", s.Websocket)
		if s.TLS == nil {
			w.line("  no_tls: true")
		}
		w.tls(s.TLS, true)
		w.line("}")
	}
	w.tls(s.TLS, false)
	w.accounts(s)
	w.cluster(s.Cluster, s.TLS)
	return w.b.String(), w.err
}

// natsWriter writes the format of NATS. It keeps the first error.
type natsWriter struct {
	b   strings.Builder
	err error
}

// line writes a line whose strings are quoted.
func (w *natsWriter) line(format string, args ...any) {
	for i, a := range args {
		s, ok := a.(string)
		if !ok {
			continue
		}
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
			if w.err == nil {
				w.err = fmt.Errorf("configuration of NATS: a value of %q is empty or has a character that cannot be quoted", strings.TrimSpace(format))
			}
		}
		args[i] = `"` + s + `"`
	}
	fmt.Fprintf(&w.b, format+"\n", args...)
}

func (w *natsWriter) tls(f *NATSFiles, verify bool) {
	if f == nil {
		return
	}
	w.line("tls {")
	w.line("  cert_file: %s", f.Cert)
	w.line("  key_file: %s", f.Key)
	if f.CA != "" {
		w.line("  ca_file: %s", f.CA)
		w.line("  verify: %t", verify)
	}
	w.line("}")
}

func (w *natsWriter) accounts(s NATSServer) {
	user := func(name, password string, publish, subscribe []string, types string) {
		w.line("    user: %s, password: %s", name, password)
		w.line("    permissions: { publish: { allow: [%s] }, subscribe: { allow: [%s] } }", list(publish), list(subscribe))
		w.line("    allowed_connection_types: [%s]", list(strings.Fields(types)))
	}
	w.line("accounts {")
	w.line("  " + RackAccount + " { jetstream: enabled, users: [{")
	user(CloudUser, s.CloudPassword, []string{"pr.v1.>"}, []string{"pr.v1.>"}, "STANDARD IN_PROCESS MQTT MQTT_WS")
	w.line("  }] }")
	w.line("  CALLOUT { users: [{")
	user(CalloutUser, s.CalloutPassword, []string{"$SYS._INBOX.>"}, []string{"$SYS.REQ.USER.AUTH"}, "STANDARD IN_PROCESS")
	w.line("  }] }")
	w.line("  SYS { users: [{")
	user(SystemUser, s.SystemPassword, []string{"$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.*.KICK"}, []string{"_INBOX.>"}, "STANDARD IN_PROCESS")
	w.line("  }] }")
	w.line("}")
	w.line("system_account: SYS")
	w.line("authorization {")
	w.line("  timeout: 5 # seconds for the callout")
	w.line("  auth_callout { issuer: %s, account: CALLOUT, auth_users: [%s] }", s.Issuer, list([]string{CloudUser, CalloutUser, SystemUser}))
	w.line("}")
}

// list writes constants of this file, which need no quoting.
type list []string

func (l list) String() string {
	quoted := make([]string, len(l))
	for i, s := range l {
		quoted[i] = `"` + s + `"`
	}
	return strings.Join(quoted, ", ")
}

func (w *natsWriter) cluster(c *NATSCluster, f *NATSFiles) {
	if c == nil {
		return
	}
	w.line("cluster {")
	w.line("  name: %s", c.Name)
	w.line("  listen: %s", c.Listen)
	w.line("  routes: [")
	for _, r := range c.Routes {
		w.line("    %s", r)
	}
	w.line("  ]")
	w.tls(f, true)
	w.line("}")
}

// MosquittoServer is what [MosquittoConfig] needs. Racks and cloud have a listener each, because mosquitto binds client
// ids to user names for a whole listener and the cloud has several sessions.
type MosquittoServer struct {
	Racks, Cloud                  string // host:port
	RackPasswords, CloudPasswords string // files of mosquitto_passwd; CloudPasswords holds [CloudUser] alone
	ACL                           string // file with what MosquittoACL gives
	StoreDir                      string // "" keeps retained frames in memory only
	Cert, Key                     string // PEM files for both listeners; "" for no TLS
	CA                            string // PEM file; with it each client, the cloud too, has to show a certificate of it
	User                          string // whom mosquitto becomes when root starts it; "" leaves it to mosquitto
}

// MosquittoConfig writes the configuration file of a mosquitto, 2.0 or later.
func MosquittoConfig(s MosquittoServer) (string, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, v := range []string{s.Racks, s.Cloud, s.RackPasswords, s.CloudPasswords, s.ACL, s.StoreDir, s.Cert, s.Key, s.CA, s.User} {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return "", fmt.Errorf("configuration of mosquitto: %.80q has a control character", v)
		}
	}
	line("per_listener_settings true")
	line("message_size_limit %d", MaxPayload)
	line("max_queued_messages 1000")
	// With a bound in messages, one that comes while the window opens overtakes those that wait (seen in 2.0.11).
	line("max_inflight_messages 0")
	line("max_inflight_bytes %d", 64<<20)
	line("set_tcp_nodelay true")
	if s.User != "" {
		line("user %s", s.User)
	}
	if s.StoreDir != "" {
		line("persistence true")
		line("persistence_location %s/", strings.TrimSuffix(s.StoreDir, "/"))
		line("autosave_interval 30")
	}
	for _, l := range []struct {
		address, passwords string
		racks              bool
	}{{s.Racks, s.RackPasswords, true}, {s.Cloud, s.CloudPasswords, false}} {
		i := strings.LastIndexByte(l.address, ':')
		if i < 0 || l.passwords == "" || s.ACL == "" {
			return "", fmt.Errorf("configuration of mosquitto: listener %.80q needs host:port, passwords and an ACL", l.address)
		}
		line("listener %s %s", l.address[i+1:], strings.Trim(l.address[:i], "[]"))
		line("allow_anonymous false")
		line("password_file %s", l.passwords)
		line("acl_file %s", s.ACL)
		if l.racks {
			line("use_username_as_clientid true")
		}
		if s.Cert != "" {
			line("certfile %s", s.Cert)
			line("keyfile %s", s.Key)
		}
		if s.CA != "" {
			line("cafile %s", s.CA)
			line("require_certificate true")
		}
	}
	return b.String(), nil
}

// MosquittoPassword is the line of a user in a password file of mosquitto, 2.0 or later, as mosquitto_passwd writes it. The
// password has to be one that nobody can guess: mosquitto's number of rounds holds up nobody who tries many.
func MosquittoPassword(user, password string) (string, error) {
	if user == "" || strings.ContainsFunc(user, func(r rune) bool { return r <= ' ' || r == ':' || r == 0x7f }) {
		return "", fmt.Errorf("user %.80q cannot stand in a password file of mosquitto", user)
	}
	const rounds = 101 // mosquitto_passwd's own
	salt := make([]byte, 12)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	key, err := pbkdf2.Key(sha512.New, password, salt, rounds, sha512.Size)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:$7$%d$%s$%s", user, rounds, base64.StdEncoding.EncodeToString(salt), base64.StdEncoding.EncodeToString(key)), nil
}

// MosquittoACL is the list for mosquitto: a rack, whose user name is its id, publishes on its own up topics and hears its
// own dn topics; the cloud does the opposite. Rack ids are unique over the installation, so that the tenant, which
// mosquitto does not know, is left open; the MAC covers it.
func MosquittoACL() string {
	var b strings.Builder
	fmt.Fprintf(&b, "user %s\ntopic read pr/v1/+/+/up/+\ntopic write pr/v1/+/+/dn/+\n\n", CloudUser)
	kinds := wire.Kinds(wire.Up)
	slices.Sort(kinds)
	for _, k := range kinds {
		fmt.Fprintf(&b, "pattern write pr/v1/+/%%u/up/%s\n", k)
	}
	b.WriteString("pattern read pr/v1/+/%u/dn/+\n")
	return b.String()
}
