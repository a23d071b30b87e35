package link_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/gorilla/websocket"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{}
	a.cert, a.key, a.pem, _ = issue(t, nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// issue makes a certificate that holds for a day around noon.
func issue(t *testing.T, by *authority, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), noon.Add(-12*time.Hour), noon.Add(12*time.Hour)
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// buffered is a pipe with room, as every socket has: a client that refuses a
// certificate says so while the server is still writing.
type buffered struct {
	net.Conn
	out  chan []byte
	done chan struct{}
	end  func()
}

func newBuffered(conn net.Conn) *buffered {
	b := &buffered{Conn: conn, out: make(chan []byte, 1024), done: make(chan struct{})}
	b.end = sync.OnceFunc(func() { close(b.done) })
	go func() {
		for {
			select {
			case p := <-b.out:
				if _, err := conn.Write(p); err != nil {
					return
				}
			case <-b.done:
				return
			}
		}
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	select {
	case b.out <- bytes.Clone(p):
		return len(p), nil
	case <-b.done:
		return 0, net.ErrClosed
	}
}

func (b *buffered) Close() error {
	b.end()
	return b.Conn.Close()
}

// secure puts TLS before the bench's broker, which then wants client certificates
// of the same authority. The rack's files lie in dir.
func secure(t *testing.T, b *bench) (dir string, seen *atomic.Pointer[string]) {
	t.Helper()
	dir, seen = t.TempDir(), new(atomic.Pointer[string])
	ca := newAuthority(t, "installation")
	_, _, certPEM, keyPEM := issue(t, &ca, &x509.Certificate{Subject: pkix.Name{CommonName: "broker"}, DNSNames: []string{"broker.test"}})
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	server := &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		Time: func() time.Time { return noon },
		VerifyConnection: func(s tls.ConnectionState) error {
			seen.Store(&s.PeerCertificates[0].Subject.CommonName)
			return nil
		},
	}
	b.o.Broker = "ssl://broker.test:8883"
	b.o.Dial = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		b.broker.Accept(tls.Server(newBuffered(far), server))
		return near, nil
	}
	write(t, filepath.Join(dir, "ca.pem"), ca.pem, 0o644)
	newIdentity(t, dir, &ca, "rack-1")
	b.o.TLS = link.TLS{CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "rack.pem"), KeyFile: filepath.Join(dir, "rack.key")}
	b.rotate = func(name string) { newIdentity(t, dir, &ca, name) }
	return dir, seen
}

func newIdentity(t *testing.T, dir string, ca *authority, name string) {
	t.Helper()
	_, _, certPEM, keyPEM := issue(t, ca, &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	write(t, filepath.Join(dir, "rack.pem"), certPEM, 0o644)
	write(t, filepath.Join(dir, "rack.key"), keyPEM, 0o600)
}

// A board without a clock, in 1970, still recognises the broker: by the time of
// its build, or by the last time that the cloud has told.
func TestTLSUsesTheTimeFloorAndTheFilesAsTheyAre(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		_, seen := secure(t, b)
		b.o.Clock = clock{time.Now(), time.Date(1970, 1, 1, 0, 0, 10, 0, time.UTC)}
		b.o.Floor = noon.Add(-time.Hour)
		b.online()
		if n := seen.Load(); n == nil || *n != "rack-1" {
			t.Errorf("the broker saw %v", n)
		}
		b.rotate("rack-1-again")
		b.broker.HangUpAll()
		time.Sleep(2 * time.Minute)
		b.waitOnline()
		if n := seen.Load(); *n != "rack-1-again" {
			t.Errorf("after the rotation the broker saw %s", *n)
		}
	})
}

func TestTLSRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, b *bench, dir string)
		want   string
	}{
		"a broker of another authority": {func(t *testing.T, b *bench, dir string) {
			write(t, filepath.Join(dir, "ca.pem"), newAuthority(t, "somebody").pem, 0o644)
		}, "unknown authority"},
		"a broker with another name": {func(_ *testing.T, b *bench, _ string) { b.o.Broker = "ssl://other.test:8883" }, "other.test"},
		"a broker before its time":   {func(_ *testing.T, b *bench, _ string) { b.o.Floor = time.Time{} }, "not yet valid"},
		"a key that others may read": {func(t *testing.T, b *bench, dir string) {
			if err := os.Chmod(filepath.Join(dir, "rack.key"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "others may read it"},
		"an authority that is none": {func(t *testing.T, b *bench, dir string) {
			write(t, filepath.Join(dir, "ca.pem"), []byte("nothing"), 0o644)
		}, "has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				dir, _ := secure(t, b)
				b.o.Clock = clock{time.Now(), time.Date(1970, 1, 1, 0, 0, 10, 0, time.UTC)}
				b.o.Floor = noon.Add(-time.Hour)
				c.change(t, b, dir)
				b.run()
				synctest.Wait()
				if s := b.link.Status(); s.State != link.Waiting || !strings.Contains(s.LastError, c.want) {
					t.Errorf("state %s, %q", s.State, s.LastError)
				}
			})
		})
	}
}

// A rack that was enrolled has all of it in one bundle.
func TestCredentialsComeFromAFunctionAtEachConnect(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		_, seen := secure(t, b)
		files := b.o.TLS
		b.o.TLS, b.o.Floor = link.TLS{}, noon.Add(-time.Hour)
		b.o.Credentials = func() (link.Credentials, error) {
			var c link.Credentials
			for path, to := range map[string]*string{files.CAFile: &c.CA, files.CertFile: &c.Certificate, files.KeyFile: &c.Key} {
				raw, err := os.ReadFile(path)
				if err != nil {
					return c, err
				}
				*to = string(raw)
			}
			c.Password = "s3cret"
			return c, nil
		}
		b.online()
		b.rotate("rack-1-again")
		b.broker.HangUpAll()
		time.Sleep(2 * time.Minute)
		b.waitOnline()
		if n := seen.Load(); *n != "rack-1-again" || string(b.broker.Connects()[1].Password) != "s3cret" {
			t.Errorf("the broker saw %s", *n)
		}
	})
}

func TestPasswordComesFromAPrivateFile(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.o.PasswordFile = write(t, filepath.Join(t.TempDir(), "password"), []byte("s3cret word\n"), 0o644)
		b.run()
		synctest.Wait()
		if s := b.link.Status(); !strings.Contains(s.LastError, "others may read it") || len(b.broker.Connects()) != 0 {
			t.Errorf("a password that everybody may read was used: %q", s.LastError)
		}
		if err := os.Chmod(b.o.PasswordFile, 0o600); err != nil {
			t.Fatal(err)
		}
		b.waitOnline()
		if c := b.broker.Connects()[0]; string(c.Password) != "s3cret word" || c.Username != "rack-1" {
			t.Errorf("user %q, password %q", c.Username, c.Password)
		}
		if strings.Contains(b.log.String(), "s3cret") || strings.Contains(fmt.Sprintf("%+v", b.link.Status()), "s3cret") {
			t.Error("the password is in the log or in the status")
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*link.Options)
		want   string
	}{
		"password in the address": {func(o *link.Options) { o.Broker = "tcp://rack:s3cret@broker.test:1883" }, "file"},
		"no port":                 {func(o *link.Options) { o.Broker = "tcp://broker.test" }, "host:port"},
		"another protocol":        {func(o *link.Options) { o.Broker = "http://broker.test:80" }, "host:port"},
		"rack with a wildcard":    {func(o *link.Options) { o.Rack = "rack+1" }, "rack"},
		"no generation":           {func(o *link.Options) { o.Generation = 0 }, "generation"},
		"certificate without key": {func(o *link.Options) { o.TLS.CertFile = "x" }, "key"},
		"tiny outbox":             {func(o *link.Options) { o.OutboxBytes = 1000 }, "outbox"},
		"frames above the wire's": {func(o *link.Options) { o.MaxFrame = wire.MaxFrame + 1 }, "frames"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.change(&b.o)
			if _, err := link.New(b.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v", err)
			}
		})
	}
}

// whole is the length of an MQTT packet that is all of a message, else -1.
func whole(message []byte) int {
	r := &countingReader{r: strings.NewReader(string(message))}
	if _, err := packets.ReadPacket(r); err != nil || r.n != len(message) {
		return -1
	}
	return r.n
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// websockets serves the bench's broker over websockets; each message that is not
// one whole packet is counted. (paho PR #413)
func websockets(t *testing.T, b *bench, torn *atomic.Int32, header *atomic.Value) http.Handler {
	up := websocket.Upgrader{Subprotocols: []string{"mqtt"}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header.Store(r.Header.Get("X-Rack") + " " + r.URL.Path)
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		near, far := net.Pipe()
		b.broker.Accept(far)
		go func() {
			defer ws.Close()
			buf := make([]byte, 32<<10)
			for {
				n, err := near.Read(buf)
				if err != nil || ws.WriteMessage(websocket.BinaryMessage, buf[:n]) != nil {
					return
				}
			}
		}()
		defer near.Close()
		for {
			_, message, err := ws.ReadMessage()
			if err != nil {
				return
			}
			if whole(message) < 0 {
				torn.Add(1)
			}
			if _, err := near.Write(message); err != nil {
				return
			}
		}
	})
}

func TestWebsocketCarriesWholePackets(t *testing.T) {
	for _, scheme := range []string{"ws", "wss"} {
		t.Run(scheme, func(t *testing.T) {
			b := newBench(t)
			var torn atomic.Int32
			var header atomic.Value
			server := httptest.NewUnstartedServer(websockets(t, b, &torn, &header))
			b.o.Dial = nil
			if scheme == "wss" {
				server.StartTLS()
				b.o.TLS.CAFile = write(t, filepath.Join(t.TempDir(), "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o644)
				b.o.Floor = time.Time{}
				b.o.Clock = clock{time.Now(), time.Now()}
			} else {
				server.Start()
			}
			defer server.Close()
			b.o.Broker = scheme + "://" + server.Listener.Addr().String() + "/mqtt"
			b.o.Header = http.Header{"X-Rack": {"rack-1"}}
			b.cloud.On(wire.TypePlanRequest, func(h heard) {
				b.cloud.Reply(h, wire.TypePlanDecision, wire.PlanDecision{ToolName: "tap", Arguments: []byte(`{}`)})
			})
			b.online()
			defer b.stop()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			m, err := b.link.Request(ctx, link.Call{
				Kind: wire.KindPlan, Type: wire.TypePlanRequest, Body: wire.PlanRequest{},
				Attachments: []wire.Attachment{{Name: "screen", Type: "image/jpeg", Data: make([]byte, 700<<10)}},
			})
			if err != nil || m.Type != wire.TypePlanDecision {
				t.Errorf("%+v, %v", m, err)
			}
			if torn.Load() != 0 {
				t.Errorf("%d packets were cut into several messages", torn.Load())
			}
			if h := header.Load(); h != "rack-1 /mqtt" {
				t.Errorf("the request had %v", h)
			}
		})
	}
}

// httpProxy tunnels to the bench's broker and tells what it was asked.
func httpProxy(t *testing.T, b *bench, asked *atomic.Value) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				conn.Close()
				continue
			}
			asked.Store(r.Method + " " + r.RequestURI + " " + r.Header.Get("Proxy-Authorization"))
			if r.Header.Get("Proxy-Authorization") == "Basic Ym9iOndyb25n" {
				fmt.Fprint(conn, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
				conn.Close()
				continue
			}
			fmt.Fprint(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
			b.broker.Accept(conn)
		}
	}()
	return l
}

func TestProxy(t *testing.T) {
	for _, c := range []struct {
		name, user, env string
		fromEnv         bool
		want            string
	}{
		{name: "explicit", user: "bob:builder@", want: "CONNECT broker.test:1883 Basic Ym9iOmJ1aWxkZXI="},
		{name: "refused", user: "bob:wrong@", want: "CONNECT broker.test:1883 Basic Ym9iOndyb25n"},
		{name: "of the environment, when asked", env: "http_proxy", fromEnv: true, want: "CONNECT broker.test:1883 "},
		{name: "of the environment, not asked", env: "http_proxy"},
		{name: "all_proxy, which paho would take", env: "all_proxy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			var asked atomic.Value
			l := httpProxy(t, b, &asked)
			defer l.Close()
			address := "http://" + c.user + l.Addr().String()
			var direct atomic.Int32
			b.o.Dial = func(ctx context.Context, network, to string) (net.Conn, error) {
				if to == "broker.test:1883" {
					direct.Add(1)
					return b.broker.Dial(ctx, network, to)
				}
				return new(net.Dialer).DialContext(ctx, network, to)
			}
			if c.env != "" {
				t.Setenv(c.env, address)
				t.Setenv(strings.ToUpper(c.env), address)
				b.o.ProxyFromEnvironment = c.fromEnv
			} else {
				b.o.Proxy = address
			}
			b.run()
			defer b.stop()
			deadline := time.Now().Add(10 * time.Second)
			for time.Now().Before(deadline) {
				if s := b.link.Status(); s.State == link.Online || s.LastError != "" {
					break
				}
				time.Sleep(2 * time.Millisecond)
			}
			s := b.link.Status()
			if c.name == "refused" {
				if !strings.Contains(s.LastError, "407") || strings.Contains(s.LastError, "wrong") {
					t.Errorf("%q", s.LastError)
				}
			} else if s.State != link.Online {
				t.Errorf("status %+v", s)
			}
			if got, _ := asked.Load().(string); got != c.want {
				t.Errorf("the proxy was asked %q", got)
			}
			if (direct.Load() > 0) != (c.want == "") {
				t.Errorf("dialled directly %d times", direct.Load())
			}
		})
	}
}

// A SOCKS proxy is asked for the name, which the rack itself may not know.
func TestProxySOCKS(t *testing.T) {
	b := newBench(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		r := bufio.NewReader(conn)
		greeting := make([]byte, 2)
		_, _ = io.ReadFull(r, greeting)
		_, _ = io.ReadFull(r, make([]byte, greeting[1]))
		_, _ = conn.Write([]byte{5, 0})
		head := make([]byte, 5)
		_, _ = io.ReadFull(r, head)
		name := make([]byte, int(head[4])+2)
		_, _ = io.ReadFull(r, name)
		asked <- string(name[:len(name)-2])
		_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		b.broker.Accept(conn)
	}()
	b.o.Dial, b.o.Proxy = nil, "socks5://"+l.Addr().String()
	b.online()
	defer b.stop()
	if name := <-asked; name != "broker.test" {
		t.Errorf("the proxy was asked for %q", name)
	}
}
