//go:build !linux

package link

import "time"

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Boot() time.Duration { return time.Since(started) }

var started = time.Now()
