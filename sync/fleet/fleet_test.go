package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestATaskIsClaimedRunAndReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, t.TempDir())
		w.cloud.submit("t1", false)
		p := w.start(0)
		defer p.end()
		w.settle(time.Minute)
		if s := w.cloud.state("t1"); s != "succeeded" {
			t.Fatal(s)
		}
	})
}
