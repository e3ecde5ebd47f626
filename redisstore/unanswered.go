package redisstore

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

const (
	// unansweredFor is how long a lost answer is remembered: a request that was under way when its connection broke may
	// reach Redis later than the release of what it locks.
	unansweredFor = 2 * time.Minute
	// maxUnanswered bounds the sessions for which something is remembered. Beyond it, any one is forgotten, and its
	// messages stay locked until the session's lock ends.
	maxUnanswered = 10_000
	// releasedTogether is how many locks, or nonces of up to maxScriptMessages locks, one script releases.
	releasedTogether = 8
)

// unanswered are the receives whose answers were lost after they may have locked messages of a session. No client has
// these messages, and the ones behind them must not overtake them (SESS-25): each receive in the session releases them
// first, for some time.
type unanswered struct {
	mu    sync.Mutex
	locks map[string]map[string]time.Time // by the token of the session: a lock or nonce, and when it is forgotten
}

// note remembers that messages of a session may be locked by this lock, or by all locks with this nonce.
func (u *unanswered) note(token, lock string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.locks == nil {
		u.locks = map[string]map[string]time.Time{}
	}
	if len(u.locks) >= maxUnanswered {
		u.makeRoom(now)
	}
	if u.locks[token] == nil {
		u.locks[token] = map[string]time.Time{}
	}
	u.locks[token][lock] = now.Add(unansweredFor)
}

// makeRoom forgets what is old, or else any session.
func (u *unanswered) makeRoom(now time.Time) {
	for token, locks := range u.locks {
		forgetOld(locks, now)
		if len(locks) == 0 {
			delete(u.locks, token)
		}
	}
	for token := range u.locks {
		if len(u.locks) < maxUnanswered {
			return
		}
		delete(u.locks, token)
	}
}

func forgetOld(locks map[string]time.Time, now time.Time) {
	for lock, until := range locks {
		if now.After(until) {
			delete(locks, lock)
		}
	}
}

// of returns what is remembered of a session.
func (u *unanswered) of(token string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	locks := u.locks[token]
	forgetOld(locks, time.Now())
	if len(locks) == 0 {
		delete(u.locks, token)
		return nil
	}
	found := make([]string, 0, len(locks))
	for lock := range locks {
		found = append(found, lock)
	}
	return found
}

// forget removes a session.
func (u *unanswered) forget(token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.locks, token)
}

// noteReceive remembers that a receive without an answer may have locked messages in the sessions of these calls.
func (s *Store) noteReceive(calls turnCalls, nonce uint64) {
	for _, c := range calls {
		if !c.takes() {
			continue
		}
		s.unanswered.note(sessionToken(c.source), strconv.FormatUint(nonce, 10))
	}
}

// releaseUnanswered releases what receives without an answer may have locked in the sessions of the calls.
func (s *Store) releaseUnanswered(ctx context.Context, path string, calls turnCalls) error {
	var pairs []any
	seen := map[string]bool{}
	for _, c := range calls {
		token := sessionToken(c.source)
		if seen[token] || !c.takes() {
			continue
		}
		seen[token] = true
		for _, lock := range s.unanswered.of(token) {
			pairs = append(pairs, token, lock)
		}
	}
	for len(pairs) > 0 {
		n := min(2*releasedTogether, len(pairs))
		r, err := s.run(ctx, "release_unanswered", s.keys(path), append([]any{s.now()}, pairs[:n]...)...)
		if err != nil {
			return err
		}
		if err := s.onSource(ctx, semantics.Source{Path: path}, r); err != nil {
			return err
		}
		pairs = pairs[n:]
	}
	return nil
}
