package health

import "time"

// A Lie is what power does instead of going when it is switched off, as hal/power finds it.
type Lie string

// Lies of hubs.
const (
	Truthful  Lie = ""           // or not found out
	NoEffect  Lie = "no_effect"  // phones stay on the bus
	DataOnly  Lie = "data_only"  // phones lose the data and go on charging
	Repowers  Lie = "repowers"   // it comes back by itself
	ResetsHub Lie = "resets_hub" // the hub starts anew and powers all its ports
)

// Switchable tells what was found out about a slot's own port: one that does not cut VBUS is not used to recover or rest a phone
// (UH#319, UH#617). The board's word counts until then.
func (k *Keeper) Switchable(slot int, l Lie) {
	k.with(slot, func(s *place, _ time.Duration) { s.PortPower, s.lie, s.notCut = l == Truthful, l, false })
}

// HubSwitchable tells the same of the whole hub of a slot.
func (k *Keeper) HubSwitchable(slot int, l Lie) {
	k.with(slot, func(s *place, _ time.Duration) {
		s.hub.lie = l
		for _, other := range s.hub.slots {
			other.HubPower = l == Truthful
		}
	})
}

// portLie is the finding about a slot's port that lies; false if it is not known to.
func portLie(l Lie, slot int) (Finding, bool) {
	args := map[string]any{"slot": slot}
	switch l {
	case NoEffect:
		return finding("port_no_effect", args), true
	case DataOnly:
		return finding("port_data_only", args), true
	case Repowers:
		return finding("port_repowers", args), true
	case ResetsHub:
		return finding("port_resets_hub", args), true
	}
	return Finding{}, false
}

// hubLie is the same about a whole hub.
func hubLie(l Lie, path string) (Finding, bool) {
	args := map[string]any{"hub": path}
	switch l {
	case NoEffect:
		return finding("hub_no_effect", args), true
	case DataOnly:
		return finding("hub_data_only", args), true
	case Repowers:
		return finding("hub_repowers", args), true
	}
	return Finding{}, false
}
