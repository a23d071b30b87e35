package wire

import "time"

// The times that rack and cloud have agreed on.
const (
	HeartbeatEvery = 15 * time.Second
	LeaseTime      = 120 * time.Second // of a lease and of each renewal, from the sending of the request
	RenewEvery     = 40 * time.Second
	FenceBefore    = 10 * time.Second // the slot's writes end so long before the lease
	LeaseGrace     = 30 * time.Second // the cloud frees the task so long after the lease
	MaxCommandLife = 7 * 24 * time.Hour
)
