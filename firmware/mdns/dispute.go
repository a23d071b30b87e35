package mdns

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// What is done about names that other machines have, or say that they have.

const (
	deferProbe    = time.Second     // to another who probes for the name at the same time
	calmDown      = 5 * time.Second // between probes after many conflicts, RFC 6762, section 8.1
	manyConflicts = 15
	maxSuffix     = 99

	// A neighbour who means ill, or is broken, can dispute every name. Sixteen racks of one name still find theirs.
	maxDisputes  = 16
	disputesIn   = time.Hour
	longestYield = 10 // times in a row that a probe of others is given way to, until the name counts as disputed
)

// hear looks whether another machine answers for the rack's names. What one of the rack's own interfaces says is no other.
func (r *Responder) hear(l *link, m dnsmessage.Message) {
	if !r.muted.IsZero() {
		return
	}
	var own []dnsmessage.Resource
	for _, l := range r.links {
		own = append(own, r.id.records(l.Addresses)...)
	}
	for _, heard := range slices.Concat(m.Answers, m.Additionals) {
		if heard.Header.TTL == 0 || !r.id.owns(heard.Header.Name) || uint16(heard.Header.Class)&classMask != uint16(dnsmessage.ClassINET) {
			continue
		}
		if heard.Header.Type != dnsmessage.TypePTR && !slices.ContainsFunc(own, func(o dnsmessage.Resource) bool { return equal(o, heard) }) {
			r.dispute(l, time.Now())
			return
		}
	}
}

// yield gives way to another who probes for the same name at the same time, and whose records weigh more.
func (r *Responder) yield(l *link, m dnsmessage.Message) {
	if l.step > probes || !r.muted.IsZero() {
		return
	}
	for _, name := range []dnsmessage.Name{r.id.host, r.id.instance} {
		named := func(records []dnsmessage.Resource) []dnsmessage.Resource {
			return slices.DeleteFunc(slices.Clone(records), func(d dnsmessage.Resource) bool { return !same(d.Header.Name, name) })
		}
		theirs := named(m.Authorities)
		if len(theirs) > 0 && weight(theirs) > weight(named(r.id.records(l.Addresses))) {
			if l.yields++; l.yields > longestYield { // who means it has announced it by now
				l.yields = 0
				r.dispute(l, time.Now())
				return
			}
			l.begin(deferProbe)
			return
		}
	}
}

// dispute takes that another machine answers for a name of ours: one that was announced on the link is probed for once more, since only
// its owner answers that (RFC 6762, section 9); else the next one is tried. After too many nothing is announced for a time, and the first
// name is tried again then.
func (r *Responder) dispute(l *link, now time.Time) {
	r.disputes = append(slices.DeleteFunc(r.disputes, func(t time.Time) bool { return now.Sub(t) >= disputesIn }), now)
	if len(r.disputes) > maxDisputes {
		r.mute(now.Add(disputesIn))
		return
	}
	if l.step > probes {
		l.begin(rand.N(probeEvery))
		return
	}
	r.rename()
}

// mute has the rack be without a name until a time.
func (r *Responder) mute(until time.Time) {
	r.log.Warn("the rack has no name on the network for a time, because another machine disputes each", "name", r.options.Name, "for", disputesIn)
	r.muted, r.suffix, r.conflicts, r.disputes = until, 1, 0, nil
	r.take(r.options.Name)
	r.mu.Lock()
	r.is = ""
	r.mu.Unlock()
	for _, l := range r.links {
		l.begin(time.Until(until))
	}
}

// unmute has the name tried again.
func (r *Responder) unmute() {
	r.muted = time.Time{}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is = r.options.Name
}

// take has the rack be called by a name that is made of its own; one that is no name of DNS leaves it as it is called.
func (r *Responder) take(name string) {
	if err := r.call(name); err != nil {
		r.log.Error("a name on the network cannot be taken", "name", name, "err", err)
	}
}

// rename takes the next name and probes for it.
func (r *Responder) rename() {
	r.conflicts++
	if r.suffix++; r.suffix > maxSuffix {
		r.suffix = 1
	}
	name := r.options.Name
	if r.suffix > 1 {
		name = fmt.Sprintf("%s-%d", name, r.suffix)
	}
	r.take(name)
	after := rand.N(probeEvery)
	if r.conflicts > manyConflicts {
		after = calmDown
	}
	for _, l := range r.links {
		l.begin(after)
	}
}
