package status

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"phonerack/firmware/qrcode"
)

// labelsPerSheet fill an A4 sheet, three by eight, and keep a page within its size.
const labelsPerSheet = 24

// sheet is one sheet of labels.
type sheet struct {
	Labels     []label
	Address    string // what the codes begin with
	Number, Of int
	Prev, More int // sheets before and after, from 1; 0 for none
}

type label struct {
	Slot *Slot
	URL  string
	Code qrcode.Code
}

// labels is the slot map to print: number, label, port and a code that leads to the slot's page.
func (p *Page) labels(w http.ResponseWriter, r *http.Request) error {
	snap := p.o.Source.Snapshot()
	v := p.view(r, "map.title", snap.Rack.Name)
	from, page := pageOf(r, len(snap.Slots), labelsPerSheet)
	b := sheet{Address: address(r), Number: page, Of: max(1, (len(snap.Slots)+labelsPerSheet-1)/labelsPerSheet)}
	if page > 1 {
		b.Prev = page - 1
	}
	if page < b.Of {
		b.More = page + 1
	}
	for i := from; i < min(from+labelsPerSheet, len(snap.Slots)); i++ {
		l := label{Slot: &snap.Slots[i], URL: b.Address + "/slot/" + strconv.Itoa(snap.Slots[i].Number)}
		// Capitals only: then a code takes less than half of the modules, and is read from a small label.
		var err error
		if l.Code, err = codeOf(strings.ToUpper(b.Address) + "/S/" + strconv.Itoa(snap.Slots[i].Number)); err != nil {
			return err
		}
		b.Labels = append(b.Labels, l)
	}
	v.Body = b
	type where struct {
		Slot *Slot  `json:"slot"`
		URL  string `json:"url"`
	}
	places := []where{}
	for i := range snap.Slots {
		places = append(places, where{&snap.Slots[i], b.Address + "/slot/" + strconv.Itoa(snap.Slots[i].Number)})
	}
	return p.answer(w, r, http.StatusOK, "map.html", v, map[string]any{"slots": places})
}

// address is what the rack is asked for by: whoever prints the map has reached it so.
func address(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host // which is one of the rack's: see guard
}

// pageOf reads which part of a list is asked for: the index of its first, and its number from 1. What is no page is the
// first.
func pageOf(r *http.Request, length, each int) (from, page int) {
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || page < 1 || (page-1) > length/each || (page-1)*each >= length {
		page = 1
	}
	return (page - 1) * each, page
}

// drawn are the codes of the last texts: an address has always the same.
var drawn = struct {
	mu  sync.Mutex
	all map[string]qrcode.Code // guarded by mu
}{all: map[string]qrcode.Code{}}

const maxDrawn = 1000

// codeOf draws a QR code, or takes the one that was drawn before.
func codeOf(text string) (qrcode.Code, error) {
	drawn.mu.Lock()
	defer drawn.mu.Unlock()
	if c, ok := drawn.all[text]; ok {
		return c, nil
	}
	c, err := qrcode.Draw(text)
	if err != nil {
		return c, err
	}
	if len(drawn.all) >= maxDrawn {
		clear(drawn.all)
	}
	drawn.all[text] = c
	return c, nil
}
