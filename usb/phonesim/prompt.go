package phonesim

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// keyring holds the keys that a phone knows and the questions it has for its user. Like the real one it
// shows one question at a time: the next comes when that is answered or its host is unplugged, not before.
type keyring struct {
	mu      sync.Mutex // guards what follows
	known   []*publicKey
	prompts []prompt // the first is on the screen
}

// prompt is the question whether to trust a host's key.
type prompt struct {
	daemon *daemon // of the link whose host offered the key
	key    *publicKey
}

func (r *keyring) verify(token, signature []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.known, func(k *publicKey) bool { return k.verify(token, signature) })
}

func (r *keyring) add(k *publicKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.known, func(o *publicKey) bool { return bytes.Equal(o.raw, k.raw) }) {
		r.known = append(r.known, k)
	}
}

// AuthorizeKey lets the phone know a key: a line as in adbkey.pub.
func (p *Phone) AuthorizeKey(line string) error {
	k, err := parsePublicKey(line)
	if err != nil {
		return fmt.Errorf("phonesim: %w", err)
	}
	p.keys.add(k)
	return nil
}

// ForgetKeys is "revoke USB debugging authorisations" in the phone's settings: all known keys and open
// questions are gone. Connections stay.
func (p *Phone) ForgetKeys() {
	p.keys.mu.Lock()
	defer p.keys.mu.Unlock()
	p.keys.known, p.keys.prompts = nil, nil
}

// Prompt returns the fingerprint of the key that the phone asks its user about.
func (p *Phone) Prompt() (fingerprint string, ok bool) {
	p.keys.mu.Lock()
	defer p.keys.mu.Unlock()
	if len(p.keys.prompts) == 0 {
		return "", false
	}
	return p.keys.prompts[0].key.fingerprint(), true
}

// AcceptPrompt is the user's tap on "allow", with or without "always allow from this computer". It reports
// whether there was a question. The host is let in; its key is known from now on only with always.
func (p *Phone) AcceptPrompt(always bool) bool {
	q, ok := p.takePrompt()
	if ok && !p.Faults().Unauthorized {
		if always {
			p.keys.add(q.key)
		}
		q.daemon.accepted()
	}
	return ok
}

// DenyPrompt is the user's tap on "cancel". It reports whether there was a question. The host hears nothing of it.
func (p *Phone) DenyPrompt() bool {
	_, ok := p.takePrompt()
	return ok
}

// prompt asks the user whether to trust the key that the host of d offers. Asking twice is asking once.
func (p *Phone) prompt(d *daemon, key *publicKey) {
	r := &p.keys
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.prompts, func(q prompt) bool { return q.daemon == d && bytes.Equal(q.key.raw, key.raw) }) {
		return
	}
	r.prompts = append(r.prompts, prompt{daemon: d, key: key})
	if len(r.prompts) == 1 {
		p.showPrompt(r.prompts[0])
	}
}

// takePrompt removes the question on the screen and shows the next.
func (p *Phone) takePrompt() (prompt, bool) {
	r := &p.keys
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.prompts) == 0 {
		return prompt{}, false
	}
	q := r.prompts[0]
	r.prompts = slices.Delete(r.prompts, 0, 1)
	if len(r.prompts) > 0 {
		p.showPrompt(r.prompts[0])
	}
	return q, true
}

// dropPrompts removes the questions about a host that is gone.
func (p *Phone) dropPrompts(d *daemon) {
	r := &p.keys
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.prompts) == 0 {
		return
	}
	shown := r.prompts[0].daemon
	r.prompts = slices.DeleteFunc(r.prompts, func(q prompt) bool { return q.daemon == d })
	if shown == d && len(r.prompts) > 0 {
		p.showPrompt(r.prompts[0])
	}
}

// showPrompt tells whoever wants to know what is on the screen, and starts the user whom Auth describes.
func (p *Phone) showPrompt(q prompt) {
	fingerprint := q.key.fingerprint()
	p.log.Info("asking whether to trust a key", "fingerprint", fingerprint)
	q.daemon.start(func() {
		if p.config.OnPrompt != nil {
			p.config.OnPrompt(fingerprint)
		}
		if after := p.config.Auth.AcceptAfter; after > 0 && sleep(q.daemon.ctx, after) == nil {
			p.AcceptPrompt(p.config.Auth.AcceptAlways)
		}
	})
}
