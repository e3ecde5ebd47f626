package grpcapi

import (
	"context"
	"sync"
)

// ahead is what was read of a Publish stream and is not sent yet. It is bounded in number and bytes, but always takes one. One
// goroutine puts and closes, one takes.
type ahead struct {
	most, mostBytes int

	mu     sync.Mutex
	items  []publication
	bytes  int
	closed bool
	came   chan struct{} // has room for one: there is something, or the end
	went   chan struct{} // has room for one: there is room
}

func newAhead(most, mostBytes int) *ahead {
	return &ahead{most: most, mostBytes: mostBytes, came: make(chan struct{}, 1), went: make(chan struct{}, 1)}
}

// put adds an item and waits for room. It reports false when ctx ends first.
func (a *ahead) put(ctx context.Context, p publication) bool {
	for {
		a.mu.Lock()
		room := len(a.items) == 0 || len(a.items) < a.most && a.bytes+p.bytes <= a.mostBytes
		if room {
			a.items, a.bytes = append(a.items, p), a.bytes+p.bytes
		}
		a.mu.Unlock()
		if room {
			wake(a.came)
			return true
		}
		select {
		case <-a.went:
		case <-ctx.Done():
			return false
		}
	}
}

func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	wake(a.came)
}

// take gives up to most items, waiting for the first. Nil: it was closed and is empty, or stop is closed.
func (a *ahead) take(most int, stop <-chan struct{}) []publication {
	for {
		a.mu.Lock()
		n := min(len(a.items), most)
		taken := a.items[:n:n]
		a.items = a.items[n:]
		for _, p := range taken {
			a.bytes -= p.bytes
		}
		closed := a.closed
		a.mu.Unlock()
		if n > 0 {
			wake(a.went)
			return taken
		}
		if closed {
			return nil
		}
		select {
		case <-a.came:
		case <-stop:
			return nil
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
