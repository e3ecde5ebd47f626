package memstore

import (
	"context"
	"maps"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// watch is one subscription. Its channel holds one wake-up; later ones are added to it until it is taken.
type watch struct {
	store  *Store
	source semantics.Source
	c      chan int

	sessions []semantics.LockToken // that were woken; only of HeldSessions
}

// Watch implements semantics.Receiver. The queue need not exist.
func (s *Store) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	if err := refuseIfOver(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watch{store: s, source: source.Fold(), c: make(chan int, 1)}
	if s.watches[w.source] == nil {
		s.watches[w.source] = map[*watch]struct{}{}
	}
	s.watches[w.source][w] = struct{}{}
	return w, nil
}

// C implements semantics.Watch.
func (w *watch) C() <-chan int { return w.c }

// Sessions implements semantics.Watch.
func (w *watch) Sessions() []semantics.LockToken {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	woken := w.sessions
	w.sessions = nil
	return woken
}

// Close implements semantics.Watch.
func (w *watch) Close() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	delete(w.store.watches[w.source], w)
	if len(w.store.watches[w.source]) == 0 {
		delete(w.store.watches, w.source)
	}
}

// PassOn implements semantics.Receiver. It wakes only when a receive has registered since the last wake-up: two Brokers
// over this Store without a waiter would otherwise pass a wake-up to and fro for ever.
func (s *Store) PassOn(ctx context.Context, source semantics.Source) error {
	if err := refuseIfOver(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[semantics.Fold(source.Path)]
	if q != nil && s.waiting[source.Fold()] {
		s.wake(source.Fold(), q.offers()[source.Fold()])
	}
	return nil
}

// wakingFor makes a change, does what follows from it for sessions, and wakes those who wait for what there is by it.
// When something will be due earlier than before, it also makes one look that waits on each source, so that the next
// look will be in time.
func (s *Store) wakingFor(q *queue, now time.Time, change func()) {
	before, due := q.offers(), q.due
	change()
	q.tidy(now)
	q.forgetIdle(s.maxIdleSessions)
	after := q.offers()
	for source, n := range after {
		n -= before[source]
		if !q.due.Equal(due) {
			n = max(n, 0) + 1
		}
		s.wake(source, n)
	}
	for source := range before {
		if _, still := after[source]; !still { // the session's lock is gone, or nothing is left to know of it
			s.signal(source, 0)
		}
	}
	if len(q.toForward()) > 0 || q.forwards() && !q.due.Equal(due) {
		s.noteUpkeep()
	}
}

// offers returns how much is available on each source of a queue: messages, or for the main side of a queue with
// sessions ready sessions. For a held session it is what its holder would be given, for a named one 1 when it can be
// accepted.
func (q *queue) offers() map[semantics.Source]int {
	main := semantics.Source{Path: q.name}.Fold()
	dead := semantics.Source{Path: main.Path, SubQueue: semantics.DeadLetterQueue}
	undelivered := semantics.Source{Path: main.Path, SubQueue: semantics.TransferDeadLetterQueue}
	offers := map[semantics.Source]int{dead: q.dead.available(), undelivered: q.undelivered.available()}
	if !q.options.RequiresSession {
		offers[main] = q.main.available()
		return offers
	}
	offers[main] = 0
	messages := q.bySession()
	for id, on := range q.sessions {
		if on.ready() {
			offers[main]++
		}
		named := semantics.Source{Path: main.Path, Session: id}
		offers[named] = 0
		if on.acceptable() {
			offers[named] = 1
		}
		if on.isHeld() {
			offers[semantics.Source{Path: main.Path, SessionLock: on.token}] = len(q.offeredTo(on, messages[id]))
		}
	}
	return offers
}

// wake wakes every watch of a folded source, with the number of new messages or sessions. It wakes more than it must,
// which is harmless: a wake-up means "look again".
func (s *Store) wake(source semantics.Source, n int) {
	if n > 0 {
		s.signal(source, n)
	}
}

// wakeAll makes all look again that wait on any source of a queue.
func (s *Store) wakeAll(path string) {
	path = semantics.Fold(path)
	for source := range s.watches {
		if source.Path == path {
			s.signal(source, 0)
		}
	}
	maps.DeleteFunc(s.waiting, func(source semantics.Source, _ bool) bool { return source.Path == path })
}

func (s *Store) signal(source semantics.Source, n int) {
	delete(s.waiting, source)
	for w := range s.watches[source] {
		w.signal(n)
	}
	if source.SessionLock.IsZero() {
		return
	}
	for w := range s.watches[semantics.Source{Path: source.Path, HeldSessions: true}] {
		w.sessions = append(w.sessions, source.SessionLock)
		w.signal(max(n, 1))
	}
}

// signal adds a wake-up. Only holders of the mutex send, so after an old value was taken out the buffer is free.
func (w *watch) signal(n int) {
	select {
	case old := <-w.c:
		w.c <- sum(old, n)
	default:
		w.c <- n
	}
}

// sum adds wake-ups; 0 means everyone and swallows the other.
func sum(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}
