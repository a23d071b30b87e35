package fleet_test

import (
	"strings"
	"testing"

	"phonerack/cloud/fleet"
	"phonerack/sync/wire"
)

func TestAFileOfATaskIsForTheRackThatHasItsLease(t *testing.T) {
	b := newBench(t)
	r1, r2 := b.rack("r1"), b.rack("r2")
	body := strings.Repeat("0123456789abcdef", 20_000) // 320,000 bytes: two parts
	f, err := b.PutFile(t.Context(), acme, []byte(body))
	b.ok(err)
	in := wire.Input{Name: "a.txt", SHA256: f.SHA256}
	_, _, err = b.Submit(t.Context(), other, fleet.NewTask{Task: wire.Task{Goal: "g", Inputs: []wire.Input{in}}})
	b.wants(err, wire.BadRequest)
	_, _, err = b.Submit(t.Context(), acme, fleet.NewTask{Task: wire.Task{Goal: "g", Inputs: []wire.Input{in, in}}})
	b.wants(err, wire.BadRequest)
	wrong := in
	wrong.Size = 5
	_, _, err = b.Submit(t.Context(), acme, fleet.NewTask{Task: wire.Task{Goal: "g", Inputs: []wire.Input{wrong}}})
	b.wants(err, wire.BadRequest)
	b.submit(wire.Task{Inputs: []wire.Input{in}})

	_, _, err = b.FilePart(t.Context(), r1, wire.BlobGet{SHA256: f.SHA256})
	b.wants(err, wire.NotFound)
	l := b.lease(r1, "c1")
	if len(l.Task.Inputs) != 1 || l.Task.Inputs[0] != (wire.Input{Name: "a.txt", SHA256: f.SHA256, Size: int64(len(body))}) {
		t.Errorf("the lease names %+v", l.Task.Inputs)
	}
	var got []byte
	for n := 0; n < 2; n++ {
		d, part, err := b.FilePart(t.Context(), r1, wire.BlobGet{SHA256: f.SHA256, Offset: int64(len(got))})
		b.ok(err)
		if d.Size != int64(len(body)) || d.Offset != int64(len(got)) {
			t.Errorf("part %d is %+v", n, d)
		}
		got = append(got, part...)
	}
	if string(got) != body {
		t.Error("the parts are not the file")
	}
	_, _, err = b.FilePart(t.Context(), r1, wire.BlobGet{SHA256: f.SHA256, Offset: int64(len(body)) + 1})
	b.wants(err, wire.BadRequest)
	_, _, err = b.FilePart(t.Context(), r1, wire.BlobGet{SHA256: f.SHA256, Offset: 1 << 60})
	b.wants(err, wire.BadRequest)

	_, _, foreign := b.FilePart(t.Context(), r2, wire.BlobGet{SHA256: f.SHA256})
	b.wants(foreign, wire.NotFound)
	none := strings.Repeat("0", 64)
	_, _, unknown := b.FilePart(t.Context(), r2, wire.BlobGet{SHA256: none})
	if a, b := wire.From(foreign).Sentence("en"), wire.From(unknown).Sentence("en"); strings.ReplaceAll(a, f.SHA256, none) != b {
		t.Errorf("one that it may not have: %s\none that nobody has: %s", a, b)
	}
}
