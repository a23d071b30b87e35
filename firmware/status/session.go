package status

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	maxSessions  = 16
	sessionIdle  = 30 * time.Minute // without a request
	sessionLife  = 12 * time.Hour
	sessionToken = 32 // random bytes

	sessionCookie = "rack_session"
)

// session is one person who gave the PIN.
type session struct {
	name   string // as it was typed, bounded; names what the person does in leases and in the audit log
	opened time.Time
	used   time.Time
	ended  chan struct{} // closed when it is over: its stream of log lines ends
}

// sessions are in memory only: a restart of rackd signs everybody out.
type sessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*session // by the hash of the token; guarded by mu
}

// open begins a session and returns its token. The one that was used longest ago makes room.
func (s *sessions) open(name string) string {
	raw := make([]byte, sessionToken)
	_, _ = rand.Read(raw) // never fails
	token := base64.RawURLEncoding.EncodeToString(raw)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	for len(s.all) >= maxSessions {
		s.end(s.oldest())
	}
	s.all[sha256.Sum256([]byte(token))] = &session{name: name, opened: now, used: now, ended: make(chan struct{})}
	return token
}

// of is the session of a request, nil without one. A look counts as use.
func (s *sessions) of(r *http.Request) *session {
	c, err := r.Cookie(sessionCookie)
	if err != nil || len(c.Value) != base64.RawURLEncoding.EncodedLen(sessionToken) {
		return nil
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	found := s.all[sha256.Sum256([]byte(c.Value))]
	if found != nil {
		found.used = now
	}
	return found
}

// expire ends those whose time is over. A stream calls it: a page that only listens asks for nothing that would.
func (s *sessions) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(time.Now())
}

// close ends the session of a request, if it has one.
func (s *sessions) close(r *http.Request) {
	if c, err := r.Cookie(sessionCookie); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.end(sha256.Sum256([]byte(c.Value)))
	}
}

// sweep ends those whose time is over. s.mu is held.
func (s *sessions) sweep(now time.Time) {
	for key, one := range s.all {
		if now.Sub(one.used) >= sessionIdle || now.Sub(one.opened) >= sessionLife {
			s.end(key)
		}
	}
}

// oldest is the one that was used longest ago. s.mu is held.
func (s *sessions) oldest() (key [sha256.Size]byte) {
	var oldest *session
	for k, one := range s.all {
		if oldest == nil || one.used.Before(oldest.used) {
			key, oldest = k, one
		}
	}
	return key
}

// end takes one away. s.mu is held.
func (s *sessions) end(key [sha256.Size]byte) {
	if one := s.all[key]; one != nil {
		close(one.ended)
		delete(s.all, key)
	}
}

// setSession gives the browser a token, or takes it away with "". There is no Secure: the rack's network has no names to
// have certificates for.
func setSession(w http.ResponseWriter, r *http.Request, token string) {
	c := &http.Cookie{Name: sessionCookie, Value: token, Path: "/", MaxAge: int(sessionLife / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil}
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
