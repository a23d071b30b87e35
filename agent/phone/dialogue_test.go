package phone

import (
	"image"
	"strings"
	"testing"

	"phonerack/agent/phone/phonetest"
)

// attached attaches a phone that answers with extra first, as a handset with a
// small screenshot does otherwise.
func attached(t *testing.T, h phonetest.Handset, extra func(phonetest.Request) (phonetest.Reply, bool)) (*Phone, *phonetest.ADB) {
	t.Helper()
	a := phonetest.New(func(r phonetest.Request) phonetest.Reply {
		if extra != nil {
			if reply, ok := extra(r); ok {
				return reply
			}
		}
		if r.Command == "screencap 2>/dev/null" {
			return phonetest.Reply{Stdout: string(phonetest.RawScreenshot(image.Pt(9, 20)))}
		}
		return h.Reply(r)
	}, "shell_v2")
	p, err := Attach(t.Context(), a, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Forget()
	return p, a
}

// replies answers the commands that begin with prefix.
func replies(prefix string, all ...phonetest.Reply) func(phonetest.Request) (phonetest.Reply, bool) {
	return func(r phonetest.Request) (phonetest.Reply, bool) {
		if !strings.HasPrefix(r.Command, prefix) {
			return phonetest.Reply{}, false
		}
		reply := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		return reply, true
	}
}
