package status

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"phonerack/firmware/health"
	"phonerack/sync/link"
)

// Bounds of the drawing: a place beyond them is shown below it. And of what is said about it.
const (
	maxRows    = 40
	maxColumns = 40

	maxTroubled = 20 // said at length; the drawing has them all
)

// front is the rack as it stands.
type front struct {
	Summary  string
	Columns  []int
	Rows     []row
	Unplaced []hubRow // slots without a place, by hub
	Troubled []cell   // the first of them
	More     int      // that are not shown
	Hubs     []hubView
	Findings []said
	Buttons  []button
}

type row struct {
	Number int
	Cells  [][]cell // one for each column; more than one slot where the board file gives two the same place
}

type hubRow struct {
	Hub   string
	Cells []cell
}

type hubView struct {
	Hub
	Slots int
}

func (p *Page) front(w http.ResponseWriter, r *http.Request) error {
	snap := p.o.Source.Snapshot()
	v := p.view(r, "rack.title", snap.Rack.Name)
	v.Live = true
	v.Body = v.front(snap)
	return p.answer(w, r, http.StatusOK, "rack.html", v, snap)
}

func (v *view) front(snap Snapshot) front {
	f := front{Findings: v.sayAll(snap.Rack.Findings), Buttons: v.buttons(snap, nil)}
	count := map[health.State]int{}
	slots := map[string]int{}
	rows, columns := 0, 0
	for i := range snap.Slots {
		s := &snap.Slots[i]
		count[s.State]++
		slots[s.Hub]++
		if troubled(s) {
			f.Troubled = append(f.Troubled, v.cell(s))
		}
		if placed(s) {
			rows, columns = max(rows, s.Row), max(columns, s.Column)
		}
	}
	slices.SortStableFunc(f.Troubled, func(a, b cell) int { return cmp.Compare(urgency(a.Slot), urgency(b.Slot)) })
	if n := len(f.Troubled) - maxTroubled; n > 0 {
		f.Troubled, f.More = f.Troubled[:maxTroubled], n
	}
	for n := range columns {
		f.Columns = append(f.Columns, n+1)
	}
	for n := range rows {
		f.Rows = append(f.Rows, row{Number: n + 1, Cells: make([][]cell, columns)})
	}
	for i := range snap.Slots {
		s := &snap.Slots[i]
		if placed(s) {
			cells := f.Rows[s.Row-1].Cells
			cells[s.Column-1] = append(cells[s.Column-1], v.cell(s))
			continue
		}
		at := slices.IndexFunc(f.Unplaced, func(h hubRow) bool { return h.Hub == s.Hub })
		if at < 0 {
			at = len(f.Unplaced)
			f.Unplaced = append(f.Unplaced, hubRow{Hub: s.Hub})
		}
		f.Unplaced[at].Cells = append(f.Unplaced[at].Cells, v.cell(s))
	}
	for _, h := range snap.Hubs {
		f.Hubs = append(f.Hubs, hubView{h, slots[h.Name]})
	}
	f.Summary = v.summary(count)
	return f
}

func placed(s *Slot) bool {
	return s.Row > 0 && s.Column > 0 && s.Row <= maxRows && s.Column <= maxColumns
}

// urgency orders what somebody has to do before what the rack does by itself.
func urgency(s *Slot) int {
	return slices.Index([]health.State{health.NeedsHands, health.UnknownHow, health.Attention, health.Recovering, health.Quarantined}, s.State)
}

// summary counts the states that there are, in one line for a screen reader too.
func (v *view) summary(count map[health.State]int) string {
	text := ""
	for _, s := range health.States() {
		if n := count[s]; n > 0 {
			if text != "" {
				text += v.T("list.comma")
			}
			text += v.T("count", "n", n, "state", v.W("state", s))
		}
	}
	if text == "" {
		return v.T("rack.no_slots")
	}
	return text
}

// slotBody is the page of one slot.
type slotBody struct {
	cell
	Reasons []said // of the state, the one that it is in for first
	Buttons []button
	Events  []eventView
	Prev    int // number of the neighbours; 0 for none
	NextOne int
	NoShot  string // why no picture can be taken; "" if one can
}

const slotEvents = 20

func (p *Page) slot(w http.ResponseWriter, r *http.Request) error {
	snap, s, err := p.find(r.PathValue("slot"))
	if err != nil {
		return err
	}
	v := p.view(r, "slot.title", "")
	c := v.cell(s)
	v.Title = v.T("slot.title") + " " + c.Name
	v.Live = true
	events := p.o.Source.Events(s.Number, slotEvents)
	b := slotBody{cell: c, Reasons: v.reasons(s), Buttons: v.buttons(snap, s), Events: v.events(events)}
	i := slices.IndexFunc(snap.Slots, func(o Slot) bool { return o.Number == s.Number })
	if i > 0 {
		b.Prev = snap.Slots[i-1].Number
	}
	if i+1 < len(snap.Slots) {
		b.NextOne = snap.Slots[i+1].Number
	}
	switch {
	case s.Phone == nil || !s.Phone.Ready:
		b.NoShot = v.T("why.no_picture")
	case !v.SignedIn:
		b.NoShot = v.T("why.signed_out")
	}
	v.Body = b
	return p.answer(w, r, http.StatusOK, "slot.html", v, struct {
		Slot   *Slot   `json:"slot"`
		Events []Event `json:"events"`
	}{s, events})
}

// reasons are why a slot is in its state. Where somebody has it left alone, or something beside the diagnosis is to be looked at,
// that comes first: the diagnosis may be that the phone is well.
func (v *view) reasons(s *Slot) []said {
	switch s.State {
	case health.Attention, health.Quarantined, health.Maintenance:
		if len(s.Others) == 0 || s.Main.Code == "dark" {
			break
		}
		if s.Main.Code == string(health.Fine) {
			return v.sayAll(s.Others)
		}
		return v.sayAll(append(slices.Clone(s.Others), s.Main))
	}
	return v.sayAll(append([]health.Finding{s.Main}, s.Others...))
}

// controllerBody is the page of the controller.
type controllerBody struct {
	Findings []said
	Buttons  []button
	Services []serviceView
	Link     *link.Status
	Events   []eventView
}

type serviceView struct {
	Service
	Line string // its last line of the log
}

const rackEvents = 30

func (p *Page) controller(w http.ResponseWriter, r *http.Request) error {
	snap := p.o.Source.Snapshot()
	v := p.view(r, "controller.title", "")
	v.Live = true
	events := p.o.Source.Events(0, rackEvents)
	b := controllerBody{Findings: v.sayAll(snap.Rack.Findings), Buttons: v.buttons(snap, nil), Link: snap.Rack.Link.Link, Events: v.events(events)}
	for _, s := range snap.Services {
		sv := serviceView{Service: s}
		if v.SignedIn {
			sv.Line = cut(s.LastLog, maxLineBytes)
		}
		b.Services = append(b.Services, sv)
	}
	v.Body = b
	return p.answer(w, r, http.StatusOK, "controller.html", v, struct {
		Rack     Rack      `json:"rack"`
		Services []Service `json:"services"`
		Events   []Event   `json:"events"`
	}{snap.Rack, snap.Services, events})
}

// logBody is the page of the log.
type logBody struct {
	Lines []LogLine
	Last  uint64 // number of the last line
}

func (p *Page) log(w http.ResponseWriter, r *http.Request) error {
	v := p.view(r, "log.title", "")
	b := logBody{Lines: p.o.Source.Log(0, maxLines)}
	for i, l := range b.Lines {
		b.Lines[i].Text = cut(l.Text, maxLineBytes)
		b.Last = l.Seq
	}
	v.Live, v.Body = true, b
	return p.answer(w, r, http.StatusOK, "log.html", v, map[string]any{"lines": b.Lines})
}

const pictureTimeout = 25 * time.Second // less than the answer's
