package status

import (
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"

	"phonerack/sync/wire"
)

const maxName = 40 // runes of a person's name

func (p *Page) signInForm(w http.ResponseWriter, r *http.Request) error {
	v := p.view(r, "signin.title", "")
	v.Next = next(r)
	if r.URL.Query().Get("next") == "" {
		v.Next = "/"
	}
	if p.o.PIN == "" {
		return wire.Refuse(wire.PINUnset, nil)
	}
	return p.answer(w, r, http.StatusOK, "signin.html", v, map[string]bool{"signed_in": v.SignedIn})
}

func (p *Page) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := parse(r); err != nil {
		return err
	}
	from := remoteAddr(r)
	if err := p.gate.try(from, p.passOf(r), r.PostForm.Get("pin")); err != nil {
		// Only a PIN that was compared is worth a line of the log that is kept: of those there are ten a minute at most. Who has to
		// wait can ask as often, and from as many addresses, as the network lets them.
		level, code := slog.LevelDebug, wire.From(err).Code
		if code == wire.PINWrong {
			level = slog.LevelWarn
		}
		p.o.Log.Log(r.Context(), level, "sign-in on the page refused", "from", from, "code", string(code))
		return err
	}
	p.sessions.close(r) // the old one, if there is one
	name := personName(r.PostForm.Get("name"))
	setSession(w, r, p.sessions.open(name))
	p.letIn(w, r)
	p.o.Log.Info("signed in on the page", "from", from, "actor", name)
	if wantsJSON(r.Header.Get("Accept")) {
		return p.answer(w, r, http.StatusOK, "", nil, map[string]bool{"signed_in": true})
	}
	http.Redirect(w, r, next(r), http.StatusSeeOther)
	return nil
}

func (p *Page) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := parse(r); err != nil {
		return err
	}
	p.sessions.close(r)
	setSession(w, r, "")
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

func (p *Page) chooseLanguage(w http.ResponseWriter, r *http.Request) error {
	if err := parse(r); err != nil {
		return err
	}
	lang := r.PostForm.Get("lang")
	if !spoken(lang) {
		return wire.Refuse(wire.BadRequest, map[string]any{"reason": "there is no such language here"})
	}
	http.SetCookie(w, &http.Cookie{
		Name: langCookie, Value: lang, Path: "/", MaxAge: int(365 * 24 * time.Hour / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, next(r), http.StatusSeeOther)
	return nil
}

// personName is what a person calls themself, fit for a log: printable and short.
func personName(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(s) {
		if n == maxName {
			break
		}
		if r != unicode.ReplacementChar && unicode.IsPrint(r) {
			b.WriteRune(r)
			n++
		}
	}
	return b.String()
}
