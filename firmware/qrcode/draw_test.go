package qrcode

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"rsc.io/qr"
)

// TestCodesDrawTheirText: the path of a code, painted, is the code.
func TestCodesDrawTheirText(t *testing.T) {
	for _, text := range []string{"HTTP://192.168.1.20/S/12", "HTTP://RACK7.LOCAL:8080/S/999", "http://[fe80::1]/S/1", "http://192.0.2.7:8080/"} {
		c, err := Draw(text)
		if err != nil {
			t.Fatal(err)
		}
		want, err := qr.Encode(text, qr.M)
		if err != nil {
			t.Fatal(err)
		}
		got := paint(t, c)
		for y := range c.Size {
			for x := range c.Size {
				if dark := want.Black(x-quietZone, y-quietZone); got[[2]int{x, y}] != dark {
					t.Fatalf("%s: (%d,%d) is dark: %v", text, x, y, !dark)
				}
			}
		}
	}
}

// paint fills the modules that a path goes through.
func paint(t *testing.T, c Code) map[[2]int]bool {
	t.Helper()
	dark := map[[2]int]bool{}
	x, y := 0, 0
	for _, step := range regexp.MustCompile(`[Mmh][0-9 .]+`).FindAllString(c.Path, -1) {
		var a, b int
		switch step[0] {
		case 'M':
			if _, err := fmt.Sscanf(step, "M%d %d.5", &a, &b); err != nil {
				t.Fatal(step, err)
			}
			x, y = a, b
		case 'm':
			if _, err := fmt.Sscanf(step, "m%d 0", &a); err != nil {
				t.Fatal(step, err)
			}
			x += a
		case 'h':
			if _, err := fmt.Sscanf(step, "h%d", &a); err != nil {
				t.Fatal(step, err)
			}
			for range a {
				dark[[2]int{x, y}] = true
				x++
			}
		}
	}
	return dark
}

func TestATextThatNoCodeHoldsIsRefused(t *testing.T) {
	if c, err := Draw(strings.Repeat("x", 3000)); err == nil {
		t.Errorf("a code of %d modules", c.Size)
	}
}
