package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"phonerack/cloud/bus"
	"phonerack/cloud/bus/callout"
	"phonerack/cloud/enroll"
	"phonerack/sync/wire"
)

// brokerCommands write what an external broker needs. They work on the state folder, without a running rackcloud.
type brokerCommands struct {
	NATS        natsCommand        `cmd:"" name:"nats" help:"Write configuration and certificate for a NATS server or cluster, and what rackcloud needs for it."`
	Mosquitto   mosquittoCommand   `cmd:"" help:"Write configuration, access list and certificate for a mosquitto, and what rackcloud needs for it."`
	Password    passwordCommand    `cmd:"" help:"Print the line of a rack for mosquitto's file racks."`
	Certificate certificateCommand `cmd:"" help:"Write a new certificate for a broker."`
}

// brokerArgs are those of each broker.
type brokerArgs struct {
	stateArgs
	keyArgs
	Out   string   `required:"" help:"Folder for the files, made if it is missing." placeholder:"DIR"`
	Files string   `help:"Where they will lie on the broker's machines; the folder of --out without it." placeholder:"DIR"`
	Name  []string `help:"Names and addresses by which racks reach the broker, the first goes into bundles." placeholder:"HOST"`
}

// folder collects files and keeps the first error. Nothing is on disk before save.
type folder struct {
	out, files string
	all        []brokerFile
	written    []string
	err        error
}

type brokerFile struct {
	name    string
	content []byte
}

// open begins with the certificate and its authority.
func (a brokerArgs) open(names []string) *folder {
	f := &folder{out: a.Out, files: a.Files}
	for _, name := range names {
		if net.ParseIP(name) == nil && !hostName.MatchString(name) {
			f.err = fmt.Errorf("%w: %q is neither the name of a machine nor an address", errUsage, name)
			return f
		}
	}
	if f.files == "" {
		f.files, f.err = filepath.Abs(a.Out)
	}
	if f.err != nil {
		return f
	}
	cert, key, ca, err := a.certificate(names)
	f.err = err
	f.add("cert.pem", cert)
	f.add("key.pem", key)
	f.add("ca.pem", ca)
	return f
}

// hostName is what may stand in a certificate and in an address: RFC 1123.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

func (a brokerArgs) certificate(names []string) (cert, key, ca []byte, err error) {
	if err := os.MkdirAll(a.State, 0o700); err != nil {
		return nil, nil, nil, err
	}
	v, _, err := openVault(a.State, a.keyArgs, filepath.Join(a.State, "cloud.db"))
	if err != nil {
		return nil, nil, nil, err
	}
	authority, err := enroll.OpenAuthority(a.State, v, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	if cert, key, err = authority.Broker(names); err != nil {
		return nil, nil, nil, err
	}
	return cert, key, authority.PEM(), nil
}

// add is for a file of mode 0600 that must not be there yet.
func (f *folder) add(name string, content []byte) {
	if f.err == nil && slices.ContainsFunc(f.all, func(o brokerFile) bool { return o.name == name }) {
		f.err = fmt.Errorf("%w: two files would be called %s", errUsage, name)
	}
	f.all = append(f.all, brokerFile{name, content})
}

// save makes the folder and writes all files, or none.
func (f *folder) save() {
	if f.err == nil {
		f.err = os.MkdirAll(f.out, 0o700)
	}
	for _, one := range f.all {
		if f.err != nil {
			break
		}
		path := filepath.Join(f.out, one.name)
		if f.err = writeSecretFile(path, one.content); f.err == nil {
			f.written = append(f.written, path)
		}
	}
	if f.err == nil {
		return
	}
	for _, path := range f.written { // half a set is of no use, and would be in the way of the next try
		f.err = errors.Join(f.err, os.Remove(path))
	}
}

// at is where a file will lie on the broker's machine.
func (f *folder) at(name string) string { return filepath.Join(f.files, name) }

// config writes the flags of rackcloud serve.
func (f *folder) config(flags map[string]any) {
	text, err := toml.Marshal(flags)
	if err != nil && f.err == nil {
		f.err = err
	}
	f.add("rackcloud.toml", text)
}

// here is the path of a file for the rackcloud of this machine.
func (f *folder) here(name string) string {
	path, err := filepath.Abs(filepath.Join(f.out, name))
	if err != nil && f.err == nil {
		f.err = err
	}
	return path
}

// show saves the files and prints their paths.
func (f *folder) show(s *session) error {
	f.save()
	return show(s, map[string][]string{"files": f.written}, f.err, func(map[string][]string) error {
		_, err := fmt.Fprintln(s.stdout, strings.Join(f.written, "\n"))
		return err
	})
}

type natsCommand struct {
	brokerArgs
	Server []string `required:"" help:"A server; ports are 4222 for rackcloud, 8883 for racks and 6222 between servers unless they are given." placeholder:"NAME=HOST[:PORT:PORT:PORT]"`
	Store  string   `help:"Folder of the servers' stores." default:"/var/lib/nats" placeholder:"DIR"`
}

// natsServer is a server as --server tells it.
type natsServer struct{ name, native, mqtt, cluster string }

func parseNATSServer(text string) (natsServer, string, error) {
	name, where, ok := strings.Cut(text, "=")
	ports := []string{"4222", "8883", "6222"}
	host := where
	// An IPv6 address has its colons in brackets.
	if i := strings.IndexByte(where[strings.LastIndexByte(where, ']')+1:], ':'); i >= 0 {
		i += strings.LastIndexByte(where, ']') + 1
		host, ports = where[:i], strings.Split(where[i+1:], ":")
	}
	host = strings.Trim(host, "[]")
	odd := func(port string) bool { n, err := strconv.ParseUint(port, 10, 16); return err != nil || n == 0 }
	if !ok || !wire.ValidID(name) || host == "" || strings.ContainsAny(host, " \"\\") || len(ports) != 3 || slices.ContainsFunc(ports, odd) {
		return natsServer{}, "", fmt.Errorf("%w: --server is %q, where NAME=HOST or NAME=HOST:PORT:PORT:PORT is needed, with a name of small letters, digits and dashes", errUsage, text)
	}
	return natsServer{name, net.JoinHostPort(host, ports[0]), net.JoinHostPort(host, ports[1]), net.JoinHostPort(host, ports[2])}, host, nil
}

// natsSecrets are what a replica of rackcloud knows of a NATS.
type natsSecrets struct {
	Cloud   string `toml:"cloud"` // passwords of the three users
	Callout string `toml:"callout"`
	System  string `toml:"system"`
	Seed    string `toml:"seed"` // of the key that signs permissions
}

func readNATSSecrets(path string) (n natsSecrets, err error) {
	text, err := readSecretFile(path)
	if err != nil {
		return n, err
	}
	// An error of the parser may quote the line, which is a secret.
	if toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(&n) != nil || n.Cloud == "" || n.Callout == "" || n.System == "" || n.Seed == "" {
		return natsSecrets{}, fmt.Errorf("%s is no file of rackcloud broker nats", path)
	}
	return n, nil
}

func (c natsCommand) Run(s *session) error {
	var servers []natsServer
	var hosts, routes, native, mqtt []string
	for _, text := range c.Server {
		n, host, err := parseNATSServer(text)
		if err != nil {
			return err
		}
		servers, hosts = append(servers, n), append(hosts, host)
		routes, native, mqtt = append(routes, "nats://"+n.cluster), append(native, "tls://"+n.native), append(mqtt, "ssl://"+n.mqtt)
	}
	secrets := natsSecrets{Cloud: rand.Text(), Callout: rand.Text(), System: rand.Text()}
	var issuer string
	var err error
	if secrets.Seed, issuer, err = callout.NewKey(); err != nil {
		return err
	}
	names := append(slices.Clone(c.Name), hosts...)
	f := c.open(names)
	for _, n := range servers {
		o := bus.NATSServer{
			Name: n.name, StoreDir: c.Store + "/" + n.name, StoreKey: rand.Text(), Listen: n.native, MQTT: n.mqtt,
			TLS:           &bus.NATSFiles{Cert: f.at("cert.pem"), Key: f.at("key.pem"), CA: f.at("ca.pem")},
			CloudPassword: secrets.Cloud, CalloutPassword: secrets.Callout, SystemPassword: secrets.System, Issuer: issuer,
		}
		if len(servers) > 1 {
			o.Cluster = &bus.NATSCluster{Name: "phonerack", Listen: n.cluster, Routes: routes}
		}
		text, err := bus.NATSConfig(o)
		if err != nil {
			return err
		}
		f.add(n.name+".conf", []byte(text))
	}
	text, err := toml.Marshal(secrets)
	if err != nil {
		return err
	}
	f.add("secrets.toml", text)
	_, port, _ := net.SplitHostPort(servers[0].mqtt)
	f.config(map[string]any{
		"broker": "nats", "nats_url": native, "mqtt_url": mqtt, "nats_secrets": f.here("secrets.toml"),
		"broker_address": "ssl://" + net.JoinHostPort(names[0], port),
	})
	return f.show(s)
}

type mosquittoCommand struct {
	brokerArgs
	Racks string `help:"Where it listens for racks." default:"0.0.0.0:8883" placeholder:"HOST:PORT"`
	Cloud string `help:"Where it listens for rackcloud." default:"0.0.0.0:8884" placeholder:"HOST:PORT"`
	Store string `help:"Folder of its store." default:"/var/lib/mosquitto" placeholder:"DIR"`
}

func (c mosquittoCommand) Run(s *session) error {
	if len(c.Name) == 0 {
		return fmt.Errorf("%w: --name must tell by which name racks reach the broker", errUsage)
	}
	racks, err := portOf("--racks", c.Racks)
	if err != nil {
		return err
	}
	cloud, err := portOf("--cloud", c.Cloud)
	if err != nil {
		return err
	}
	password := rand.Text()
	line, err := bus.MosquittoPassword(bus.CloudUser, password)
	if err != nil {
		return err
	}
	f := c.open(c.Name)
	text, err := bus.MosquittoConfig(bus.MosquittoServer{
		Racks: c.Racks, Cloud: c.Cloud, RackPasswords: f.at("racks"), CloudPasswords: f.at("cloud"), ACL: f.at("acl"), StoreDir: c.Store,
		Cert: f.at("cert.pem"), Key: f.at("key.pem"), CA: f.at("ca.pem"),
	})
	if err != nil {
		return err
	}
	f.add("mosquitto.conf", []byte(text))
	f.add("acl", []byte(bus.MosquittoACL()))
	f.add("racks", nil)
	f.add("cloud", []byte(line+"\n"))
	f.add("cloud.password", []byte(password+"\n"))
	f.config(map[string]any{
		"broker": "shared", "mqtt_url": []string{"ssl://" + net.JoinHostPort(c.Name[0], cloud)},
		"broker_password_file": f.here("cloud.password"), "broker_address": "ssl://" + net.JoinHostPort(c.Name[0], racks),
	})
	return f.show(s)
}

// portOf gives the port of where a broker listens.
func portOf(flag, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
		return "", fmt.Errorf("%w: %s is %q, where HOST:PORT is needed", errUsage, flag, address)
	}
	return port, nil
}

type passwordCommand struct {
	Bundle string `arg:"" help:"Bundle of the rack." placeholder:"FILE"`
}

func (c passwordCommand) Run(s *session) error {
	text, err := readSecretFile(c.Bundle)
	if err != nil {
		return err
	}
	b, err := wire.ParseBundle([]byte(text))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Bundle, err)
	}
	line, err := bus.MosquittoPassword(b.Rack, b.BrokerPassword)
	return show(s, map[string]string{"line": line}, err, func(map[string]string) error {
		_, err := fmt.Fprintln(s.stdout, line)
		return err
	})
}

type certificateCommand struct{ brokerArgs }

func (c certificateCommand) Run(s *session) error {
	if len(c.Name) == 0 {
		return fmt.Errorf("%w: --name must tell the names and addresses of the broker, as many as there are", errUsage)
	}
	return c.open(c.Name).show(s)
}
