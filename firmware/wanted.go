package firmware

import (
	"time"

	"phonerack/firmware/health"
)

// closed tells why a slot may be given no new task of the cloud; "" if it may.
func (c *care) closed(slot int) health.State {
	if c == nil {
		return "" // rackd is being put together
	}
	st, ok := c.keeper.Status(slot)
	if !ok {
		return ""
	}
	switch st.State {
	case health.Quarantined, health.Resting, health.Maintenance:
		return st.State
	case health.Well, health.Attention:
		if st.Paused { // too hot
			return health.Resting
		}
	}
	return ""
}

// wantedFor is how long a phone that somebody has asked for keeps its power without being used.
const wantedFor = 10 * time.Minute

// wanted notes that somebody asks for a phone whose power rests.
func (c *care) wanted(slot int) {
	if st, ok := c.keeper.Status(slot); !ok || st.State != health.Resting {
		return
	}
	c.mu.Lock()
	c.awaited[slot] = c.rack.clock()
	c.mu.Unlock()
	c.keeper.Wanted(slot, true)
}

// unwanted lets a phone rest again that nobody has used for a while.
func (c *care) unwanted(slot int, leased bool) {
	c.mu.Lock()
	since, is := c.awaited[slot]
	now := c.rack.clock()
	over := is && !leased && now-since > wantedFor
	switch {
	case over:
		delete(c.awaited, slot)
	case is && leased:
		c.awaited[slot] = now
	}
	c.mu.Unlock()
	if over {
		c.keeper.Wanted(slot, false)
	}
}
