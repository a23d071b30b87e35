package mdns

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	maxQuestions = 32
	maxRecords   = 200

	// Answers that others may give too wait, so that not all speak at once (RFC 6762, section 6).
	leastDelay  = 20 * time.Millisecond
	spreadDelay = 100 * time.Millisecond
)

// receive takes a packet.
func (r *Responder) receive(p packet) {
	if !p.link.holds(p.from.Addr()) {
		return
	}
	m, err := parse(p.data)
	if err != nil {
		return
	}
	if m.Response {
		if p.from.Port() == port {
			r.hear(p.link, m)
		}
		return
	}
	r.yield(p.link, m)
	if p.link.step >= probes { // before, nothing is ours
		r.answer(p, m)
	}
}

// parse reads a message with bounds. Records of types that are none of ours are left out.
func parse(data []byte) (dnsmessage.Message, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(data)
	if err != nil {
		return dnsmessage.Message{}, err
	}
	m := dnsmessage.Message{Header: header}
	if header.OpCode != 0 || header.RCode != 0 {
		return m, fmt.Errorf("opcode %d, code %d", header.OpCode, header.RCode)
	}
	for {
		q, err := parser.Question()
		if err == dnsmessage.ErrSectionDone {
			break
		}
		if err != nil {
			return m, err
		}
		if m.Questions = append(m.Questions, q); len(m.Questions) > maxQuestions {
			return m, fmt.Errorf("more than %d questions", maxQuestions)
		}
	}
	left := maxRecords
	for _, section := range []struct {
		next func() (dnsmessage.ResourceHeader, error)
		read func() (dnsmessage.Resource, error)
		skip func() error
		into *[]dnsmessage.Resource
	}{
		{parser.AnswerHeader, parser.Answer, parser.SkipAnswer, &m.Answers},
		{parser.AuthorityHeader, parser.Authority, parser.SkipAuthority, &m.Authorities},
		{parser.AdditionalHeader, parser.Additional, parser.SkipAdditional, &m.Additionals},
	} {
		for {
			h, err := section.next()
			if err == dnsmessage.ErrSectionDone {
				break
			}
			if err != nil {
				return m, err
			}
			if left--; left < 0 {
				return m, fmt.Errorf("more than %d records", maxRecords)
			}
			switch h.Type {
			case dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypePTR, dnsmessage.TypeSRV, dnsmessage.TypeTXT:
				record, err := section.read()
				if err != nil {
					return m, err
				}
				*section.into = append(*section.into, record)
			default:
				if err := section.skip(); err != nil {
					return m, err
				}
			}
		}
	}
	return m, nil
}

// answer answers the questions of a message.
func (r *Responder) answer(p packet, m dnsmessage.Message) {
	l, own := p.link, r.id.records(p.link.Addresses)
	legacy := p.from.Port() != port
	var direct, unique []dnsmessage.Resource // to the asker; to all at once
	now := time.Now()
	for _, q := range m.Questions {
		if class := uint16(q.Class) & classMask; class != uint16(dnsmessage.ClassINET) && class != uint16(dnsmessage.ClassANY) {
			continue
		}
		for _, record := range own {
			switch {
			case !same(q.Name, record.Header.Name), q.Type != dnsmessage.TypeALL && q.Type != record.Header.Type:
			case known(m.Answers, record):
			case legacy, q.Class&flush != 0:
				direct = append(direct, record)
			case r.id.owns(record.Header.Name):
				unique = append(unique, record)
			default:
				data, _ := rdata(record.Body)
				l.owed[record.Header.Name.String()+data] = record
				if l.owedAt.IsZero() {
					l.owedAt = now.Add(leastDelay + rand.N(spreadDelay))
				}
			}
		}
	}
	if (len(direct) > 0 || len(unique) > 0) && !l.budget.Allow() {
		return
	}
	r.multicast(l, unique, now)
	if len(direct) > 0 {
		r.reply(p, m, direct, own, legacy)
	}
}

// known tells whether the asker has the record already, for at least half of its life.
func known(answers []dnsmessage.Resource, record dnsmessage.Resource) bool {
	return slices.ContainsFunc(answers, func(a dnsmessage.Resource) bool { return equal(a, record) && a.Header.TTL >= record.Header.TTL/2 })
}

// reply sends records to the asker alone, with what it will ask for next.
func (r *Responder) reply(p packet, m dnsmessage.Message, direct, own []dnsmessage.Resource, legacy bool) {
	out := dnsmessage.Message{Header: response, Answers: direct}
	for _, record := range own {
		if r.id.owns(record.Header.Name) && !slices.ContainsFunc(direct, func(d dnsmessage.Resource) bool { return equal(d, record) }) {
			out.Additionals = append(out.Additionals, record)
		}
	}
	if legacy { // a plain resolver wants its question and id back, and knows no flush bit
		out.ID, out.Questions = m.ID, m.Questions
		for _, records := range [][]dnsmessage.Resource{out.Answers, out.Additionals} {
			for i := range records {
				records[i].Header.Class &= classMask
				records[i].Header.TTL = min(records[i].Header.TTL, legacyTTL)
			}
		}
	}
	to := p.from
	if !to.IsValid() {
		to = netip.AddrPort{}
	}
	r.send(p.link, out, to)
}
