package phone_test

import (
	"fmt"
	"testing"

	"phonerack/agent/frame"
	"phonerack/agent/phone"
	"phonerack/usb/phonesim/android"
)

// TestSimulatedScreenshots takes one in each way on each version: all that lose
// nothing give the same picture.
func TestSimulatedScreenshots(t *testing.T) {
	for _, version := range []int{7, 9, 11, 14, 15} {
		t.Run(fmt.Sprintf("Android %d", version), func(t *testing.T) {
			simulated(t, version, nil, func(t *testing.T, s *stage) {
				var first *frame.Picture
				for _, way := range []string{"raw", "gzip", "png", "jpeg"} {
					p, err := phone.Attach(t.Context(), s.conn, phone.Options{Strategies: phone.Strategies{Screenshot: []string{way}}, Picture: frame.Options{Width: 180}})
					if err != nil {
						t.Fatal(err)
					}
					picture, err := p.Screenshot(t.Context())
					if err != nil {
						t.Fatalf("%s: %v", way, err)
					}
					if first == nil {
						first = picture
					}
					if picture.Source != size || picture.Size != size.Div(2) || picture.Black {
						t.Errorf("%s: %v of %v, black %t", way, picture.Size, picture.Source, picture.Black)
					}
					used := p.Info().Screenshot
					if used != way && (way != "jpeg" || version >= 15) {
						t.Errorf("%s was not used but %s", way, used)
					}
					if used != "jpeg" && picture.Hash != first.Hash || picture.Distance(first) > 0.01 {
						t.Errorf("%s: another picture, distance %f", way, picture.Distance(first))
					}
				}
			})
		})
	}
}

func TestReport06_SimulatedFoldable(t *testing.T) {
	simulated(t, 14, func(c *android.Config) { c.Second = true }, func(t *testing.T, s *stage) {
		for _, known := range []phone.Strategies{{}, {Screenshot: []string{"raw"}}, {Screenshot: []string{"png"}}} {
			p, err := phone.Attach(t.Context(), s.conn, phone.Options{Strategies: known})
			if err != nil {
				t.Fatal(err)
			}
			picture, err := p.Screenshot(t.Context())
			if err != nil || picture.Source != size || picture.Black {
				t.Fatalf("%v: %v", known.Screenshot, err)
			}
		}
	})
}

func TestReport21_SimulatedSecureWindow(t *testing.T) {
	simulated(t, 14, nil, func(t *testing.T, s *stage) {
		p, err := phone.Attach(t.Context(), s.conn, phone.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.device.ChangeFaults(func(f *android.Faults) { f.Black = true })
		if picture, err := p.Screenshot(t.Context()); err != nil || !picture.Black {
			t.Errorf("got %v", err)
		}
	})
}
