package bustest

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"phonerack/cloud/bus"
	"phonerack/sync/wire"
)

func TestMain(m *testing.M) {
	BeReplica()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	Contract(t, Embedded)
}

func TestCluster(t *testing.T) {
	t.Parallel()
	Contract(t, Cluster)
}

func TestMosquitto(t *testing.T) {
	t.Parallel()
	Contract(t, Mosquitto)
}

// TestClusterWithTLS: the files that turn TLS on do so for racks, cloud, callout and the servers among each other.
func TestClusterWithTLS(t *testing.T) {
	t.Parallel()
	a := NewAuthority()
	b := ClusterWithTLS(t, a)
	var got Record
	c := b.Open(t, "g1", bus.Limits{})
	Serve(t, c, got.Handle, wire.KindTask)
	r := b.Connect(t, Login{Rack: "r0", TLS: a.Client("r0")})
	want := send(t, r, wire.KindTask, 1)[0]
	Eventually(t, patience, "the frame comes", func() bool { return got.Has(want) })
	if err := c.Publish(t.Context(), down("r0", wire.KindTask), []byte("x")); err != nil {
		t.Fatal(err)
	}
	r.Receive(t, 1)
	forged := a.Client("")
	forged.Certificates = NewAuthority().Client("r1").Certificates
	for what, l := range map[string]Login{
		"no certificate":                      {Rack: "r1", TLS: a.Client("")},
		"a certificate of somebody else's CA": {Rack: "r1", TLS: forged},
	} {
		if r, err := b.Dial(l); err == nil {
			r.Leave()
			t.Errorf("%s: the rack came in", what)
		}
	}
}
