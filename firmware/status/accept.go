package status

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"phonerack/sync/wire"
)

// Bounds of what is read of a header.
const (
	maxHeader = 1000 // bytes
	maxRanges = 32
)

// ranges calls with each element of an Accept or Accept-Language header and its weight in thousandths, as RFC 9110
// section 12.4.2 has it. What is no weight counts as 0, so that it chooses nothing.
func ranges(header string, with func(value string, weight int)) {
	if len(header) > maxHeader {
		header = header[:maxHeader]
	}
	n := 0
	for part := range strings.SplitSeq(header, ",") {
		if n++; n > maxRanges {
			return
		}
		value, params, _ := strings.Cut(part, ";")
		weight := 1000
		for param := range strings.SplitSeq(params, ";") {
			name, v, ok := strings.Cut(strings.TrimSpace(param), "=")
			if ok && strings.EqualFold(strings.TrimSpace(name), "q") {
				weight = thousandths(strings.TrimSpace(v))
			}
		}
		with(strings.ToLower(strings.TrimSpace(value)), weight)
	}
}

// thousandths reads a weight from 0 to 1 with three places at most.
func thousandths(s string) int {
	whole, places, _ := strings.Cut(s, ".")
	if len(whole) != 1 || len(places) > 3 || strings.Trim(places, "0123456789") != "" {
		return 0
	}
	n, err := strconv.Atoi(whole + places + "000"[len(places):])
	if err != nil || n < 0 || n > 1000 {
		return 0
	}
	return n
}

// wantsJSON tells whether an Accept header prefers JSON. HTML wins a draw: browsers say */* too.
func wantsJSON(accept string) bool {
	html, json := best(accept, "text/html", "text/*"), best(accept, "application/json", "application/*")
	return json > html
}

// best is the weight of a media type: the most exact range that fits it decides (RFC 9110 section 12.5.1).
func best(accept, exact, half string) int {
	weights := map[string]int{}
	ranges(accept, func(value string, weight int) { weights[value] = max(weights[value], weight) })
	for _, name := range []string{exact, half, "*/*"} {
		if w, ok := weights[name]; ok {
			return w
		}
	}
	return 0
}

// language is the best of wire.Languages for an Accept-Language header; English if none fits.
func language(header string) string {
	chosen, weight := "en", 0
	ranges(header, func(tag string, w int) {
		base, _, _ := strings.Cut(tag, "-")
		if w > weight && spoken(base) {
			chosen, weight = base, w
		}
	})
	return chosen
}

func spoken(lang string) bool { return slices.Contains(wire.Languages(), lang) }

const langCookie = "rack_lang"

// langOf is the language of a request: what was chosen on the page, else what the browser prefers.
func langOf(r *http.Request) string {
	if c, err := r.Cookie(langCookie); err == nil && spoken(c.Value) {
		return c.Value
	}
	return language(r.Header.Get("Accept-Language"))
}
