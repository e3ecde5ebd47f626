package grpcapi

import "sync"

// maxIdleMultiplexWorkers is how many goroutines wait for the next calls, as many as for RPCs.
const maxIdleMultiplexWorkers = 64

// workers are goroutines that run the calls of all streams, one after the other, so that their stacks need not grow
// again for each call. There are as many as calls at a time; the one that was idle for the shortest time gets the next
// call. Without a stream none is idle.
type workers struct {
	mu      sync.Mutex
	idle    []chan *multiplexedCall
	streams int // that are open
}

// open counts a stream that will start calls.
func (w *workers) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams++
}

// close stops counting a stream, which starts no more calls.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams--; w.streams > 0 {
		return
	}
	for _, worker := range w.idle {
		close(worker)
	}
	w.idle = nil
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
		c.of.run(c)
		if !w.rest(next) {
			return
		}
	}
}

// rest lets a worker wait for its next call, and reports false if it is to end.
func (w *workers) rest(next chan *multiplexedCall) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams == 0 || len(w.idle) >= maxIdleMultiplexWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}
