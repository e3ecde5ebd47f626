package grpcapi

import "sync"

// maxIdleMultiplexWorkers is how many goroutines of a stream wait for its next calls.
const maxIdleMultiplexWorkers = 64

// workers are goroutines that run the calls of a stream, one after the other, so that their stacks need not grow again
// for each call. There are as many as calls at a time; the one that was idle for the shortest time gets the next call.
type workers struct {
	run func(*multiplexedCall)

	mu       sync.Mutex
	idle     []chan *multiplexedCall
	isClosed bool
}

// start runs a call.
func (w *workers) start(c *multiplexedCall) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		worker := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		worker <- c
		return
	}
	w.mu.Unlock()
	next := make(chan *multiplexedCall, 1) // so that start does not wait for the goroutine to be there
	next <- c
	go w.work(next)
}

func (w *workers) work(next chan *multiplexedCall) {
	for c := range next {
		w.run(c)
		if !w.rest(next) {
			return
		}
	}
}

// rest lets a worker wait for its next call, and reports false if it is to end.
func (w *workers) rest(next chan *multiplexedCall) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosed || len(w.idle) >= maxIdleMultiplexWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}

// close ends the idle workers, and each other one after its call. No call may be started any more.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isClosed = true
	for _, worker := range w.idle {
		close(worker)
	}
	w.idle = nil
}
