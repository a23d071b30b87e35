package api

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"phonerack/sync/wire"
)

// statusOf is the HTTP status of a refusal. What is wrong between cloud and provider is a gateway's fault.
func statusOf(c wire.Code) int {
	switch c {
	case wire.Unauthenticated:
		return http.StatusUnauthorized
	case wire.HostMismatch, wire.Forbidden:
		return http.StatusForbidden
	case wire.NotFound, wire.TaskUnknown, wire.PictureGone:
		return http.StatusNotFound
	case wire.NotYourTask, wire.AttemptOver, wire.RequestConflict, wire.Conflict, wire.TaskNotWaiting:
		return http.StatusConflict
	case wire.PayloadTooLarge:
		return http.StatusRequestEntityTooLarge
	case wire.LimitExceeded, wire.ProviderRateLimited:
		return http.StatusTooManyRequests
	case wire.BadRequest, wire.Expired:
		return http.StatusBadRequest
	case wire.Unsupported:
		return http.StatusNotImplemented
	case wire.NoProfile, wire.ProfileUndecryptable, wire.ProviderOverloaded, wire.ShuttingDown:
		return http.StatusServiceUnavailable
	case wire.ProviderTimeout:
		return http.StatusGatewayTimeout
	case wire.ProviderAuth, wire.ProviderBadRequest, wire.ProviderUnreachable, wire.NoToolCall, wire.MultipleToolCalls, wire.UnknownTool,
		wire.BadArguments, wire.Truncated, wire.Refused, wire.ContentFiltered:
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}

// failure is the body of every answer that is a refusal. RequestID is there for planner decisions.
type failure struct {
	RequestID string        `json:"request_id,omitempty"`
	Error     *wire.Refusal `json:"error"`
}

// refuse writes a refusal with its status, 0 for the code's own.
func refuse(w http.ResponseWriter, status int, f failure) {
	if status == 0 {
		status = statusOf(f.Error.Code)
		if f.Error.Code == wire.Internal && f.Error.Retryable {
			status = http.StatusServiceUnavailable
		}
	}
	if status == http.StatusTooManyRequests || f.Error.RetryAfterMS > 0 {
		seconds := max(1, int(math.Ceil(float64(f.Error.RetryAfterMS)/1000)))
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="phonerack"`)
	}
	writeJSON(w, status, f)
}

// writeJSON writes an answer.
func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","args":{},"retryable":false,"retry_after_ms":0}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the client is gone, or has it
}
