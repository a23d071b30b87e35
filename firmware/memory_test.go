package firmware

import (
	"testing"

	"phonerack/firmware/remembered"
)

func TestLeftoversDoNotBecomeTheBaseline(t *testing.T) {
	taken := &remembered.Baseline{}
	cut := &remembered.Dirty{Task: "a"} // between its first write and the clean-up
	for _, c := range []struct {
		record remembered.Phone
		want   bool
	}{
		{remembered.Phone{}, true},
		{remembered.Phone{Dirty: cut}, false},
		{remembered.Phone{Baseline: taken}, false},
		{remembered.Phone{Baseline: taken, Dirty: cut}, false},
	} {
		if got := mayTakeBaseline(c.record); got != c.want {
			t.Errorf("%+v: %t", c.record, got)
		}
	}
}
