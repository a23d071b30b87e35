//go:build board

package gpio

import "testing"

// TestBoardTellsWhichLineAHandleIsOf shows that this kernel has fdinfo for handles of lines.
func TestBoardTellsWhichLineAHandleIsOf(t *testing.T) {
	l := New(&Cdev{}, nil)
	chip, offset, err := l.find(Spec{Name: "HUB2_PWR"})
	if err != nil {
		t.Fatal(err)
	}
	defer chip.Close()
	h, err := chip.Request(offset, "place", Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	place, told, err := h.Place()
	if err != nil || !told || place != (Place{chip.Name(), offset}) {
		t.Errorf("%+v, told %v, %v", place, told, err)
	}
}
