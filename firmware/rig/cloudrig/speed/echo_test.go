package speed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"phonerack/cloud/api"
	"phonerack/cloud/bus"
	"phonerack/cloud/bus/embedded"
	"phonerack/cloud/enroll"
	"phonerack/cloud/vault"
	"phonerack/sync/wire"
)

// echoVariable makes the test's binary an echo: its value is one as JSON.
const echoVariable = "PHONERACK_SPEED_ECHO"

// echo is a process that answers each up/plan with so many bytes on dn/plan, connected as rackcloud is: by the same
// bus, to a broker with the same settings and the same TLS.
type echo struct {
	State    string // rackcloud's folder, whose authority the embedded broker uses
	Dir      string // for the embedded broker's files, on the same disk
	External string // address of an external MQTT broker instead, and the cloud's password there
	Password string
	Answer   int // bytes
}

func TestMain(m *testing.M) {
	if raw := os.Getenv(echoVariable); raw != "" {
		var e echo
		err := json.Unmarshal([]byte(raw), &e)
		if err == nil {
			err = e.run()
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// racks takes each rack by its certificate, which the listener has verified.
type racks struct{}

func (racks) Authenticate(_ context.Context, l bus.Login) (bus.Identity, error) {
	if l.Certificate == nil {
		return bus.Identity{}, errors.New("no certificate")
	}
	return bus.Identity{Tenant: api.DefaultTenant, Rack: l.Certificate.Subject.CommonName}, nil
}

// run serves until the process is killed.
func (e echo) run() error {
	b, url, err := e.open()
	if err != nil {
		return err
	}
	answer := bytes.Repeat([]byte("a"), e.Answer)
	go func() {
		for b.Stats().Listening == 0 || b.Check(context.Background()) != nil {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println(url)
	}()
	return b.Serve(context.Background(), []wire.Kind{wire.KindPlan}, func(ctx context.Context, f bus.Frame) {
		f.Topic.Direction = wire.Down
		if err := b.Publish(ctx, f.Topic, answer); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
}

func (e echo) open() (bus.Bus, string, error) {
	if e.External != "" {
		b, err := bus.OpenShared(bus.Shared{MQTT: bus.MQTT{URLs: []string{e.External}, Username: bus.CloudUser, Password: e.Password}, Group: "echo"})
		return b, e.External, err
	}
	v, err := vault.Open(filepath.Join(e.State, "kek"))
	if err != nil {
		return nil, "", err
	}
	a, err := enroll.OpenAuthority(e.State, v, nil)
	if err != nil {
		return nil, "", err
	}
	s, err := embedded.Start(context.Background(), embedded.Options{
		Dir: e.Dir, MQTT: "127.0.0.1:0", Authenticator: racks{}, TLS: a.Server([]string{"127.0.0.1"}),
	})
	if err != nil {
		return nil, "", err
	}
	b, err := s.Open("echo", bus.Limits{}, nil)
	return b, "ssl://" + s.MQTTAddr(), err
}

// startEcho runs an echo that ends with the benchmark, and tells where its broker is.
func startEcho(b *testing.B, e echo) (url string) {
	b.Helper()
	raw, err := json.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p := exec.Command(self)
	p.Env = append(os.Environ(), echoVariable+"="+string(raw))
	p.Stderr = os.Stderr
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	limit := time.AfterFunc(startTime, func() { _ = p.Process.Kill() }) // which ends the reading
	defer limit.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("the echo does not start: %v", err)
	}
	return strings.TrimSpace(line)
}
