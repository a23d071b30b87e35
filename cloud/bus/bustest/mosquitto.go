package bustest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"phonerack/cloud/bus"
)

// nobody is whom mosquitto runs as when the test runs as root: Debian's user for those who own nothing.
const nobody = 65534

// mosquittoRacks are the racks that the password file knows: r0 to r15.
const mosquittoRacks = 16

// Program finds a program of Debian's packages mosquitto and mosquitto-clients, which make setup installs.
func Program(t testing.TB, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name, "/usr/bin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Fatalf("%s is not installed: run make setup, which installs Debian's packages mosquitto and mosquitto-clients", name)
	return ""
}

// Mosquitto starts a mosquitto as an unprivileged user in a folder of its own.
func Mosquitto(t testing.TB) *Broker {
	t.Helper()
	racks := make(map[string]string, mosquittoRacks)
	for i := range mosquittoRacks {
		rack := fmt.Sprintf("r%d", i)
		racks[rack] = Password(rack)
	}
	return MosquittoOf(t, racks)
}

// MosquittoOf starts one that knows these racks by their passwords.
func MosquittoOf(t testing.TB, racks map[string]string) *Broker {
	t.Helper()
	dir, err := os.MkdirTemp("", "mosquitto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &mosquitto{program: Program(t, "mosquitto"), dir: dir, config: filepath.Join(dir, "mosquitto.conf")}
	addresses := freePorts(t, 2)
	m.address = addresses[1]
	m.write(t, addresses, racks)
	m.start(t)
	t.Cleanup(func() { m.end(t, syscall.SIGTERM) })

	login := bus.MQTT{URLs: []string{"tcp://" + addresses[1]}, Username: bus.CloudUser, Password: Password(bus.CloudUser)}
	return &Broker{
		Name: "mosquitto", Racks: new(Racks), URLs: []string{"tcp://" + addresses[0]}, Dirs: []string{filepath.Join(dir, "store")},
		Replica: Replica{Driver: "shared", MQTT: login.URLs, Password: login.Password},
		Restart: func(t testing.TB) {
			m.end(t, syscall.SIGTERM) // a kill would lose what it has not saved: mosquitto stores now and then
			m.start(t)
		},
		Settle: func(t testing.TB) { m.settle(t) },
		open: func(group string, l bus.Limits) (bus.Bus, error) {
			return bus.OpenShared(bus.Shared{MQTT: login, Group: group, Limits: l, Log: logger(t)})
		},
	}
}

type mosquitto struct {
	program, dir, config, address string

	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{}
}

// write makes configuration, passwords, ACL and store.
func (m *mosquitto) write(t testing.TB, addresses []string, racks map[string]string) {
	t.Helper()
	path := func(name string) string { return filepath.Join(m.dir, name) }
	s := bus.MosquittoServer{
		Racks: addresses[0], Cloud: addresses[1], RackPasswords: path("racks"), CloudPasswords: path("cloud"),
		ACL: path("acl"), StoreDir: path("store"),
	}
	text, err := bus.MosquittoConfig(s)
	if err != nil {
		t.Fatal(err)
	}
	var passwords strings.Builder
	for rack, password := range racks {
		fmt.Fprintf(&passwords, "%s:%s\n", rack, password)
	}
	for name, content := range map[string]string{
		m.config: text, s.ACL: bus.MosquittoACL(), s.RackPasswords: passwords.String(),
		s.CloudPasswords: bus.CloudUser + ":" + Password(bus.CloudUser) + "\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{s.RackPasswords, s.CloudPasswords} {
		if out, err := exec.Command(Program(t, "mosquitto_passwd"), "-U", file).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %v: %s", err, out)
		}
	}
	if err := os.Mkdir(s.StoreDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return
	}
	for _, name := range []string{m.dir, m.config, s.ACL, s.RackPasswords, s.CloudPasswords, s.StoreDir} {
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *mosquitto) start(t testing.TB) {
	t.Helper()
	m.cmd = exec.Command(m.program, "-c", m.config)
	m.output.Reset()
	m.cmd.Stdout, m.cmd.Stderr = &m.output, &m.output
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		m.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, ended := m.cmd, make(chan struct{})
	m.ended = ended
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	Eventually(t, patience, "mosquitto listens", func() bool {
		select {
		case <-ended:
			t.Fatalf("mosquitto has ended: %s", m.output.String())
		default:
		}
		c, err := net.DialTimeout("tcp", m.address, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// settle makes mosquitto write its database.
func (m *mosquitto) settle(t testing.TB) {
	db := filepath.Join(m.dir, "store", "mosquitto.db")
	os.Remove(db)
	m.cmd.Process.Signal(syscall.SIGUSR1)
	Eventually(t, patience, "mosquitto writes its database", func() bool {
		_, err := os.Stat(db)
		return err == nil
	})
}

func (m *mosquitto) end(t testing.TB, signal syscall.Signal) {
	m.cmd.Process.Signal(signal)
	select {
	case <-m.ended:
	case <-time.After(patience):
		t.Error("mosquitto does not end")
		m.cmd.Process.Kill()
		<-m.ended
	}
}
