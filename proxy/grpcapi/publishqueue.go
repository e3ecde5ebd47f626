package grpcapi

import (
	"context"
	"sync"
)

// publishQueue has the publications that a Publish stream has read and not yet sent. Their number and bytes are
// bounded, but an empty queue accepts one of any size. One goroutine puts, one takes.
type publishQueue struct {
	maxItems, maxBytes int

	mu       sync.Mutex
	items    []publication
	bytes    int
	isClosed bool
	reason   error         // it was closed
	notEmpty chan struct{} // buffer of one; signals an item, or that the queue is closed
	notFull  chan struct{} // buffer of one; signals free capacity, or that the queue is closed
}

func newPublishQueue(most, mostBytes int) *publishQueue {
	return &publishQueue{
		maxItems: most, maxBytes: mostBytes, notEmpty: make(chan struct{}, 1), notFull: make(chan struct{}, 1),
	}
}

// put adds an item. It blocks while the queue is full, and returns false if the queue is closed or ctx ends first.
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

// close rejects further items; items in the queue can still be taken. The first reason counts.
func (a *publishQueue) close(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isClosed {
		a.isClosed, a.reason = true, why
	}
	wake(a.notEmpty)
	wake(a.notFull)
}

// take takes up to most items and waits for the first. It returns none when the queue is closed and empty.
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
		a.items = make([]publication, 0, n) // releases the items that were taken; the next are about as many
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
