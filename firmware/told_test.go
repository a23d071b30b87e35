package firmware_test

import (
	"strings"
	"testing"

	"phonerack/firmware/config"
)

func TestTheCloudHearsOfStartsAndPhones(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	c := b.join(config.Script)
	b.start()
	if e := c.event(t, "rack.started", 0); string(e.Detail) != `{"cause":"first","database":"created"}` || e.At == 0 {
		t.Errorf("%+v %s", e, e.Detail)
	}
	b.phones[2].plug(t)
	if e := c.event(t, "phone.ready", 0); e.Slot != 2 || e.Phone == "" || !strings.Contains(string(e.Detail), `"model"`) {
		t.Errorf("%+v %s", e, e.Detail)
	}
	b.phones[2].unplug()
	if e := c.event(t, "phone.left", 0); e.Slot != 2 || e.Phone == "" {
		t.Errorf("%+v %s", e, e.Detail)
	}
	b.stop()
	b.start()
	if e := c.event(t, "rack.started", 1); string(e.Detail) != `{"cause":"stopped","database":"opened"}` {
		t.Errorf("%+v %s", e, e.Detail)
	}
}
