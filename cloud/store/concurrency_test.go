package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"phonerack/cloud/store"
)

const crowd = 16

// replicas opens the same database several times.
func replicas(t *testing.T, p place, n int) (all []*store.Store) {
	for range n {
		all = append(all, p.open(t))
	}
	return all
}

func testOneWinner(t *testing.T, p place) {
	all := replicas(t, p, 4)
	ctx := t.Context()
	const tasks = 40
	for i := range crowd {
		addHost(t, all[0], fmt.Sprintf("r%d", i))
	}
	for range tasks {
		submit(t, all[0], store.NewTask{})
	}
	var mu sync.Mutex // guards won
	won := map[string]int{}
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			s, host := all[i%len(all)], fmt.Sprintf("r%d", i)
			for n, idle := 0, 0; idle < 3; n++ {
				l, found, err := s.Claim(ctx, acme, claim(host, 1, fmt.Sprint("c", n)))
				if err != nil {
					t.Error(err)
					return
				}
				if !found { // a task may have been in another's hand, whose transaction was undone
					idle++
					continue
				}
				mu.Lock()
				won[l.Task.ID]++
				mu.Unlock()
				_, err = s.SetResult(ctx, acme, store.Result{Ref: l.Attempt.Ref, Host: host, Outcome: store.Succeeded})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	equal(t, "tasks", len(won), tasks)
	for id, n := range won {
		if n != 1 {
			t.Errorf("task %s was won %d times", id, n)
		}
		state(t, all[0], id, store.Succeeded)
	}

	// One slot that claims in a crowd, as after a crash, has one lease.
	for range 3 {
		submit(t, all[0], store.NewTask{})
	}
	refs := make([]store.Ref, crowd)
	for i := range crowd {
		wg.Go(func() {
			l, found, err := all[i%len(all)].Claim(ctx, acme, claim("r0", 7, fmt.Sprint("x", i%2)))
			if err != nil || !found {
				t.Errorf("claim: %v, %v", found, err)
			}
			refs[i] = l.Attempt.Ref
		})
	}
	wg.Wait()
	if len(slices.Compact(refs)) != 1 {
		t.Errorf("one slot has %v", refs)
	}
}

func testSteps(t *testing.T, p place) {
	all := replicas(t, p, 3)
	ctx := t.Context()
	addHost(t, all[0], "r1")
	task := submit(t, all[0], store.NewTask{})
	ref := lease(t, all[0], claim("r1", 1, "a")).Attempt.Ref
	const each = 8
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			s := all[i%len(all)]
			for n := range each {
				id := fmt.Sprintf("q%d.%d", i, n)
				if n%4 == 3 { // a failure takes no step
					_, err := s.Begin(ctx, acme, plan("r1", id, ref, "o"))
					if err = errors.Join(err, s.Fail(ctx, acme, store.Failure{Host: "r1", RequestID: id, Owner: "o", Refusal: []byte(`{}`)})); err != nil {
						t.Error(err)
					}
				} else if _, err := decide(ctx, s, "r1", id, ref); err != nil {
					t.Error(err)
				}
				if _, err := s.Renew(ctx, acme, "r1", ref, leaseTime); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	list, _, err := all[0].Decisions(ctx, acme, task.ID, 0, store.Page{Limit: 1000})
	ok(t, err)
	equal(t, "decisions", len(list), crowd*each*3/4)
	for i, d := range list {
		equal(t, "step", d.Step, i)
	}
}

func testOneOwner(t *testing.T, p place) {
	all := replicas(t, p, 4)
	ctx := t.Context()
	addHost(t, all[0], "r1")
	submit(t, all[0], store.NewTask{})
	ref := lease(t, all[0], claim("r1", 1, "a")).Attempt.Ref
	for round := range 5 {
		id := fmt.Sprint("q", round)
		owners := func(want store.Standing) (n int) {
			got := make([]store.Begun, crowd)
			var wg sync.WaitGroup
			for i := range crowd {
				wg.Go(func() {
					var err error
					if got[i], err = all[i%len(all)].Begin(ctx, acme, plan("r1", id, ref, fmt.Sprint("o", i))); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for _, b := range got {
				if b.Standing == want {
					n++
				} else if b.Standing != store.InFlight {
					t.Errorf("standing is %d", b.Standing)
				}
			}
			return n
		}
		equal(t, "owners", owners(store.Fresh), 1)
		p.wait(time.Minute)
		ok(t, second(all[0].Renew(ctx, acme, "r1", ref, leaseTime)))
		equal(t, "owners after the first died", owners(store.TakenOver), 1)

		// Everybody thinks it is the owner: one is.
		var wg sync.WaitGroup
		var mu sync.Mutex // guards done
		done := 0
		for i := range crowd {
			wg.Go(func() {
				_, err := all[i%len(all)].Finish(ctx, acme, finish("r1", id, fmt.Sprint("o", i)))
				if err == nil {
					mu.Lock()
					done++
					mu.Unlock()
				} else if !errors.Is(err, store.ErrNotOwner) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		equal(t, "decisions", done, 1)
	}
}

func TestAMethodEndsWithItsContext(t *testing.T) {
	p := newPlace("sqlite:" + t.TempDir() + "/cloud.db")
	s := p.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Host(ctx, acme, "r1")
	wants(t, err, context.Canceled)
	wants(t, s.LabelHost(ctx, acme, "r1", "n", nil), context.Canceled)
}
