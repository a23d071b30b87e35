package button

import "time"

// Bounds of a press, by how long the button was down.
const (
	Debounce   = 30 * time.Millisecond // a level is steady after it
	ShortUpTo  = 1500 * time.Millisecond
	LongFrom   = 3 * time.Second
	LongUpTo   = 10 * time.Second
	ResetFrom  = 20 * time.Second
	StuckAfter = 40 * time.Second
)

// Act is what a press asks for.
type Act string

// Acts.
const (
	None         Act = ""
	Identify     Act = "identify"
	Maintenance  Act = "maintenance"
	FactoryReset Act = "factory_reset"
)

// Stage is how far a press is, for the light.
type Stage int

// Stages.
const (
	Up        Stage = iota // not held, or held in a way that means nothing
	Held                   // pressed: released soon, it is Identify
	Between                // released now, nothing happens
	LongHeld               // released now, it is Maintenance
	Warning                // on the way to a factory reset; released now, nothing happens
	ResetHeld              // released now, it is FactoryReset
	Stuck                  // down for too long; nothing happens
)

// spans says which stage a press has from a time on.
var spans = []struct {
	from  time.Duration
	stage Stage
}{{0, Held}, {ShortUpTo, Between}, {LongFrom, LongHeld}, {LongUpTo, Warning}, {ResetFrom, ResetHeld}, {StuckAfter, Stuck}}

// stage gives the stage of a press that lasts for d, and when the next begins; 0 if none does.
func stage(d time.Duration) (s Stage, next time.Duration) {
	for i, span := range spans {
		if d < span.from {
			return s, span.from
		}
		s = spans[i].stage
	}
	return s, 0
}

// act is what a release after d asks for.
func act(d time.Duration) Act {
	switch s, _ := stage(d); s {
	case Held:
		return Identify
	case LongHeld:
		return Maintenance
	case ResetHeld:
		return FactoryReset
	}
	return None
}

// A Press follows one button. Times are of any clock that never goes back. The zero value expects a first Level that
// says how the button is found.
type Press struct {
	known    bool // the first level was seen
	raw      bool // the newest level
	since    time.Duration
	steady   bool // the level that counts
	down     time.Duration
	ignoring bool // was down at the start: wait for its release
}

// Level notes the level that was seen at a time; true is down.
func (p *Press) Level(down bool, at time.Duration) {
	if !p.known {
		p.known, p.raw, p.steady, p.ignoring, p.since = true, down, down, down, at
		return
	}
	if down != p.raw {
		p.raw, p.since = down, at
	}
}

// At tells what is true at a time: the stage, an act if the button was released with one, and after how long At wants
// to be asked again at the latest, 0 for not before the next Level. The act is told once.
func (p *Press) At(now time.Duration) (s Stage, a Act, again time.Duration) {
	if p.raw != p.steady {
		if wait := p.since + Debounce - now; wait > 0 {
			s, _, _ = p.held(p.since) // what may be a release stops the count
			return s, None, wait
		}
		p.steady = p.raw
		switch {
		case p.steady:
			p.down = p.since
		case p.ignoring:
			p.ignoring = false
		default:
			a = act(p.since - p.down)
		}
	}
	s, _, again = p.held(now)
	return s, a, again
}

// held is the stage of a steady level.
func (p *Press) held(now time.Duration) (Stage, Act, time.Duration) {
	if !p.steady || p.ignoring {
		if p.ignoring && now-p.since >= StuckAfter {
			return Stuck, None, 0
		}
		if p.ignoring {
			return Up, None, p.since + StuckAfter - now
		}
		return Up, None, 0
	}
	s, next := stage(now - p.down)
	if next == 0 {
		return s, None, 0
	}
	return s, None, p.down + next - now
}
