package grpcapi

import (
	"context"
	"sync"
)

// ahead is what was read of a Publish stream and is not sent yet. It is bounded in number and bytes, but always takes
// one. One goroutine puts, one takes.
type publishQueue struct {
	maxItems, maxBytes int

	mu       sync.Mutex
	items    []publication
	bytes    int
	isClosed bool
	reason   error         // it was closed
	notEmpty chan struct{} // has room for one: there is something, or the end
	notFull  chan struct{} // has room for one: there is room, or the end
}

func newPublishQueue(most, mostBytes int) *publishQueue {
	return &publishQueue{
		maxItems: most, maxBytes: mostBytes, notEmpty: make(chan struct{}, 1), notFull: make(chan struct{}, 1),
	}
}

// put adds an item and waits for room. It reports false when it was closed or ctx ends first.
func (a *publishQueue) put(ctx context.Context, p publication) bool {
	for {
		if isPut, isClosed := a.tryPut(p); isPut || isClosed {
			return isPut
		}
		select {
		case <-a.notFull:
		case <-ctx.Done():
			return false
		}
	}
}

func (a *publishQueue) tryPut(p publication) (isPut, isClosed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	hasRoom := len(a.items) == 0 || len(a.items) < a.maxItems && a.bytes+p.bytes <= a.maxBytes
	if a.isClosed || !hasRoom {
		return false, a.isClosed
	}
	a.items, a.bytes = append(a.items, p), a.bytes+p.bytes
	wake(a.notEmpty)
	return true, false
}

// close lets nothing in any more; what is there can be taken. The first reason counts.
func (a *publishQueue) close(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isClosed {
		a.isClosed, a.reason = true, why
	}
	wake(a.notEmpty)
	wake(a.notFull)
}

// take takes up to most items and waits for the first. None: it was closed, for the reason given, and is empty.
func (a *publishQueue) take(most int) ([]publication, error) {
	for {
		taken, isClosed := a.tryTake(most)
		if len(taken) > 0 {
			return taken, nil
		}
		if isClosed {
			return nil, a.reason
		}
		<-a.notEmpty
	}
}

func (a *publishQueue) tryTake(most int) (taken []publication, isClosed bool) {
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
	wake(a.notFull)
	return taken, a.isClosed
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
