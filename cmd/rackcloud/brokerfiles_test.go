package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runHere runs a command that needs no rackcloud.
func runHere(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &out)
	return out.String(), code
}

func TestServersOfNATSAreToldByNameHostAndPorts(t *testing.T) {
	for text, want := range map[string]natsServer{
		"n1=10.0.0.1":              {"n1", "10.0.0.1:4222", "10.0.0.1:8883", "10.0.0.1:6222"},
		"n2=broker.example:1:2:3":  {"n2", "broker.example:1", "broker.example:2", "broker.example:3"},
		"n3=[2001:db8::1]:1:2:3":   {"n3", "[2001:db8::1]:1", "[2001:db8::1]:2", "[2001:db8::1]:3"},
		"n4=[2001:db8::1]":         {"n4", "[2001:db8::1]:4222", "[2001:db8::1]:8883", "[2001:db8::1]:6222"},
		"n5":                       {},
		"=10.0.0.1":                {},
		"n6=":                      {},
		"n7=10.0.0.1:1":            {},
		"N 8=10.0.0.1":             {},
		"n9=10.0.0.1:1:2:3:4":      {},
		"n10=\"; x: y":             {},
		"n11=10.0.0.1:a:2:3":       {},
		"n12=10.0.0.1:1:2:3\n":     {},
		"n13=10.0.0.1:1:70000:3":   {},
		"n14=10.0.0.1:1:2:0":       {},
		"n15=2001:db8:0:0:0:0:0:1": {},
	} {
		got, _, err := parseNATSServer(text)
		if (err != nil) != (want == natsServer{}) || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// TestBrokerFilesAreClosedAndNothingIsOverwritten: they hold secrets, and a second set would shut out all replicas.
func TestBrokerFilesAreClosedAndNothingIsOverwritten(t *testing.T) {
	for name, args := range map[string][]string{
		"nats":        {"--name", "broker.example", "--server", "n1=10.0.0.1", "--server", "n2=10.0.0.2", "--server", "n3=10.0.0.3"},
		"mosquitto":   {"--name", "broker.example", "--name", "10.0.0.1"},
		"certificate": {"--name", "broker.example", "--name", "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			args := append([]string{"broker", name, "--state", filepath.Join(dir, "state"), "--out", out}, args...)
			if said, code := runHere(t, args...); code != 0 {
				t.Fatalf("%d: %s", code, said)
			}
			files, err := os.ReadDir(out)
			if err != nil || len(files) < 3 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
				}
			}
			pair, err := tls.LoadX509KeyPair(filepath.Join(out, "cert.pem"), filepath.Join(out, "key.pem"))
			if err != nil {
				t.Fatal(err)
			}
			ca, err := os.ReadFile(filepath.Join(dir, "state", "ca.pem"))
			if err != nil {
				t.Fatal(err)
			}
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(ca)
			for _, host := range []string{"broker.example", "10.0.0.1"} {
				if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
			if said, code := runHere(t, args...); code != exitRefused || !strings.Contains(said, "nothing is overwritten") {
				t.Errorf("again: %d, %s", code, said)
			}
		})
	}
}

// TestBadValuesLeaveNoBrokerFilesBehind: they would be in the way of the same command put right.
func TestBadValuesLeaveNoBrokerFilesBehind(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"nats: a name with a blank":             {[]string{"nats", "--name", "broker example", "--server", "n1=10.0.0.1"}, exitUsage},
		"nats: a host with a slash":             {[]string{"nats", "--server", "n1=10.0.0.1/8"}, exitUsage},
		"nats: a port too high":                 {[]string{"nats", "--server", "n1=10.0.0.1", "--server", "n2=10.0.0.2:1:2:70000"}, exitUsage},
		"nats: a name twice":                    {[]string{"nats", "--server", "n1=10.0.0.1", "--server", "n1=10.0.0.2"}, exitUsage},
		"nats: a store that cannot be quoted":   {[]string{"nats", "--server", "n1=10.0.0.1", "--store", "a\"b"}, exitRefused},
		"mosquitto: no name":                    {[]string{"mosquitto"}, exitUsage},
		"mosquitto: an empty name":              {[]string{"mosquitto", "--name", ""}, exitUsage},
		"mosquitto: racks without a port":       {[]string{"mosquitto", "--name", "b", "--racks", "0.0.0.0"}, exitUsage},
		"mosquitto: racks with a word for port": {[]string{"mosquitto", "--name", "b", "--racks", "0.0.0.0:mqtt"}, exitUsage},
		"mosquitto: cloud with port 0":          {[]string{"mosquitto", "--name", "b", "--cloud", "0.0.0.0:0"}, exitUsage},
		"mosquitto: a store of two lines":       {[]string{"mosquitto", "--name", "b", "--store", "a\nb"}, exitRefused},
		"certificate: a name with a line break": {[]string{"certificate", "--name", "a\nb"}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			said, code := runHere(t, append([]string{"broker", c.args[0], "--state", filepath.Join(dir, "state"), "--out", out}, c.args[1:]...)...)
			if code != c.code {
				t.Errorf("%d: %s", code, said)
			}
			if files, _ := os.ReadDir(out); len(files) > 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

// TestABrokerFileThatIsThereIsKeptAndTheOthersAreNotMade for the same reason.
func TestABrokerFileThatIsThereIsKeptAndTheOthersAreNotMade(t *testing.T) {
	out := t.TempDir()
	kept := filepath.Join(out, "acl")
	if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	said, code := runHere(t, "broker", "mosquitto", "--state", filepath.Join(t.TempDir(), "state"), "--out", out, "--name", "b")
	if code != exitRefused || !strings.Contains(said, "nothing is overwritten") {
		t.Errorf("%d: %s", code, said)
	}
	files, err := os.ReadDir(out)
	if text, _ := os.ReadFile(kept); err != nil || len(files) != 1 || string(text) != "mine" {
		t.Errorf("%v, %v: %q", files, err, text)
	}
}

func TestSecretsOfNATSAreReadStrictlyAndNotQuoted(t *testing.T) {
	const whole = "cloud = 'a'\ncallout = 'b'\nsystem = 'c'\nseed = 'd'\n"
	path := filepath.Join(t.TempDir(), "secrets.toml")
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		ok   bool
	}{
		"whole":             {whole, 0o600, true},
		"open to others":    {whole, 0o640, false},
		"one is missing":    {strings.Replace(whole, "system = 'c'", "", 1), 0o600, false},
		"a further one":     {whole + "sekret = 'x'\n", 0o600, false},
		"no TOML":           {"sekret\n", 0o600, false},
		"a word of another": {strings.Replace(whole, "'a'", "['sekret']", 1), 0o600, false},
	} {
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, test.mode); err != nil {
			t.Fatal(err)
		}
		_, err := readNATSSecrets(path)
		if (err == nil) != test.ok || err != nil && strings.Contains(err.Error(), "sekret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
