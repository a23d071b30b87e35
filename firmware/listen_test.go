package firmware_test

import (
	"testing"

	"phonerack/firmware"
)

// TestAPageWhoseAddressIsLateIsNoCrash: the rack says which address it is.
func TestAPageWhoseAddressIsLateIsNoCrash(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.config.Page.Listen = []string{"192.0.2.77:8080"} // documentation's: no machine has it
	b.start()
	b.within("the finding", func() bool { return b.says("address_missing", "192.0.2.77:8080") })
	if b.says("service_crashing", "") {
		t.Errorf("a part crashes: %+v", b.status().Findings)
	}
	for _, part := range firmware.SourceOf(b.rack).Snapshot().Services {
		if part.Restarts != 0 {
			t.Errorf("%s has ended %d times", part.Name, part.Restarts)
		}
	}
}
