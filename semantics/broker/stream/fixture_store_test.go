package stream_test

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// errAway is a store that cannot be reached.
var errAway = &semantics.Error{Code: semantics.StoreUnavailable, Message: "away"}

// pliantStore is a memstore that a test can break and hold up.
type pliantStore struct {
	*memstore.Store

	mu     sync.Mutex
	outage error  // what calls fail with
	only   string // the method that fails; empty: all
	lost   error  // what settlements fail with when their work is done
	missed int    // receives that take messages and whose answers are lost
	// messages that such receives took from sessions, which the next receive releases
	unanswered map[semantics.Source][]semantics.LockToken
	calls      map[string]int // by method
	// a call of the method stops here until the test lets it go, after its work is done
	barrier map[string]chan struct{}
	gate    map[string]chan struct{} // the same before its work
}

// before counts a call and gives the outage, if there is one.
func (s *pliantStore) before(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[method]++
	if s.only != "" && s.only != method {
		return nil
	}
	return s.outage
}

// after stops a call whose work is done.
func (s *pliantStore) after(method string) {
	s.mu.Lock()
	barrier := s.barrier[method]
	s.mu.Unlock()
	if barrier != nil {
		<-barrier
	}
}

// stop makes the calls of a method stop, each until go is sent to.
func (s *pliantStore) stop(method string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.barrier == nil {
		s.barrier = map[string]chan struct{}{}
	}
	s.barrier[method] = make(chan struct{})
	return s.barrier[method]
}

// stopBefore makes the next call of a method stop before its work. It sends when it is there, and goes on when it is
// sent to.
func (s *pliantStore) stopBefore(method string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate == nil {
		s.gate = map[string]chan struct{}{}
	}
	s.gate[method] = make(chan struct{})
	return s.gate[method]
}

func (s *pliantStore) passGate(method string) {
	s.mu.Lock()
	gate := s.gate[method]
	delete(s.gate, method)
	s.mu.Unlock()
	if gate != nil {
		gate <- struct{}{}
		<-gate
	}
}

// loseAnswers makes completions fail when their work is done; nil: no more.
func (s *pliantStore) loseAnswers(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = err
}

// miss loses the answers of the next receives that take messages.
func (s *pliantStore) miss(receives int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed = receives
}

func (s *pliantStore) noteUnanswered(source semantics.Source, messages []*semantics.Received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unanswered == nil {
		s.unanswered = map[semantics.Source][]semantics.LockToken{}
	}
	for _, m := range messages {
		s.unanswered[source] = append(s.unanswered[source], m.LockToken)
	}
}

func (s *pliantStore) releaseUnanswered(ctx context.Context, source semantics.Source) error {
	s.mu.Lock()
	tokens := s.unanswered[source]
	delete(s.unanswered, source)
	s.mu.Unlock()
	if len(tokens) == 0 {
		return nil
	}
	_, err := s.Store.Release(ctx, source, tokens)
	return err
}

func (s *pliantStore) misses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed--
	return s.missed >= 0
}

func (s *pliantStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = err
}

func (s *pliantStore) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

func (s *pliantStore) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	if err := s.before("GetEntity"); err != nil {
		return semantics.Entity{}, err
	}
	return s.Store.GetEntity(ctx, kind, path)
}

func (s *pliantStore) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if err := s.before("Receive"); err != nil {
		return semantics.Batch{}, err
	}
	if err := s.releaseUnanswered(ctx, source); err != nil {
		return semantics.Batch{}, err
	}
	batch, err := s.Store.Receive(ctx, source, limit, register)
	if len(batch.Messages) > 0 {
		s.after("Receive")
		if s.misses() {
			if !source.SessionLock.IsZero() {
				s.noteUnanswered(source, batch.Messages)
			}
			return semantics.Batch{}, errAway.With(semantics.DetailOutcome, semantics.OutcomeUnknown)
		}
	}
	return batch, err
}

func (s *pliantStore) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	if err := s.before("AcceptNextSession"); err != nil {
		return nil, 0, err
	}
	s.passGate("AcceptNextSession")
	session, recheck, err := s.Store.AcceptNextSession(ctx, path, register)
	if session != nil {
		s.after("AcceptNextSession")
	}
	return session, recheck, err
}

func (s *pliantStore) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	if err := s.before("RenewLocks"); err != nil {
		return nil, err
	}
	s.passGate("RenewLocks")
	return s.Store.RenewLocks(ctx, source, tokens)
}

func (s *pliantStore) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	if err := s.before("RenewSessionLock"); err != nil {
		return time.Time{}, err
	}
	return s.Store.RenewSessionLock(ctx, source)
}

func (s *pliantStore) CloseSession(ctx context.Context, source semantics.Source) error {
	if err := s.before("CloseSession"); err != nil {
		return err
	}
	err := s.Store.CloseSession(ctx, source)
	s.after("CloseSession")
	return err
}

func (s *pliantStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if err := s.before("Complete"); err != nil {
		return nil, err
	}
	codes, err := s.Store.Complete(ctx, source, tokens)
	s.after("Complete")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	return codes, err
}

func (s *pliantStore) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if err := s.before("Release"); err != nil {
		return nil, err
	}
	s.passGate("Release")
	return s.Store.Release(ctx, source, tokens)
}

// Turn is by Complete and Receive, with what they do here.
func (s *pliantStore) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
