package store_test

import (
	"fmt"
	"testing"
	"time"

	"phonerack/cloud/store"
)

func testEvents(t *testing.T, p place) {
	s := p.open(t)
	addHost(t, s, "r1")
	event := store.NewEvent{Host: "r1", ID: "e0", Kind: "hub", Slot: 3, At: time.UnixMilli(5).UTC(), Dropped: 2}
	for range 2 { // a repeated one is the same event
		ok(t, s.AddEvent(t.Context(), acme, event))
	}
	list, _, err := s.Events(t.Context(), acme, "r1", store.Page{})
	ok(t, err)
	if len(list) != 1 || list[0].Kind != "hub" || list[0].Slot != 3 || !list[0].At.Equal(event.At) || list[0].Dropped != 2 {
		t.Fatalf("got %+v", list)
	}
	for i := range 1005 {
		event.ID = fmt.Sprintf("e%d", i+1)
		ok(t, s.AddEvent(t.Context(), acme, event))
	}
	n, after := 0, ""
	for {
		list, next, err := s.Events(t.Context(), acme, "", store.Page{Limit: 400, After: after})
		ok(t, err)
		if n == 0 && list[0].ID != "e1005" {
			t.Errorf("the newest is %s", list[0].ID)
		}
		n += len(list)
		if after = next; next == "" {
			break
		}
	}
	if n != 1000 {
		t.Errorf("%d events are kept", n)
	}
}

func testSessions(t *testing.T, p place) {
	s := p.open(t)
	addHost(t, s, "r1")
	_, err := s.Session(t.Context(), acme, "r1")
	wants(t, err, store.ErrNotFound)
	old := store.Hello{Host: "r1", Generation: 1, Session: 1}
	_, err = s.Hello(t.Context(), acme, old)
	ok(t, err)
	ok(t, s.SetSession(t.Context(), acme, old, "n1"))
	newer := store.Hello{Host: "r1", Generation: 1, Session: 2}
	_, err = s.Hello(t.Context(), acme, newer)
	ok(t, err)
	ok(t, s.SetSession(t.Context(), acme, newer, "n2"))
	wants(t, s.SetSession(t.Context(), acme, old, "n1"), store.ErrConflict) // the slower of two hellos
	nonce, err := s.Session(t.Context(), acme, "r1")
	ok(t, err)
	if nonce != "n2" {
		t.Errorf("the nonce is %s", nonce)
	}
}
