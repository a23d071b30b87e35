package sitetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"phonerack/firmware/rig/cloudrig"
)

// Broker is an external broker, set up as docs/rackcloud.md tells operators: by the files of rackcloud broker.
type Broker struct {
	Nodes []*Process
	flags []string                                       // of rackcloud serve
	admit func(ctx context.Context, bundle string) error // nil if a new rack needs no step at the broker
	front *balancer                                      // nil where racks reach the one node
}

// Close stops it.
func (b *Broker) Close() error {
	err := closeAll(b.Nodes)
	if b.front != nil {
		err = errors.Join(err, b.front.Close())
	}
	return err
}

// Replicas starts rackclouds on this broker; by the flags they share a database. The first has its state folder
// already, where the broker's files were made; the others get its keys.
func (b *Broker) Replicas(ctx context.Context, p Programs, dir string, n int, flags []string) (all []*cloudrig.Cloud, err error) {
	for i := range n {
		home := replica(dir, i)
		if i > 0 {
			if err := ShareKeys(state(replica(dir, 0)), state(home)); err != nil {
				return all, err
			}
		}
		c, err := cloudrig.Start(ctx, cloudrig.Options{Program: p.Rackcloud, Dir: home, Flags: slices.Concat(b.flags, flags)})
		if c != nil {
			all = append(all, c)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func replica(dir string, i int) string { return filepath.Join(dir, strconv.Itoa(i)) }
func state(home string) string         { return filepath.Join(home, "state") }

// ShareKeys gives a replica, by its state folder, what it needs of another's.
func ShareKeys(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"kek", "ca.pem", "ca.key"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// order runs a command of rackcloud that needs no running one.
func order(ctx context.Context, p Programs, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, p.Rackcloud, args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("rackcloud %s: %w: %s", args, err, &stderr)
	}
	return out, err
}

// StartMosquitto starts Debian's mosquitto with its files in a folder. What it returns besides an error is to be closed too.
// dir is where Replicas will be.
func StartMosquitto(ctx context.Context, p Programs, dir, files string) (*Broker, error) {
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/mosquitto"); err != nil {
			return nil, fmt.Errorf("run make setup, which installs mosquitto: %w", err)
		}
	}
	ports, err := cloudrig.FreePorts(2)
	if err != nil {
		return nil, err
	}
	conf, store := filepath.Join(files, "conf"), filepath.Join(files, "store")
	racks, cloud := "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1]
	if _, err := order(ctx, p, "broker", "mosquitto", "--state", state(replica(dir, 0)), "--out", conf, "--name", "127.0.0.1",
		"--racks", racks, "--cloud", cloud, "--store", store); err != nil {
		return nil, err
	}
	if err := os.Mkdir(store, 0o700); err != nil {
		return nil, err
	}
	as, err := own("mosquitto", files)
	if err != nil {
		return nil, err
	}
	m := &Process{program: program, args: []string{"-c", filepath.Join(conf, "mosquitto.conf")}, listens: []string{racks, cloud}, as: as}
	b := &Broker{Nodes: []*Process{m}, flags: []string{"--config", filepath.Join(conf, "rackcloud.toml")}}
	b.admit = func(ctx context.Context, bundle string) error {
		line, err := order(ctx, p, "broker", "password", bundle)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(conf, "racks"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(line)
		return errors.Join(err, f.Close(), m.hangUp())
	}
	return b, m.Start(ctx)
}

// own gives a folder to the user of a daemon, if root is who runs the test, and says how the daemon becomes that user.
func own(name, dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(uid), int(gid))
	})
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}, err
}

// natsProgram is the server's own program, of the version that go.mod names.
const natsProgram = "github.com/nats-io/nats-server/v2"

// StartNATS starts a cluster of three NATS servers with their files in a folder, and a balancer before them, which gives
// racks one address. What it returns besides an error is to be closed too. dir is where Replicas will be.
func StartNATS(ctx context.Context, p Programs, dir, files string) (*Broker, error) {
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", files+"/", natsProgram).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	const nodes = 3
	ports, err := cloudrig.FreePorts(3 * nodes)
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(files, "conf")
	args := []string{"broker", "nats", "--state", state(replica(dir, 0)), "--out", conf, "--name", "127.0.0.1", "--store", filepath.Join(files, "store")}
	b := &Broker{}
	var mqtt []string
	for i := range nodes {
		native, racks, cluster := ports[3*i], ports[3*i+1], ports[3*i+2]
		name := fmt.Sprint("n", i+1)
		args = append(args, "--server", fmt.Sprintf("%s=127.0.0.1:%s:%s:%s", name, native, racks, cluster))
		mqtt = append(mqtt, "127.0.0.1:"+racks)
		b.Nodes = append(b.Nodes, &Process{
			program: filepath.Join(files, "nats-server"), args: []string{"-c", filepath.Join(conf, name+".conf")},
			listens: []string{"127.0.0.1:" + native, mqtt[i]},
		})
	}
	if _, err := order(ctx, p, args...); err != nil {
		return nil, err
	}
	if b.front, err = balance(mqtt); err != nil {
		return nil, err
	}
	b.flags = []string{"--config", filepath.Join(conf, "rackcloud.toml"), "--broker-address", "ssl://" + b.front.Addr()}
	for _, n := range b.Nodes {
		// A server opens its MQTT listener when its cluster has a leader, so all are started before any is waited for.
		if err := n.launch(); err != nil {
			return b, err
		}
	}
	for _, n := range b.Nodes {
		if err := n.await(ctx); err != nil {
			return b, err
		}
	}
	return b, nil
}
