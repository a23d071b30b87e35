// Package remembered says what a rack remembers of a phone. Package phonebook keeps it.
package remembered

import (
	"encoding/json"
	"slices"
	"time"
)

// maxReadings is two days at a reading in ten minutes.
const maxReadings = 288

// Phone is what is remembered of one phone.
type Phone struct {
	Serial    string    `json:"serial,omitempty"` // "" if it does not tell this phone from others
	Slot      int       `json:"slot"`             // where it sat last
	Model     string    `json:"model,omitempty"`
	Android   string    `json:"android,omitempty"` // release, such as "14"
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`

	// KeyUsed is when the phone last took the rack's ADB key. Android forgets a key that was not used for seven days.
	KeyUsed time.Time `json:"key_used,omitzero"`
	// Keys are the fingerprints of keys of the rack that the phone has proved to know, the last one last.
	Keys []string `json:"keys,omitempty"`

	// Strategies are the ways that worked on this phone, in the form of the phone package.
	Strategies json.RawMessage `json:"strategies,omitempty"`

	// Baseline are the apps that the phone came with: what a task installs beyond them goes away after it.
	Baseline *Baseline `json:"baseline,omitempty"`

	// Dirty is set before a task's first write and cleared when the phone was put in order after it.
	Dirty *Dirty `json:"dirty,omitempty"`

	// Helpers says that a person had the helper apps installed.
	Helpers bool `json:"helpers,omitempty"`

	Battery []Reading `json:"battery,omitempty"` // the oldest first
}

// Baseline is a list of apps with the time of its making.
type Baseline struct {
	Packages []string  `json:"packages"`
	At       time.Time `json:"at"`
}

// Dirty names the task that left the phone as it is.
type Dirty struct {
	Task  string    `json:"task"`
	Since time.Time `json:"since"`
}

// Reading is the battery at one time.
type Reading struct {
	At      time.Time `json:"at"`
	Level   int       `json:"level"`             // percent
	Tenths  int       `json:"tenths"`            // of a degree Celsius
	Status  string    `json:"status,omitempty"`  // charging, discharging...
	Faked   bool      `json:"faked,omitempty"`   // the phone was told to report these values
	Suspect bool      `json:"suspect,omitempty"` // outside of what a battery can be
}

// maxKeys is what a phone is remembered to know: the key, the next one, and what was before.
const maxKeys = 4

// KnowsKey notes that the phone has proved to know a key.
func (p *Phone) KnowsKey(fingerprint string) {
	p.Keys = slices.DeleteFunc(slices.Clone(p.Keys), func(k string) bool { return k == fingerprint })
	p.Keys = append(p.Keys, fingerprint)
	p.Keys = p.Keys[max(0, len(p.Keys)-maxKeys):]
}

// AddReading appends a reading and forgets the oldest ones.
func (p *Phone) AddReading(reading Reading) {
	p.Battery = append(p.Battery, reading)
	if extra := len(p.Battery) - maxReadings; extra > 0 {
		p.Battery = slices.Delete(p.Battery, 0, extra)
	}
}

// Clone returns a copy that shares nothing that is changed in place.
func (p Phone) Clone() Phone {
	p.Strategies = slices.Clone(p.Strategies)
	p.Battery = slices.Clone(p.Battery)
	p.Keys = slices.Clone(p.Keys)
	if p.Baseline != nil {
		b := *p.Baseline
		b.Packages = slices.Clone(b.Packages)
		p.Baseline = &b
	}
	if p.Dirty != nil {
		d := *p.Dirty
		p.Dirty = &d
	}
	return p
}
