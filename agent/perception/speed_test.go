package perception

import (
	"encoding/xml"
	"fmt"
	"image"
	"runtime"
	"strings"
	"testing"
	"time"

	"phonerack/agent/phone"
)

// xmlDump and xmlNode are what one writes to decode a dump with encoding/xml.
type xmlDump struct {
	Rotation int       `xml:"rotation,attr"`
	Nodes    []xmlNode `xml:"node"`
}

type xmlNode struct {
	Index         int       `xml:"index,attr"`
	Text          string    `xml:"text,attr"`
	ID            string    `xml:"resource-id,attr"`
	Class         string    `xml:"class,attr"`
	Package       string    `xml:"package,attr"`
	Desc          string    `xml:"content-desc,attr"`
	Hint          string    `xml:"hint,attr"`
	Bounds        string    `xml:"bounds,attr"`
	Order         int       `xml:"drawing-order,attr"`
	Checkable     bool      `xml:"checkable,attr"`
	Checked       bool      `xml:"checked,attr"`
	Clickable     bool      `xml:"clickable,attr"`
	Enabled       bool      `xml:"enabled,attr"`
	Focusable     bool      `xml:"focusable,attr"`
	Focused       bool      `xml:"focused,attr"`
	Scrollable    bool      `xml:"scrollable,attr"`
	LongClickable bool      `xml:"long-clickable,attr"`
	Password      bool      `xml:"password,attr"`
	Selected      bool      `xml:"selected,attr"`
	Nodes         []xmlNode `xml:"node"`
}

// plain is one attribute list as Android 14 writes it.
func plain(text, id, class, desc, states string, bounds image.Rectangle, order int) string {
	on := func(state string) string {
		return fmt.Sprintf(`%s="%t" `, state, strings.Contains(states, state))
	}
	return fmt.Sprintf(`<node index="%d" text="%s" resource-id="%s" class="%s" package="com.phonerack.shop" content-desc="%s" `, order-1, text, id, class, desc) +
		on("checkable") + on("checked") + on("clickable") + `enabled="true" ` + on("focusable") + on("focused") + on("scrollable") +
		on("long-clickable") + on("password") + on("selected") +
		fmt.Sprintf(`bounds="[%d,%d][%d,%d]" drawing-order="%d" hint="" display-id="0"`, bounds.Min.X, bounds.Min.Y, bounds.Max.X, bounds.Max.Y, order)
}

// shopDump returns the dump of a shop's list of about size bytes.
func shopDump(size int) []byte {
	var b strings.Builder
	open := func(text, id, class, desc, states string, bounds image.Rectangle, order int) {
		b.WriteString(plain(text, id, class, desc, states, bounds, order) + ">")
	}
	leaf := func(text, id, class, desc, states string, bounds image.Rectangle, order int) {
		b.WriteString(plain(text, id, class, desc, states, bounds, order) + " />")
	}
	screen := image.Rect(0, 0, 1080, 2400)
	b.WriteString(`<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation="0">`)
	open("", "", "android.widget.FrameLayout", "", "", screen, 1)
	open("", "android:id/content", "android.widget.FrameLayout", "", "", screen, 1)
	leaf("Groceries &amp; more", "com.phonerack.shop:id/title", "android.widget.TextView", "", "", image.Rect(40, 80, 900, 180), 1)
	open("", "com.phonerack.shop:id/list", "androidx.recyclerview.widget.RecyclerView", "", "scrollable focusable", image.Rect(0, 200, 1080, 2300), 2)
	for i := 0; b.Len() < size-200; i++ {
		y := 200 + i*50
		open("", "com.phonerack.shop:id/row", "android.view.ViewGroup", "", "clickable focusable", image.Rect(0, y, 1080, y+50), i+1)
		leaf("", "com.phonerack.shop:id/photo", "android.widget.ImageView", fmt.Sprintf("Article %d", i), "", image.Rect(10, y, 60, y+50), 1)
		open("", "", "android.widget.LinearLayout", "", "", image.Rect(70, y, 800, y+50), 2)
		leaf(fmt.Sprintf("Article %d", i), "com.phonerack.shop:id/name", "android.widget.TextView", "", "", image.Rect(70, y, 500, y+50), 1)
		leaf(fmt.Sprintf("£%d.50", i), "com.phonerack.shop:id/price", "android.widget.TextView", "", "", image.Rect(500, y, 800, y+50), 2)
		b.WriteString("</node>")
		leaf("Add", "com.phonerack.shop:id/add", "com.google.android.material.button.MaterialButton", "", "clickable focusable", image.Rect(820, y, 1040, y+50), 3)
		b.WriteString("</node>")
	}
	b.WriteString("</node></node></node></hierarchy>")
	return []byte(b.String())
}

// read is what an observation makes of a dump.
func read(dump []byte) (*Scene, error) {
	t, err := parseDump(dump)
	if err != nil {
		return nil, err
	}
	defer t.release()
	return (reading{tree: t, state: phone.State{
		Focus: phone.Focus{Package: "com.phonerack.shop"}, Display: phone.Display{Width: 1080, Height: 2400},
	}}).scene(), nil
}

// against runs two functions by turns for about d and returns how much longer
// the first takes, and what share of its allocations the second makes. Of all
// rounds the fastest of each counts: whatever else the machine does, collecting
// the other's garbage included, disturbs that least.
func against(t testing.TB, d time.Duration, first, second func() error) (ratio, allocRatio float64) {
	const runs = 4
	fastest := [2]time.Duration{time.Hour, time.Hour}
	var allocs [2]uint64
	var before, after runtime.MemStats
	for end, rounds := time.Now().Add(d), 0; rounds < 5 || time.Now().Before(end); rounds++ {
		for i, f := range []func() error{first, second} {
			runtime.ReadMemStats(&before)
			for range runs {
				start := time.Now()
				if err := f(); err != nil {
					t.Fatal(err)
				}
				fastest[i] = min(fastest[i], time.Since(start))
			}
			runtime.ReadMemStats(&after)
			allocs[i] += after.Mallocs - before.Mallocs
		}
	}
	return float64(fastest[0]) / float64(fastest[1]), float64(allocs[1]) / float64(allocs[0])
}

// xmlAgainstScene compares decoding a dump of 112 KB into structs with
// encoding/xml to making a condensed scene of it.
func xmlAgainstScene(t testing.TB, d time.Duration) (ratio, allocRatio float64) {
	dump := shopDump(112 << 10)
	return against(t, d, func() error {
		var into xmlDump
		return xml.Unmarshal(dump, &into)
	}, func() error {
		_, err := read(dump)
		return err
	})
}

func TestSceneIsMuchFasterThanEncodingXML(t *testing.T) {
	ratio, allocRatio := xmlAgainstScene(t, 300*time.Millisecond)
	if ratio < 6 {
		t.Errorf("only %.1f times faster than encoding/xml", ratio)
	}
	if allocRatio > 0.1 {
		t.Errorf("%.3f of the allocations of encoding/xml", allocRatio)
	}
}

// BenchmarkSceneAgainstEncodingXML reports ratio, how many times faster a dump of
// 112 KB becomes a condensed scene than encoding/xml decodes it into structs,
// and alloc_ratio, its share of the allocations, both from one alternating run.
func BenchmarkSceneAgainstEncodingXML(b *testing.B) {
	for b.Loop() {
		ratio, allocRatio := xmlAgainstScene(b, time.Second)
		b.ReportMetric(ratio, "ratio")
		b.ReportMetric(allocRatio, "alloc_ratio")
	}
}

// BenchmarkScene makes condensed scenes of a dump of 112 KB.
func BenchmarkScene(b *testing.B) {
	dump := shopDump(112 << 10)
	b.SetBytes(int64(len(dump)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read(dump); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse only parses it.
func BenchmarkParse(b *testing.B) {
	dump := shopDump(112 << 10)
	b.SetBytes(int64(len(dump)))
	b.ReportAllocs()
	for b.Loop() {
		t, err := parseDump(dump)
		if err != nil {
			b.Fatal(err)
		}
		t.release()
	}
}
