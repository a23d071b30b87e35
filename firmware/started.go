package firmware

import (
	"encoding/json"
	"os"
	"strings"

	bolt "go.etcd.io/bbolt"

	"phonerack/firmware/store"
)

const startsBucket = "starts"

// Why rackd has started, as rack.started says it.
const (
	firstStart   = "first"   // of this database
	afterStop    = "stopped" // it was asked to stop before
	afterCut     = "cut"     // it was killed, has crashed, or the power was cut
	kernelBootID = "/proc/sys/kernel/random/boot_id"
)

var keyStart = []byte("start")

// start is what a process leaves for the next one.
type start struct {
	Kernel  string `json:"kernel"`  // another value for each start of the board; "" if it is not told
	Stopped bool   `json:"stopped"` // it has come to its end
}

// noteStart notes that this process runs, and says what became of the one before.
func noteStart(b *store.Bucket) (cause string, boardRestarted bool, err error) {
	var before start
	now := start{Kernel: kernelBoot()}
	cause = firstStart
	err = b.Update(func(b *bolt.Bucket) error {
		if raw := b.Get(keyStart); raw != nil && json.Unmarshal(raw, &before) == nil {
			cause = afterCut
			if before.Stopped {
				cause = afterStop
			}
			boardRestarted = before.Kernel != now.Kernel
		}
		return putStart(b, now)
	})
	return cause, boardRestarted, err
}

// noteStop notes that this process comes to its end.
func noteStop(b *store.Bucket) error {
	return b.Update(func(b *bolt.Bucket) error { return putStart(b, start{kernelBoot(), true}) })
}

func putStart(b *bolt.Bucket, s start) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return b.Put(keyStart, raw)
}

func kernelBoot() string {
	raw, err := os.ReadFile(kernelBootID)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
