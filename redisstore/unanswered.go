package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// maxUnanswered bounds the sessions for which unanswered keeps something. Beyond it, any one is forgotten, and its
// messages stay locked until the session's lock ends.
const maxUnanswered = 10_000

// unanswered are the receives whose answers were lost after they may have locked messages of a session. No client has
// these messages, and the ones behind them must not overtake them (SESS-25): the next receive in the session releases
// them first.
type unanswered struct {
	mu     sync.Mutex
	nonces map[string][]uint64 // of their locks, by the token of the session
}

// note remembers that a receive may have locked messages of a session with this nonce.
func (u *unanswered) note(token string, nonce uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.nonces == nil {
		u.nonces = map[string][]uint64{}
	}
	nonces, known := u.nonces[token]
	if !known && len(u.nonces) >= maxUnanswered {
		for other := range u.nonces {
			delete(u.nonces, other)
			break
		}
	}
	if !slices.Contains(nonces, nonce) {
		u.nonces[token] = append(nonces, nonce)
	}
}

// of returns the nonces that are noted for a session.
func (u *unanswered) of(token string) []uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.nonces[token])
}

// forget removes nonces of a session; without any, the session.
func (u *unanswered) forget(token string, nonces ...uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := slices.DeleteFunc(u.nonces[token], func(n uint64) bool { return slices.Contains(nonces, n) })
	if len(left) == 0 || len(nonces) == 0 {
		delete(u.nonces, token)
		return
	}
	u.nonces[token] = left
}

// releaseUnanswered releases what receives without an answer may have locked in the sessions of the calls.
func (s *Store) releaseUnanswered(ctx context.Context, path string, calls []*sessionReceiveCall) error {
	args := []any{s.now()}
	found := map[string][]uint64{}
	for _, c := range calls {
		token := sessionToken(c.source)
		if _, known := found[token]; known {
			continue
		}
		if nonces := s.unanswered.of(token); len(nonces) > 0 {
			found[token] = nonces
			for _, nonce := range nonces {
				args = append(args, token, nonce)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	r, err := s.run(ctx, "release_unanswered", s.keys(path), args...)
	if err != nil {
		return err
	}
	for token, nonces := range found {
		s.unanswered.forget(token, nonces...)
	}
	return s.onSource(ctx, semantics.Source{Path: path}, r)
}
