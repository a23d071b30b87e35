package firmware_test

import (
	"slices"
	"testing"

	"phonerack/firmware"
	"phonerack/firmware/action"
)

// TestAPageWhoseAddressIsLateIsNoCrash: the rack says which address it is.
func TestAPageWhoseAddressIsLateIsNoCrash(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.config.Page.Listen = []string{"192.0.2.77:8080"} // documentation's: no machine has it
	b.start()
	codes := func() (all []string) {
		var st action.RackStatus
		if err := b.Call(t.Context(), "rack_status", nil, &st); err != nil {
			t.Fatal(err)
		}
		for _, f := range st.Findings {
			all = append(all, f.Code)
		}
		return all
	}
	b.within("the finding", func() bool { return slices.Contains(codes(), "address_missing") })
	if slices.Contains(codes(), "service_crashing") {
		t.Errorf("a part crashes: %v", codes())
	}
	for _, part := range firmware.SourceOf(b.rack).Snapshot().Services {
		if part.Restarts != 0 {
			t.Errorf("%s has ended %d times", part.Name, part.Restarts)
		}
	}
}
