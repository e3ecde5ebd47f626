package grpcapi

import (
	"context"
	"sync"
)

// ahead is what was read of a Publish stream and is not sent yet. It is bounded in number and bytes, but always takes
// one. One goroutine puts, one takes.
type ahead struct {
	most, mostBytes int

	mu       sync.Mutex
	items    []publication
	bytes    int
	isClosed bool
	why      error         // it was closed
	came     chan struct{} // has room for one: there is something, or the end
	went     chan struct{} // has room for one: there is room, or the end
}

func newAhead(most, mostBytes int) *ahead {
	return &ahead{most: most, mostBytes: mostBytes, came: make(chan struct{}, 1), went: make(chan struct{}, 1)}
}

// put adds an item and waits for room. It reports false when it was closed or ctx ends first.
func (a *ahead) put(ctx context.Context, p publication) bool {
	for {
		if isPut, isClosed := a.tryPut(p); isPut || isClosed {
			return isPut
		}
		select {
		case <-a.went:
		case <-ctx.Done():
			return false
		}
	}
}

func (a *ahead) tryPut(p publication) (isPut, isClosed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	hasRoom := len(a.items) == 0 || len(a.items) < a.most && a.bytes+p.bytes <= a.mostBytes
	if a.isClosed || !hasRoom {
		return false, a.isClosed
	}
	a.items, a.bytes = append(a.items, p), a.bytes+p.bytes
	wake(a.came)
	return true, false
}

// close lets nothing in any more; what is there can be taken. The first reason counts.
func (a *ahead) close(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isClosed {
		a.isClosed, a.why = true, why
	}
	wake(a.came)
	wake(a.went)
}

// take takes up to most items and waits for the first. None: it was closed, for the reason given, and is empty.
func (a *ahead) take(most int) ([]publication, error) {
	for {
		taken, isClosed := a.tryTake(most)
		if len(taken) > 0 {
			return taken, nil
		}
		if isClosed {
			return nil, a.why
		}
		<-a.came
	}
}

func (a *ahead) tryTake(most int) (taken []publication, isClosed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(len(a.items), most)
	taken, a.items = a.items[:n:n], a.items[n:]
	if len(a.items) == 0 {
		a.items = nil // else it would keep what was taken in memory until the next one comes
	}
	for _, p := range taken {
		a.bytes -= p.bytes
	}
	wake(a.went)
	return taken, a.isClosed
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
