package led

import "time"

// Condition is something that a light can say.
type Condition int

// Conditions, the most urgent first: the first one that is true is shown.
const (
	Identify      Condition = iota // a person looks for this rack
	Fault                          // the controller itself is at fault
	Updating                       // an update is being written: leave the power on
	NeedsHands                     // a slot needs a person
	Power                          // over-current, under-voltage, or a hub is lost
	Unprovisioned                  // the rack has no identity yet
	NoCloud                        // the broker cannot be reached
	Recovering                     // recovery is at work, or maintenance is on
	Well                           // all is well
	conditions                     // their number
)

var names = [conditions]string{"identify", "fault", "updating", "needs_hands", "power", "unprovisioned", "no_cloud", "recovering", "well"}

// String is the condition's word, as on the status page.
func (c Condition) String() string {
	if c < 0 || c >= conditions {
		return "off"
	}
	return names[c]
}

// Conditions lists all of them, the most urgent first.
func Conditions() []Condition {
	all := make([]Condition, conditions)
	for i := range all {
		all[i] = Condition(i)
	}
	return all
}

// Colour is what a light of two colours shows. A light of one colour is on for each but Dark.
type Colour int

// Colours.
const (
	Dark Colour = iota
	Green
	Red
	Amber // both lamps
)

// A step is one colour for a time.
type step struct {
	colour Colour
	length time.Duration
}

// A pattern is repeated from its first step; one step without a length stays.
type pattern []step

const (
	flash   = 200 * time.Millisecond // of a counted flash, and the gap after it: 2.5 a second
	pause   = 1200 * time.Millisecond
	even    = 250 * time.Millisecond // 2 Hz
	blip    = 100 * time.Millisecond
	flicker = 240 * time.Millisecond // blip and flicker: 2.9 a second
)

// counted flashes n times, then pauses.
func counted(n int, c Colour) pattern {
	var p pattern
	for range n {
		p = append(p, step{c, flash}, step{Dark, flash})
	}
	p[len(p)-1].length = pause
	return p
}

var patterns = [conditions]pattern{
	Identify:      {{Green, even}, {Dark, even}},
	Fault:         {{Red, blip}, {Dark, flicker}},
	Updating:      {{Amber, 1500 * time.Millisecond}, {Dark, 300 * time.Millisecond}},
	NeedsHands:    counted(2, Red),
	Power:         counted(3, Red),
	Unprovisioned: {{Amber, time.Second}, {Dark, 300 * time.Millisecond}, {Amber, flash}, {Dark, 1500 * time.Millisecond}},
	NoCloud:       counted(4, Amber),
	Recovering:    {{Amber, blip}, {Dark, 2900 * time.Millisecond}},
	Well:          {{Green, 0}},
}

// alive is Well on a lamp that keeps its level when its program is gone.
var alive = pattern{{Green, 2900 * time.Millisecond}, {Dark, blip}}

// identifyTwo is Identify on a light of two colours: no other pattern alternates.
var identifyTwo = pattern{{Green, even}, {Red, even}}

// Feedback is what a light shows while the button is held.
type Feedback int

// Feedbacks.
const (
	NoFeedback   Feedback = iota
	FeedbackHeld          // the press was noticed: steady
	FeedbackLong          // release it now for maintenance: half a second on, half a second off
	FeedbackWarn          // go on holding for a factory reset, release it to leave all as it is: short flashes
	FeedbackLast          // release it now for a factory reset: on with short dips
	feedbacks             // their number
)

var feedbackPatterns = [feedbacks]pattern{
	FeedbackHeld: {{Amber, 0}},
	FeedbackLong: {{Amber, 500 * time.Millisecond}, {Dark, 500 * time.Millisecond}},
	FeedbackWarn: {{Red, blip}, {Dark, flicker}},
	FeedbackLast: {{Red, 900 * time.Millisecond}, {Dark, blip}},
}

// at gives the colour of a pattern after a time, and how long it stays; 0 for ever.
func (p pattern) at(since time.Duration) (Colour, time.Duration) {
	var whole time.Duration
	for _, s := range p {
		whole += s.length
	}
	if whole == 0 {
		return p[0].colour, 0
	}
	since %= whole
	for _, s := range p {
		if since < s.length {
			return s.colour, s.length - since
		}
		since -= s.length
	}
	return Dark, 0 // not reached: since is below the sum
}
