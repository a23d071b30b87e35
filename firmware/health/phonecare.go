package health

import "time"

// Heard tells when the phone of a slot last accepted this rack's key, before this boot: Android forgets a key after
// seven days without a connection (adb_allowed_connection_time).
func (k *Keeper) Heard(slot int, ago time.Duration) {
	k.with(slot, func(s *place, now time.Duration) {
		if !s.care.spoken {
			s.care.heard, s.care.spoken = now-ago, true
		}
	})
}

// Storage takes how much of /data is free, in bytes.
func (k *Keeper) Storage(slot int, free, size int64) {
	k.with(slot, func(s *place, _ time.Duration) {
		low := size > 0 && (free < k.o.Config.Phone.StorageBytes || free < size/100*int64(k.o.Config.Phone.StorageFree))
		s.care.note("storage", pick(low, "storage_low"), map[string]any{"slot": s.Slot, "free": free >> 20})
	})
}

// SetPhone changes the thresholds of a phone's storage, key and TCP. They count from the next reading on.
func (k *Keeper) SetPhone(p Phone) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.o.Config.Phone = p
}

// TCP takes whether adbd of the phone listens on TCP. An open port is a way in for everybody on the network
// (CVE-2026-0073, ADB.Miner): it is reported, and closed if the configuration says so.
func (k *Keeper) TCP(slot int, open bool) {
	k.with(slot, func(s *place, _ time.Duration) {
		s.care.tcp = open
		s.care.note("tcp", pick(open, "tcp_open"), map[string]any{"slot": s.Slot})
	})
}

// key notes a phone that this rack's key is about to be forgotten by, or was.
func (k *Keeper) key(s *place, now time.Duration) []Finding {
	c := &s.care
	silent := now - c.heard
	args := map[string]any{"slot": s.Slot, "silent": silent.Round(time.Hour), "lapse": k.o.Config.Phone.KeyLapse.of()}
	switch {
	case s.phone == "" || !c.spoken:
		return nil
	case silent >= k.o.Config.Phone.KeyLapse.of():
		return []Finding{finding("key_lapsed", args)}
	case silent >= k.o.Config.Phone.KeyTouch.of():
		return []Finding{finding("key_lapsing", args)}
	}
	return nil
}
