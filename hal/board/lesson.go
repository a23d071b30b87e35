package board

import (
	"maps"
	"slices"
)

// Lesson finds out which port a phone was plugged into, when somebody plugs one phone after the other
// into slots. It is told again and again which ports hold a phone, and says what is new. It does no
// I/O and knows no time.
type Lesson struct {
	known map[string]int  // port path -> slot
	there map[string]bool // ports that held a phone at the last look
	old   map[string]bool // ports that have held a phone since the lesson began: nobody plugged those in
	last  string          // the port that was new at the last look: it must be there twice
	told  string          // the last Several, so that it is said once
}

// NewLesson begins with the slots that are known and the ports that hold a phone now.
func NewLesson(slots []Slot, present []string) *Lesson {
	l := &Lesson{known: map[string]int{}, there: set(present), old: set(present)}
	for _, s := range slots {
		l.known[s.Path] = s.Number
	}
	return l
}

func set(list []string) map[string]bool {
	m := map[string]bool{}
	for _, s := range list {
		m[s] = true
	}
	return m
}

// Sight is what a look has found; the zero value is nothing new.
type Sight struct {
	Found   string   // a phone is at this port, which is no slot yet
	Taken   []int    // a phone has come to these slots, which are known already
	Several []string // more than one phone is at a port that is no slot yet
}

// Look compares the ports that hold a phone now with those of before. A phone is Found once it was
// there for two looks, since many leave the bus once more when they have come.
func (l *Lesson) Look(present []string) Sight {
	now := set(present)
	var fresh []string
	var s Sight
	for _, path := range slices.Sorted(maps.Keys(now)) {
		n, known := l.known[path]
		switch {
		case known && !l.there[path]:
			s.Taken = append(s.Taken, n)
		case !known && !l.old[path]:
			fresh = append(fresh, path)
		}
	}
	for path := range l.old {
		if !now[path] {
			delete(l.old, path)
		}
	}
	last := l.last
	l.there, l.last = now, ""
	switch {
	case len(fresh) == 1:
		l.told = ""
		if l.last = fresh[0]; last == fresh[0] {
			s.Found = fresh[0]
		}
	case len(fresh) > 1:
		if text := join(fresh); text != l.told {
			l.told, s.Several = text, fresh
		}
	}
	return s
}

func join(list []string) (text string) {
	for _, s := range list {
		text += s + " "
	}
	return text
}

// Learned notes that the port is a slot now.
func (l *Lesson) Learned(path string, number int) { l.known[path] = number }

// Forget takes a slot back; the phone that is still at its port counts only when it is plugged in anew.
func (l *Lesson) Forget(path string) {
	delete(l.known, path)
	if l.there[path] {
		l.old[path] = true
	}
}
