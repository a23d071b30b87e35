package firmware

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"phonerack/firmware/health"
	"phonerack/hal/board"
	"phonerack/hal/power"
	"phonerack/usb/bus"
)

const (
	kernelLog   = "/dev/kmsg"
	portAnswer  = 200 * time.Millisecond // that a hub has to answer what is at a port
	portsAnswer = time.Second            // that all hubs have together in a round
)

// ports tells what is at ports where no phone with ADB has come. What the kernel could not talk to, or had no room for, is not
// in sysfs: only the kernel's log knows of it. Of care.Serve alone.
type ports struct {
	sysfs     string
	records   bus.Records                    // nil when the log cannot be read
	own       bool                           // the log is opened here, and closed
	twins     map[string]string              // port path on the SuperSpeed half of a hub, by port path
	connected func(path string) power.Answer // asks a hub, and may take long
	log       *slog.Logger

	troubles bus.Troubles
	dark     map[string]bool              // outlets that were off, or were being switched, at the last round
	asked    map[string]chan power.Answer // ports whose hub has not answered yet
	waited   time.Duration                // for hubs, in this round
}

func (r *Rack) newPorts(records bus.Records) *ports {
	p := &ports{sysfs: r.config.USB.Sysfs, records: records, twins: map[string]string{}, log: r.log, dark: map[string]bool{}}
	b := r.config.Board
	p.own = records == nil && b != nil
	hub := &power.USB{Sysfs: p.sysfs}
	p.connected = func(path string) power.Answer {
		ctx, cancel := context.WithTimeout(context.Background(), portAnswer)
		defer cancel()
		top, port := upstream(path)
		return hub.Connected(ctx, top, port)
	}
	if b == nil {
		return p
	}
	for _, s := range b.Slots {
		if h, ok := b.Hub(s.Hub); ok && h.Companion != "" && board.Behind(s.Path, h.Path) {
			p.twins[s.Path] = h.Companion + strings.TrimPrefix(s.Path, h.Path)
		}
	}
	return p
}

// plugged asks a hub what is at a port, and waits for a short time. The kernel keeps the hub to itself while it tries a phone that
// does not answer, a minute and more, and a request waits for that whatever its own bound: then the answer is not known, nobody
// else asks, and all other slots are looked after meanwhile. What comes late is of then, and not taken.
func (p *ports) plugged(path string) power.Answer {
	if before := p.asked[path]; before != nil {
		select {
		case <-before:
			delete(p.asked, path)
		default:
			return power.Unknown
		}
	}
	if p.waited >= portsAnswer {
		return power.Unknown
	}
	answer := make(chan power.Answer, 1)
	go func() { answer <- p.connected(path) }()
	began := time.Now()
	patience := time.NewTimer(portAnswer)
	defer patience.Stop()
	defer func() { p.waited += time.Since(began) }()
	select {
	case a := <-answer:
		return a
	case <-patience.C:
		if p.asked == nil {
			p.asked = map[string]chan power.Answer{}
		}
		p.asked[path] = answer
		return power.Unknown
	}
}

// upstream gives the hub and the port that a port path ends in; "usb1" is the root hub of the first bus.
func upstream(path string) (hub string, port int) {
	at := strings.LastIndexAny(path, ".-")
	if at < 0 {
		return "", 0
	}
	port, _ = strconv.Atoi(path[at+1:])
	if path[at] == '-' {
		return "usb" + path[:at], port
	}
	return path[:at], port
}

// open opens the kernel's log, if nobody gave one. Without it a phone that the kernel gave up is taken for gone, which is said once.
func (p *ports) open() (done func()) {
	if !p.own {
		return func() {}
	}
	records, err := bus.OpenKernelLog(kernelLog)
	if err != nil {
		p.blind(err)
		return func() {}
	}
	p.records = records
	return func() {
		p.records = nil
		records.Close()
	}
}

func (p *ports) blind(err error) {
	p.records, p.own = nil, false
	p.log.Warn("the kernel's log cannot be read: phones that it could not talk to, or had no room for, look as if they were gone", "err", err)
}

// round takes what the kernel has said since. What it said before a port lost its power counts no more.
func (p *ports) round(outlets []power.State, paths func(slot int) string) {
	p.waited = 0
	if p.records == nil {
		return
	}
	if err := p.troubles.Read(p.records); err != nil {
		p.blind(err)
	}
	for _, o := range outlets {
		dark := !o.Wanted || o.Busy != ""
		if dark && !p.dark[o.Name] {
			for _, slot := range o.Slots {
				p.forget(paths(slot))
			}
		}
		p.dark[o.Name] = dark
	}
}

func (p *ports) forget(path string) {
	p.troubles.Forget(path)
	if twin := p.twins[path]; twin != "" {
		p.troubles.Forget(twin)
	}
}

// at is the trouble of a port of which sysfs shows something, or nothing.
func (p *ports) at(path string, holds bus.Holding) bus.Trouble {
	twin := p.twins[path]
	trouble := max(p.troubles.At(path), p.troubles.At(twin))
	if trouble == bus.NoTrouble || holds != bus.Nothing {
		return trouble
	}
	if p.plugged(path) == power.No && (twin == "" || p.plugged(twin) == power.No) {
		p.forget(path) // it was pulled out, of which the kernel says nothing
		return bus.NoTrouble
	}
	return trouble
}

// look is what a port without a phone with ADB shows; false for nothing yet.
func (p *ports) look(path string) (health.Look, bool) {
	holds := bus.Holds(p.sysfs, path)
	if holds == bus.Nothing || holds == bus.Other {
		switch trouble := p.at(path, holds); {
		case trouble == bus.Full: // without interfaces, if it is there at all
			return health.Look{Bus: health.BusFull}, true
		case trouble == bus.Unreadable && holds == bus.Nothing:
			return health.Look{Bus: health.BusFailed}, true
		}
	}
	return portLook(holds)
}

// full is the finding about controllers that have no room; nil for none.
func (p *ports) full() []health.Finding {
	paths, most := p.troubles.Full()
	paths = slices.DeleteFunc(paths, func(path string) bool {
		if bus.Holds(p.sysfs, path) != bus.Nothing || p.plugged(path) != power.No {
			return false
		}
		p.troubles.Forget(path)
		return true
	})
	if len(paths) == 0 {
		return nil
	}
	slices.SortFunc(paths, bus.ComparePaths)
	return []health.Finding{health.Crowded(paths, most)}
}
