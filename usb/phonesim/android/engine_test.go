package android_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"
	"time"

	"phonerack/usb/phonesim"
	"phonerack/usb/phonesim/android"
	"phonerack/usb/phonesim/screen"
)

var _ phonesim.System = (*android.Device)(nil)

// node is a node of a dump.
type node struct {
	Text    string `xml:"text,attr"`
	ID      string `xml:"resource-id,attr"`
	Class   string `xml:"class,attr"`
	Package string `xml:"package,attr"`
	Bounds  string `xml:"bounds,attr"`
	Nodes   []node `xml:"node"`
}

func (n *node) find(ok func(*node) bool) *node {
	if ok(n) {
		return n
	}
	for i := range n.Nodes {
		if f := n.Nodes[i].find(ok); f != nil {
			return f
		}
	}
	return nil
}

func (n *node) center(t *testing.T) (x, y int) {
	t.Helper()
	var r image.Rectangle
	if _, err := fmt.Sscanf(n.Bounds, "[%d,%d][%d,%d]", &r.Min.X, &r.Min.Y, &r.Max.X, &r.Max.Y); err != nil {
		t.Fatalf("bounds %q: %v", n.Bounds, err)
	}
	return (r.Min.X + r.Max.X) / 2, (r.Min.Y + r.Max.Y) / 2
}

// A host that knows nothing but command lines uses the shop on the real engine.
func TestShopByCommands(t *testing.T) {
	engine, err := screen.New(screen.Config{Width: 540, Height: 1200, Density: 210})
	if err != nil {
		t.Fatal(err)
	}
	d, err := android.New(android.Config{Screen: engine})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	sh := func(cmd string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		if status := d.Run(ctx, cmd, nil, &out, &errOut); status != 0 || errOut.Len() > 0 {
			t.Fatalf("%s: status %d, %s", cmd, status, &errOut)
		}
		return out.String()
	}
	dump := func() *node {
		t.Helper()
		text := sh("uiautomator dump /data/local/tmp/d.xml >/dev/null && cat /data/local/tmp/d.xml")
		var root node
		if err := xml.Unmarshal([]byte(text), &root); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return &root
	}

	component := strings.Split(strings.TrimSpace(sh("cmd package resolve-activity --brief com.phonerack.shop")), "\n")[1]
	if out := sh("am start -W -n " + component); !strings.Contains(out, "Status: ok\n") {
		t.Fatalf("am start: %s", out)
	}
	if out := sh("dumpsys window displays | grep mCurrentFocus"); !strings.Contains(out, "com.phonerack.shop") {
		t.Fatalf("focus: %s", out)
	}
	field := dump().find(func(n *node) bool { return strings.HasSuffix(n.Class, "EditText") })
	if field == nil {
		t.Fatal("the shop has no field")
	}
	x, y := field.center(t)
	sh(fmt.Sprintf("input tap %d %d", x, y))
	if out := sh("dumpsys input_method | grep -c mInputShown=true"); out != "1\n" {
		t.Errorf("the keyboard is not shown")
	}
	sh("input text 'kett%sle'")
	field = dump().find(func(n *node) bool { return n.ID == field.ID && strings.HasSuffix(n.Class, "EditText") })
	if field == nil || field.Text != "kett le" {
		t.Errorf("the field after typing: %+v", field)
	}

	img, err := png.Decode(strings.NewReader(sh("screencap -p")))
	if err != nil || img.Bounds() != image.Rect(0, 0, 540, 1200) {
		t.Errorf("screencap -p: %v", err)
	}
	raw := sh("screencap")
	if w := binary.LittleEndian.Uint32([]byte(raw)); w != 540 || len(raw) != 16+540*1200*4 {
		t.Errorf("screencap: %d wide, %d bytes", w, len(raw))
	}
	sh("wm size 360x800; wm density 140")
	if out := sh("wm size"); out != "Physical size: 540x1200\nOverride size: 360x800\n" {
		t.Errorf("wm size: %q", out)
	}
	if got := len(sh("screencap")); got != 16+360*800*4 {
		t.Errorf("overridden: %d bytes", got)
	}
	sh("wm size reset; wm density reset; settings put system user_rotation 1")
	if out := sh("dumpsys window displays | grep mCurrentRotation"); !strings.Contains(out, "ROTATION_90") {
		t.Errorf("rotation: %s", out)
	}
	sh("settings put system user_rotation 0; am force-stop com.phonerack.shop; input keyevent HOME")
	if out := sh("sleep 0.5; dumpsys window displays | grep mCurrentFocus"); strings.Contains(out, "com.phonerack.shop") {
		t.Errorf("focus after force-stop: %s", out)
	}
}
