package health

import "time"

// term is when something ends that outlives restarts. Its record says what was left when it was written and, if there was a clock, the
// end as wall time.
type term struct {
	ends  time.Duration // boot time
	until int64         // Unix time of the end of one of before this boot, until there is a clock; 0 if it is not known
	dated bool          // its record has its end as wall time
	noted time.Duration // boot time of its record
}

// noteAgain is how old the record of a term gets while there is no clock. A restart goes on with what the record says is left: with one
// that never changed, restarts that come faster than the end would make the term last for good.
const noteAgain = 10 * time.Minute

// recalled goes on from a record with the seconds that were left, at most the longest that it may last: the configuration may have
// changed, and the record may be damaged.
func recalled(now time.Duration, left, until int64, longest time.Duration) term {
	left = min(max(left, 0), int64(longest/time.Second))
	return term{ends: now + time.Duration(left)*time.Second, until: until, dated: until != 0}
}

// record gives what its record says, and notes that it is made: the seconds that are left, and the end as Unix time, 0 if that is not known.
func (t *term) record(now time.Duration, wall time.Time, trusted bool) (left, until int64) {
	rest := max(0, t.ends-now)
	until = t.until
	if trusted {
		until = wall.Add(rest).Unix()
	}
	t.dated, t.noted = until != 0, now
	return int64(rest / time.Second), until
}

// outdated tells whether the record says less than is known by now.
func (t *term) outdated(now time.Duration, trusted bool) bool {
	return trusted && !t.dated || !trusted && now-t.noted >= noteAgain
}

// date gives a term of before this boot its end by the clock. Never later than it was to end: the clock may have been set back, and a
// person may have ended it.
func (t *term) date(now time.Duration, wall time.Time) {
	if t.until != 0 {
		t.ends, t.until = now+max(0, min(time.Unix(t.until, 0).Sub(wall), t.ends-now)), 0
	}
}
