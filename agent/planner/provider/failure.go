package provider

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"phonerack/sync/wire"
)

// maxRetryAfter bounds what a provider may ask for.
const maxRetryAfter = 24 * time.Hour

// failure is an exchange that gave no answer to judge.
type failure struct {
	refusal *wire.Refusal
	again   bool // sending the request again may help and can do no harm
	// wait is how long the provider asks to wait; told says that it does.
	wait time.Duration
	told bool
}

// failed tells why an exchange gave no answer; nil if it gave one. It does not
// look at deadlines: whoever calls knows them. A status that is a failure counts
// even if the body that explains it never came.
func (q *asked) failed(x *exchange) *failure {
	switch {
	case x.status == 0:
		_, untrusted := errors.AsType[*tls.CertificateVerificationError](x.err)
		return &failure{refusal: unreachable(q.quote(x.err.Error())).Because(x.err), again: !untrusted}
	case x.status < 300 && errors.Is(x.err, errTooLarge):
		return &failure{refusal: unreachable("its answer " + strings.TrimPrefix(x.err.Error(), "it "))}
	case x.status < 300 && x.err != nil: // it may have been billed, so it is not sent again
		return &failure{refusal: unreachable(fmt.Sprintf("its answer broke off after %d bytes", len(x.body))).Because(x.err)}
	case x.status < 300:
		return nil
	case x.status < 400:
		f := &failure{refusal: unreachable("it redirects to another address, which is not followed")}
		f.refusal.Retryable = false
		return f
	}
	f := q.refused(x.status, describe(x.body))
	f.wait, f.told = retryAfter(x.header, time.Now())
	switch x.header.Get("X-Should-Retry") {
	case "true":
		f.again = true
	case "false":
		f.again = false
	}
	return f
}

func unreachable(detail string) *wire.Refusal {
	return wire.Refuse(wire.ProviderUnreachable, map[string]any{"detail": detail})
}

// refused turns a provider's error into a failure: by its status, where that is
// not decided by what the error says.
func (q *asked) refused(status int, ft *fault) *failure {
	code, again := codeOf(status)
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(ft.kind, w) {
				return true
			}
		}
		return false
	}
	final := false
	switch {
	case status < 500 && says("content_filter", "content_policy"): // Azure and OpenAI refuse a prompt with 400
		code, again = wire.ContentFiltered, false
	case says("insufficient_quota", "billing"): // a 429 that no waiting ends
		again, final = false, true
	}
	detail := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, ft.kind))
	if ft.message != "" {
		detail += ": " + ft.message
	}
	r := wire.Refuse(code, map[string]any{"detail": q.quote(detail)})
	if final {
		r.Retryable = false
	}
	return &failure{refusal: r, again: again}
}

// codeOf maps a failing status, and says whether the request may be sent again.
func codeOf(status int) (wire.Code, bool) {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return wire.ProviderAuth, false
	case status == http.StatusTooManyRequests:
		return wire.ProviderRateLimited, true
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 500:
		return wire.ProviderOverloaded, true
	}
	return wire.ProviderBadRequest, false
}

// statuses are the statuses that errors stand for which come with a success, by
// a word of their type or code.
var statuses = []struct {
	word   string
	status int
}{
	{"rate_limit", 429},
	{"insufficient_quota", 429},
	{"overloaded", 529},
	{"api_error", 500},
	{"server_error", 500},
	{"timeout", 504},
	{"authentication", 401},
	{"invalid_api_key", 401},
	{"permission", 403},
	{"not_found", 404},
	{"invalid", 400},
	{"content", 400},
	{"billing", 402},
}

// disguised tells why an answer is an error though its status is a success.
// It is not sent again: bytes of an answer have come.
func (q *asked) disguised(ft *fault) *failure {
	status := ft.status
	if status == 0 {
		status = 500
		for _, s := range statuses {
			if strings.Contains(ft.kind, s.word) {
				status = s.status
				break
			}
		}
	}
	f := q.refused(status, ft)
	f.again = false
	return f
}

// retryAfter reads how long a provider asks to wait: Retry-After-Ms, or
// Retry-After in seconds or as a date. A date is counted from the answer's own
// Date, as a rack's clock may be wrong.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text, unit := h.Get("Retry-After-Ms"), time.Millisecond
	if text == "" {
		text, unit = h.Get("Retry-After"), time.Second
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		if math.IsNaN(n) || n < 0 {
			return 0, false
		}
		return time.Duration(min(n*float64(unit), float64(maxRetryAfter))), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(0, at.Sub(now)), maxRetryAfter), true
}
