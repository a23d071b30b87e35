package firmware

import (
	"slices"
	"strings"
	"testing"

	"phonerack/sync/wire"
)

func TestPagesAreReadStrictly(t *testing.T) {
	for s, want := range map[string][]pageRange{
		"":           nil,
		" ":          nil,
		"3":          {{3, 3}},
		"1-3,7":      {{1, 3}, {7, 7}},
		" 1 - 2 , 4": {{1, 2}, {4, 4}},
	} {
		if got, err := parsePages(s); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"0", "-1", "3-1", "2,2", "3,1", "a", "1-", "1--2", "999999999999999999999", "100001", strings.Repeat("1,", 9), "1;2"} {
		if got, err := parsePages(s); !wire.Is(err, wire.BadRequest) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	ranges := []pageRange{{1, 3}, {7, 7}}
	for page, want := range map[int]bool{1: true, 3: true, 4: false, 7: true, 8: false} {
		if inRanges(ranges, page) != want {
			t.Errorf("page %d", page)
		}
	}
}

// FuzzPages: ranges ascend, and nothing else than them is let through.
func FuzzPages(f *testing.F) {
	for _, s := range []string{"", "3", "1-3,7", "1-,2", "+1", "1-100000", "9,1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ranges, err := parsePages(s)
		if err != nil {
			if !wire.Is(err, wire.BadRequest) || ranges != nil {
				t.Errorf("%q: %v, %v", s, ranges, err)
			}
			return
		}
		if len(ranges) > 8 || (len(ranges) == 0) != (strings.TrimSpace(s) == "") {
			t.Errorf("%q: %v", s, ranges)
		}
		last := 0
		for _, r := range ranges {
			if r.first <= last || r.last < r.first || r.last > maxPage {
				t.Errorf("%q: %v", s, ranges)
			}
			last = r.last
		}
	})
}
