package firmware

import (
	"context"
	"encoding/json"
	"time"

	"phonerack/agent/phone"
	"phonerack/firmware/remembered"
)

const (
	batteryInterval = 10 * time.Minute
	batteryTimeout  = 10 * time.Second
	listTimeout     = 20 * time.Second
)

// knownWays are the ways that worked on this phone before. A phone on a byte stream tells its serial number later.
func (s *slot) knownWays(serial string) phone.Strategies {
	var ways phone.Strategies
	if serial == "" {
		return ways
	}
	record := s.book.Lookup(s.number, serial)
	if record.Strategies != nil && json.Unmarshal(record.Strategies, &ways) != nil {
		return phone.Strategies{}
	}
	return ways
}

// meet opens the record of a phone that is ready to be used. A phone without a record can be used all the same.
func (s *slot) meet(ctx context.Context, l *live) {
	info := l.phone.Info()
	entry, err := s.book.Attach(s.number, l.serial, info.Model)
	if err != nil {
		s.log.Error("nothing is remembered of this phone", "phone", l.serial, "err", err)
		return
	}
	l.entry = entry
	baseline := s.baseline(ctx, l)
	err = entry.Update(func(r *remembered.Phone) {
		r.Android, r.KeyUsed = info.Release, r.LastSeen
		r.Strategies = encodeWays(l.phone.Strategies())
		if key := l.conn.Key(); key != nil {
			r.KnowsKey(key.Fingerprint())
		}
		if baseline != nil {
			r.Baseline = baseline
		}
	})
	if err != nil {
		s.log.Error("what was learnt of the phone could not be written down", "phone", l.serial, "err", err)
		return
	}
	s.provedKey(l)
}

func encodeWays(ways phone.Strategies) json.RawMessage {
	raw, err := json.Marshal(ways)
	if err != nil {
		return nil // strings and numbers alone: it does not happen
	}
	return raw
}

// mayTakeBaseline tells whether a phone's apps may become its baseline: only while there is none, and after no task that was
// cut, which may have left apps.
func mayTakeBaseline(record remembered.Phone) bool {
	return record.Baseline == nil && record.Dirty == nil
}

// baseline lists the apps of a phone whose baseline is to be taken.
func (s *slot) baseline(ctx context.Context, l *live) *remembered.Baseline {
	if !mayTakeBaseline(l.entry.Record()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	packages, err := l.phone.Packages(ctx)
	if err != nil {
		s.log.Warn("the phone's apps could not be listed; what tasks install is not removed", "phone", l.serial, "err", err)
		return nil
	}
	return &remembered.Baseline{Packages: packages, At: time.Now().UTC()}
}

// part ends the record of a phone that goes.
func (s *slot) part(l *live) {
	if l.entry == nil {
		return
	}
	ways := encodeWays(l.phone.Strategies())
	l.entry.Note(func(r *remembered.Phone) { r.Strategies = ways })
	if err := l.entry.Detach(); err != nil {
		s.log.Error("what was learnt of the phone could not be written down", "phone", l.serial, "err", err)
	}
}

// readBattery adds to the battery's history now and then.
func (s *slot) readBattery(ctx context.Context, l *live) {
	if l.entry == nil {
		return
	}
	now := time.Now()
	if history := l.entry.Record().Battery; len(history) > 0 {
		if since := now.Sub(history[len(history)-1].At); since >= 0 && since < batteryInterval {
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, batteryTimeout)
	defer cancel()
	b, err := l.phone.Battery(ctx)
	if err != nil {
		s.log.Debug("the battery could not be read", "phone", l.serial, "err", err)
		return
	}
	l.entry.Note(func(r *remembered.Phone) {
		r.AddReading(remembered.Reading{
			At: now.UTC(), Level: b.Level, Tenths: b.Temperature, Status: b.Status, Faked: b.Faked, Suspect: len(b.Implausible) > 0,
		})
	})
}
