package status

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Bounds of passes.
const (
	maxPasses = 64
	maxSecret = 64                  // bytes
	shownPass = time.Hour           // life of one that a phone's screen shows
	passLife  = 90 * 24 * time.Hour // of one of a browser that was let in, from then on

	passCookie = "rack_pass"
	passPath   = "/P/"
)

// passes are secrets that give their holder tries of the PIN of their own, which nobody else can use up: a browser that was let
// in once has one, and the QR code on a phone of the rack has one for who stands there. A pass lets nobody in. They are in memory
// only. What they are for is what OWASP calls device cookies.
type passes struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*pass // by the hash of the secret; guarded by mu
}

// pass is one of them.
type pass struct {
	own bool // of one browser that was let in

	used time.Time // guarded by passes.mu, as is ends
	ends time.Time

	wrong wrongGuesses // guarded by gate.mu
}

// issue makes a pass and returns its secret. The one that was used longest ago makes room.
func (s *passes) issue(now time.Time, life time.Duration, own bool) string {
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	for len(s.all) >= maxPasses {
		var oldest [sha256.Size]byte
		for key, one := range s.all {
			if o := s.all[oldest]; o == nil || one.used.Before(o.used) {
				oldest = key
			}
		}
		delete(s.all, oldest)
	}
	s.all[sha256.Sum256([]byte(secret))] = &pass{own: own, used: now, ends: now.Add(life)}
	return secret
}

// of finds a pass by its secret, nil if there is none, and has it end no sooner than after so long.
func (s *passes) of(now time.Time, secret string, life time.Duration) *pass {
	if len(secret) > maxSecret {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	found := s.all[sha256.Sum256([]byte(secret))]
	if found != nil {
		found.used = now
		if end := now.Add(life); end.After(found.ends) {
			found.ends = end
		}
	}
	return found
}

// forget takes away the one of a request.
func (s *passes) forget(r *http.Request) {
	if c, err := r.Cookie(passCookie); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, sha256.Sum256([]byte(c.Value)))
	}
}

// sweep forgets those whose time is over. s.mu is held.
func (s *passes) sweep(now time.Time) {
	for key, one := range s.all {
		if !now.Before(one.ends) {
			delete(s.all, key)
		}
	}
}

// Pass gives what a QR code on a phone's screen adds to the page's address, such as "/P/" and 26 letters and digits: who comes by it has
// tries of the PIN of their own for an hour. With old, an answer of Pass, that one lasts anew if it is still good. "" without a PIN.
func (p *Page) Pass(old string) string {
	if p.o.PIN == "" {
		return ""
	}
	now := time.Now()
	if p.passes.of(now, strings.TrimPrefix(old, passPath), shownPass) != nil {
		return old
	}
	return passPath + p.passes.issue(now, shownPass, false)
}

// enter takes a pass that a QR code had. One that is not good any more leads to the page as well.
func (p *Page) enter(w http.ResponseWriter, r *http.Request) error {
	secret := r.PathValue("pass")
	if p.passes.of(time.Now(), secret, 0) != nil {
		p.setPass(w, r, secret)
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

// passOf is the pass of a request's browser, nil without one.
func (p *Page) passOf(r *http.Request) *pass {
	c, err := r.Cookie(passCookie)
	if err != nil {
		return nil
	}
	return p.passes.of(time.Now(), c.Value, 0)
}

// letIn gives a browser that has given the PIN a pass of its own for the next time; one that a screen has shown is everybody's who saw it.
func (p *Page) letIn(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if one := p.passOf(r); one != nil && one.own {
		p.passes.forget(r)
	}
	p.setPass(w, r, p.passes.issue(now, passLife, true))
}

func (p *Page) setPass(w http.ResponseWriter, r *http.Request, secret string) {
	http.SetCookie(w, &http.Cookie{
		Name: passCookie, Value: secret, Path: "/", MaxAge: int(passLife / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}
