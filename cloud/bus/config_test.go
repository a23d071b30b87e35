package bus

import (
	"strings"
	"testing"
)

func server() NATSServer {
	return NATSServer{
		Name: "n1", StoreDir: "/var/lib/nats", StoreKey: "k", Listen: "127.0.0.1:4222", MQTT: "0.0.0.0:1883",
		CloudPassword: "a", CalloutPassword: "b", SystemPassword: "c", Issuer: "A",
	}
}

// TestNATSConfigRefusesWhatItCannotWrite: a value that ends its quotes would be configuration.
func TestNATSConfigRefusesWhatItCannotWrite(t *testing.T) {
	if _, err := NATSConfig(server()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*NATSServer){
		"quote":              func(s *NATSServer) { s.CloudPassword = `a", x: "b` },
		"backslash":          func(s *NATSServer) { s.StoreDir = `c:\nats` },
		"line":               func(s *NATSServer) { s.Name = "a\nb" },
		"nothing":            func(s *NATSServer) { s.Issuer = "" },
		"cluster in clear":   func(s *NATSServer) { s.Cluster, s.StoreKey = &NATSCluster{Name: "c", Listen: "x:1"}, "" },
		"quote in the route": func(s *NATSServer) { s.Cluster = &NATSCluster{Name: "c", Listen: "x:1", Routes: []string{`"`}} },
	} {
		s := server()
		spoil(&s)
		if text, err := NATSConfig(s); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestPasswordsAreNotInErrors: an error goes to logs.
func TestPasswordsAreNotInErrors(t *testing.T) {
	s := server()
	s.CloudPassword = `secret"`
	if _, err := NATSConfig(s); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// TestMosquittoACL is the whole list; whoever changes it changes what racks may do.
func TestMosquittoACL(t *testing.T) {
	want := `user cloud
topic read pr/v1/+/+/up/+
topic write pr/v1/+/+/dn/+

pattern write pr/v1/+/%u/up/cmd
pattern write pr/v1/+/%u/up/event
pattern write pr/v1/+/%u/up/plan
pattern write pr/v1/+/%u/up/session
pattern write pr/v1/+/%u/up/skill
pattern write pr/v1/+/%u/up/state
pattern write pr/v1/+/%u/up/task
pattern write pr/v1/+/%u/up/telemetry
pattern read pr/v1/+/%u/dn/+
`
	if got := MosquittoACL(); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestMosquittoConfigRefusesWhatItCannotWrite(t *testing.T) {
	good := MosquittoServer{Racks: "0.0.0.0:1883", Cloud: "[::1]:1884", RackPasswords: "r", CloudPasswords: "c", ACL: "a"}
	text, err := MosquittoConfig(good)
	if err != nil || !strings.Contains(text, "listener 1884 ::1\n") || strings.Count(text, "use_username_as_clientid true") != 1 {
		t.Errorf("%v\n%s", err, text)
	}
	for name, spoil := range map[string]func(*MosquittoServer){
		"line":        func(s *MosquittoServer) { s.ACL = "a\nallow_anonymous true" },
		"no port":     func(s *MosquittoServer) { s.Racks = "localhost" },
		"no password": func(s *MosquittoServer) { s.CloudPasswords = "" },
	} {
		s := good
		spoil(&s)
		if _, err := MosquittoConfig(s); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
