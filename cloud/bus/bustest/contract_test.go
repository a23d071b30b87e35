package bustest

import (
	"os"
	"testing"

	"go.uber.org/goleak"
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
