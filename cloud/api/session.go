package api

import (
	"context"
	"sync"

	"phonerack/cloud/enroll"
	"phonerack/cloud/fleet"
)

// maxSessions bounds the cache; at the bound it starts anew.
const maxSessions = 20_000

// sessions remembers the nonce of each rack's newest hello as far as this replica knows. The store is the record: it is
// asked whenever the memory and a frame differ, because another replica may have taken a newer hello.
type sessions struct {
	mu    sync.Mutex // guards nonce
	nonce map[enroll.Caller]string
}

func (s *sessions) get(c enroll.Caller) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nonce[c]
}

func (s *sessions) set(c enroll.Caller, nonce string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nonce == nil || len(s.nonce) >= maxSessions {
		s.nonce = map[enroll.Caller]string{}
	}
	s.nonce[c] = nonce
}

// check finds the session that a frame's answers carry. A frame that names another one is of the past; a rack that has
// said no hello cannot prove an answer.
func (s *sessions) check(ctx context.Context, f *fleet.Fleet, in *incoming) (reason string, err error) {
	if in.m.Sess != "" && s.get(in.caller) == in.m.Sess {
		in.sess = in.m.Sess
		return "", nil
	}
	if in.sess, err = f.Session(ctx, in.caller); err != nil {
		return "", err
	}
	if in.sess == "" || in.m.Sess != "" && in.m.Sess != in.sess {
		return "session", nil
	}
	s.set(in.caller, in.sess)
	return "", nil
}
