package inflight

import (
	"context"
	"sync"
	"sync/atomic"
)

// maxIdleWorkers is how many goroutines of a stream wait for a settlement.
const maxIdleWorkers = 4

// settlements run concurrently. A goroutine that has run one waits for the next, because a new goroutine has to grow
// its stack. Idle ones end with the stream.
type settlements struct {
	life    context.Context //nolint:containedctx // of the stream
	next    chan func()     // for an idle goroutine
	idle    atomic.Int32
	running sync.WaitGroup
}

// start runs a settlement and does not wait for it.
func (s *settlements) start(settle func()) {
	s.running.Add(1)
	select {
	case s.next <- settle:
	default:
		go s.work(settle)
	}
}

// Wait waits for all settlements. None starts after Close.
func (s *settlements) Wait() { s.running.Wait() }

// work runs a settlement, and further ones while the stream lives, unless enough goroutines are idle.
func (s *settlements) work(settle func()) {
	for {
		settle()
		s.running.Done()
		if s.idle.Add(1) > maxIdleWorkers {
			s.idle.Add(-1)
			return
		}
		select {
		case settle = <-s.next:
			s.idle.Add(-1)
		case <-s.life.Done():
			return
		}
	}
}
