package status

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"phonerack/sync/wire"
)

// policy lets a page have the rack's own files and nothing else: no script or style within a page, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxBody bounds what a form may send, in bytes.
const maxBody = 8 << 10

// guard stands before every page.
func (p *Page) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.refuse(w, r, wire.Refuse(wire.OriginForeign, nil))
	}))
	next = cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		// Not no-referrer: with it browsers send "Origin: null" with the page's own forms, and over plain HTTP, where they
		// send no Sec-Fetch-Site, nothing else would tell that a form is ours.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !p.known(r) {
			p.refuse(w, r, wire.Refuse(wire.HostForeign, map[string]any{"host": r.Host}))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// known tells whether the request's Host is a name or an address of the rack: the address that the connection came in
// by, one of Options.Hosts, or this machine for itself.
func (p *Page) known(r *http.Request) bool {
	host, ok := hostOf(r.Host)
	if !ok {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap().WithZone("")
		if local, ok := localAddr(r); ok && local == a || a.IsLoopback() {
			return true
		}
		host = a.String()
	}
	if host == "localhost" {
		return true
	}
	if p.o.Hosts != nil {
		for _, name := range p.o.Hosts() {
			if strings.EqualFold(strings.TrimSuffix(name, "."), host) {
				return true
			}
		}
	}
	return false
}

// hostOf is the host of a Host header, in lower case, without port, brackets and the dot of the root.
func hostOf(header string) (string, bool) {
	if header == "" || len(header) > 255+6 {
		return "", false
	}
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	} else if strings.HasPrefix(header, "[") != strings.HasSuffix(header, "]") {
		return "", false
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return host, host != ""
}

// localAddr is the address that a request's connection came in by.
func localAddr(r *http.Request) (netip.Addr, bool) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return netip.Addr{}, false
	}
	ap, err := netip.ParseAddrPort(local.String())
	return ap.Addr().Unmap().WithZone(""), err == nil
}

// remoteAddr is who asks; the zero address if that cannot be read.
func remoteAddr(r *http.Request) netip.Addr {
	ap, _ := netip.ParseAddrPort(r.RemoteAddr)
	return ap.Addr()
}

// codes give the HTTP status of a refusal.
var codes = map[wire.Code]int{
	wire.HostForeign: http.StatusMisdirectedRequest, wire.OriginForeign: http.StatusForbidden, wire.Forbidden: http.StatusForbidden,
	wire.PINNeeded: http.StatusUnauthorized, wire.PINWrong: http.StatusForbidden, wire.PINUnset: http.StatusForbidden,
	wire.PINWait: http.StatusTooManyRequests, wire.LimitExceeded: http.StatusTooManyRequests,
	wire.PageUnknown: http.StatusNotFound, wire.SlotUnknown: http.StatusNotFound, wire.TaskUnknown: http.StatusNotFound, wire.PictureGone: http.StatusNotFound,
	wire.BadRequest: http.StatusBadRequest, wire.PayloadTooLarge: http.StatusRequestEntityTooLarge, wire.UnknownAction: http.StatusNotFound,
	wire.Internal: http.StatusInternalServerError, wire.ShuttingDown: http.StatusServiceUnavailable, wire.PhoneTimeout: http.StatusGatewayTimeout,
}

func statusOf(r *wire.Refusal) int {
	if s, ok := codes[r.Code]; ok {
		return s
	}
	return http.StatusConflict
}
