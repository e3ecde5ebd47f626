package partitioned

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// lookEvery is how often a server that did not answer is looked at, as long as calls would use it.
const lookEvery = time.Second

// away are the servers that did not answer the last call. What can go to any partition passes them over (PART-7), so
// that a server that hangs does not hold up each receive for one timeout. A look in the background finds out when it
// answers again.
type away struct {
	count   atomic.Int32 // of places, so that a call costs nothing as long as all answer
	mu      sync.Mutex
	servers map[any]*absence // and partitions that are uncompared
}

// uncompared is the path of a partition that could not be compared with its record. Its own server answers, so what
// else that has is not away.
type uncompared string

// absence is a server that did not answer.
type absence struct {
	lookedAt  time.Time
	isLooking bool
}

// note keeps what the outcome of a call says of the server of a partition, and reports whether that did not answer.
func (s *Store) note(ctx context.Context, path string, err error) (isAway bool) {
	e, code := semantics.AsError(err), semantics.CodeOf(err)
	switch {
	case code == semantics.StoreUnavailable && s.away.knows(uncompared(semantics.Fold(path))):
	case code == semantics.StoreUnavailable && (e.RetryAfter > 0 || semantics.IsOutcomeUnknown(err)):
		s.away.add(s.below.Server(ctx, path))
		return true
	case code == semantics.StoreUnavailable, code == semantics.Cancelled: // full, or not asked
	case s.away.count.Load() > 0:
		s.away.remove(s.below.Server(ctx, path))
		s.away.remove(uncompared(semantics.Fold(path)))
	}
	return false
}

// present returns those of some partitions that are not away, and has the others looked at. If there are none it
// returns all.
func (s *Store) present(ctx context.Context, w *whole, partitions []int) []int {
	if s.away.count.Load() == 0 {
		return partitions
	}
	var present []int
	for _, p := range partitions {
		place := s.below.Server(ctx, w.paths[p])
		isAway, isDue := s.away.has(place)
		if !isAway {
			place = uncompared(semantics.Fold(w.paths[p]))
			isAway, isDue = s.away.has(place)
		}
		if !isAway {
			present = append(present, p)
		}
		if isDue {
			go s.lookAgain(context.WithoutCancel(ctx), w, p, place)
		}
	}
	if len(present) == 0 {
		return partitions
	}
	return present
}

// lookAgain asks a server that was away by a partition that it has, or one that could not be compared. If it answers,
// receives that wait look too.
func (s *Store) lookAgain(ctx context.Context, w *whole, p int, place any) {
	own := uncompared(semantics.Fold(w.paths[p]))
	if place != any(own) {
		s.away.remove(own) // so that it is known again only if the server answers this look
	}
	_, err := s.Store.GetEntity(ctx, semantics.QueueKind, w.paths[p])
	code := semantics.CodeOf(err)
	s.away.looked(place)
	s.away.looked(own)
	isThere := code != semantics.StoreUnavailable || place != any(own) && s.away.knows(own)
	if !isThere || code == semantics.Cancelled {
		return
	}
	s.away.remove(place)
	for _, one := range s.openWatches(semantics.Fold(w.name)) {
		one.wake(p, 0)
	}
}

func (a *away) add(server any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers[server] == nil {
		a.servers[server] = &absence{}
		a.count.Add(1)
	}
}

func (a *away) remove(server any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers[server] != nil {
		delete(a.servers, server)
		a.count.Add(-1)
	}
}

// knows reports whether a place is away.
func (a *away) knows(place any) bool {
	if a.count.Load() == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.servers[place] != nil
}

// has reports whether a server is away, and whether the caller is to look at it.
func (a *away) has(server any) (isAway, isDue bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.servers[server]
	if one == nil {
		return false, false
	}
	isDue = !one.isLooking && time.Since(one.lookedAt) >= lookEvery
	one.isLooking = one.isLooking || isDue
	return true, isDue
}

func (a *away) looked(server any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.servers[server]; one != nil {
		one.isLooking, one.lookedAt = false, time.Now()
	}
}
