package memstore

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// watch is one subscription. Its channel holds one wake-up; later ones are added to it while nobody takes it.
type watch struct {
	store  *Store
	source semantics.Source
	c      chan int
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
// over this Store with nobody waiting would otherwise pass a wake-up to and fro for ever.
func (s *Store) PassOn(ctx context.Context, source semantics.Source) error {
	if err := refuseIfOver(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[semantics.Fold(source.Path)]
	if q != nil && s.waiting[source.Fold()] {
		s.wake(source, q.box(source.SubQueue).available())
	}
	return nil
}

// wake tells every watch of source that n messages arrived. It wakes more than it must, which is harmless: a wake-up
// means "look again".
func (s *Store) wake(source semantics.Source, n int) {
	if n > 0 {
		s.signal(source.Fold(), n)
	}
}

// wakeAll makes every receiver of a queue and of its dead letters look again.
func (s *Store) wakeAll(path string) {
	s.signal(semantics.Source{Path: path}.Fold(), 0)
	s.signal(semantics.Source{Path: path, SubQueue: semantics.DeadLetterQueue}.Fold(), 0)
}

func (s *Store) signal(source semantics.Source, n int) {
	delete(s.waiting, source)
	for w := range s.watches[source] {
		// Only holders of the mutex send, so after taking out an old value there is room.
		select {
		case old := <-w.c:
			w.c <- sum(old, n)
		default:
			w.c <- n
		}
	}
}

// sum adds wake-ups; 0 means everyone and swallows the other.
func sum(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return a + b
}
