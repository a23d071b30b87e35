package phonesim

import (
	"fmt"
	"sync"
	"time"

	"phonerack/usb/phonesim/usbredir"
)

// Faults is what is wrong with a phone or its cable. The zero value is a healthy phone. Counts of bytes,
// transfers and frames start when the faults are set (New or Phone.SetFaults) and run over all connections.
type Faults struct {
	// UnplugAfterOut and UnplugAfterIn end the link, once, after so many bytes to the phone and from it; 0 is never.
	UnplugAfterOut int64
	UnplugAfterIn  int64

	// FailOut and FailIn fail bulk transfers. A stall halts the endpoint until the host clears the halt.
	// On a byte stream each of them ends the link. FailCount is how many transfers fail, 0 is all.
	FailOut   TransferError
	FailIn    TransferError
	FailCount int

	// DropOKAY leaves every WRTE from the host without its OKAY; DelayOKAY sends it late.
	DropOKAY  bool
	DelayOKAY time.Duration

	// StaleFrames is how many frames of a connection before this one (WRTE and CLSE by turns, to unknown
	// streams) lie in the endpoint when the host connects.
	StaleFrames int

	// Hang takes everything from the host and answers nothing.
	Hang bool

	// Corrupt spoils one frame to the host, after CorruptAfter good ones.
	Corrupt      Corruption
	CorruptAfter int

	// Unauthorized rejects every key; accepting the prompt changes nothing.
	Unauthorized bool

	// Latency delays whatever the phone sends, and BytesPerSecond limits it; 0 is no limit.
	Latency        time.Duration
	BytesPerSecond int64
}

// TransferError is a way for a USB transfer to fail.
type TransferError uint8

// How a transfer fails. NoError is a transfer that does not.
const (
	NoError TransferError = iota
	Stall
	IOError
	Timeout
	Babble
)

var transferErrorNames = [...]string{"none", "stall", "ioerror", "timeout", "babble"}

func (e TransferError) String() string {
	if int(e) < len(transferErrorNames) {
		return transferErrorNames[e]
	}
	return fmt.Sprintf("transfer error %d", uint8(e))
}

func (e TransferError) status() usbredir.Status {
	switch e {
	case NoError:
		return usbredir.StatusSuccess
	case Stall:
		return usbredir.StatusStall
	case Timeout:
		return usbredir.StatusTimeout
	case Babble:
		return usbredir.StatusBabble
	}
	return usbredir.StatusIOError
}

// Corruption is a way to spoil a frame.
type Corruption uint8

// How a frame is spoilt.
const (
	NoCorruption Corruption = iota
	Garbage                 // 24 bytes that are no header, in the place of the header
	WrongMagic              // a header whose magic is not its command inverted
	Oversize                // a header that states a payload of 2 GiB; the payload follows as it was
)

// faultState applies Faults and counts.
type faultState struct {
	mu      sync.Mutex // guards all below
	faults  Faults
	out, in int64 // bytes moved
	failed  [2]int
	frames  int
}

func (s *faultState) set(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.out, s.in, s.failed, s.frames = f, 0, 0, [2]int{}, 0
}

func (s *faultState) get() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// pass counts n bytes in one direction. It returns how many of them still pass, and whether the link ends then.
func (s *faultState) pass(toPhone bool, n int) (pass int, ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved, limit := &s.in, &s.faults.UnplugAfterIn
	if toPhone {
		moved, limit = &s.out, &s.faults.UnplugAfterOut
	}
	if *limit > 0 && *moved+int64(n) >= *limit {
		pass = int(*limit - *moved)
		*moved, *limit = *limit, 0
		return pass, true
	}
	*moved += int64(n)
	return n, false
}

// transfer tells how the next transfer in one direction fails.
func (s *faultState) transfer(toPhone bool) TransferError {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail, count := s.faults.FailIn, &s.failed[0]
	if toPhone {
		fail, count = s.faults.FailOut, &s.failed[1]
	}
	if fail == NoError || s.faults.FailCount > 0 && *count >= s.faults.FailCount {
		return NoError
	}
	*count++
	return fail
}

// frame returns the bytes of a message to the host as they leave the phone, or nothing if it says nothing.
func (s *faultState) frame(m message) (header, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.Hang {
		return nil, nil
	}
	s.frames++
	h := m.header
	if s.faults.Corrupt == NoCorruption || s.frames != s.faults.CorruptAfter+1 {
		return h.bytes(), m.payload
	}
	switch s.faults.Corrupt {
	case Garbage:
		header = make([]byte, headerSize)
		for i := range header {
			header[i] = byte(0xa5 + 7*i)
		}
		return header, nil
	case WrongMagic:
		h.magic ^= 0x10
	case Oversize:
		h.length = 2 << 30
	}
	return h.bytes(), m.payload
}

// pause is how long n bytes to the host take on a slow link.
func (s *faultState) pause(n int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.faults.Latency
	if rate := s.faults.BytesPerSecond; rate > 0 {
		d += time.Duration(int64(n) * int64(time.Second) / rate)
	}
	return d
}
