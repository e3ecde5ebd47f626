package grpcapi

import (
	"runtime"
	"slices"
	"sync"

	"google.golang.org/grpc/mem"
)

const (
	maxAnswersTogether = 64 << 10 // bytes of small answers in one response
	maxUnsent          = 4 << 20  // bytes of answers that are not sent: no more calls are read until the client reads
)

// answerQueue sends the answers of a stream in the order in which they come, several in one response. A large response
// goes in parts between the others. The goroutine that adds an answer while none sends, sends, so that there is no
// goroutine more.
type answerQueue struct {
	send    func(mem.BufferSlice) error
	running func() int // calls that have not been answered

	mu        sync.Mutex
	small     []*multiplexAnswer
	large     []*multiplexAnswer
	unsent    int // bytes
	isSending bool
	space     sync.Cond // unsent is less than before
}

func newAnswerQueue(send func(mem.BufferSlice) error, running func() int) *answerQueue {
	q := &answerQueue{send: send, running: running}
	q.space.L = &q.mu
	return q
}

// add queues an answer. It may block as long as the client does not read. The function finished of each answer is
// called once, after the answer was sent, could not be, or was not because its client does not wait for it.
func (q *answerQueue) add(a *multiplexAnswer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unsent += a.size()
	if a.whole != nil {
		q.small = append(q.small, a)
	} else {
		q.large = append(q.large, a)
	}
	if q.isSending {
		return
	}
	q.isSending = true
	defer func() { q.isSending = false }()
	for len(q.small)+len(q.large) > 0 {
		q.gather()
		response, taken, ended, dropped := q.take()
		q.mu.Unlock()
		for _, a := range dropped {
			a.finished(false)
		}
		if len(response) > 0 {
			err := q.send(response)
			for _, a := range ended {
				a.finished(err == nil)
			}
		}
		q.mu.Lock()
		q.unsent -= taken
		q.space.Broadcast()
	}
}

// gather lets other goroutines run that are ready to, for as long as they add answers, so that these share a response.
// The mutex is locked.
func (q *answerQueue) gather() {
	for last := 0; len(q.small) > last && len(q.small) < q.running() && q.unsent < maxAnswersTogether; {
		last = len(q.small)
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
	}
}

// take removes what the next response has: small answers, and a part of a large one. It returns the answers that end
// with it, and those that it has dropped because they are not awaited. The mutex is locked.
func (q *answerQueue) take() (response mem.BufferSlice, size int, ended, dropped []*multiplexAnswer) {
	n, together := 0, 0
	for ; n < len(q.small); n++ {
		a := q.small[n]
		if !a.isAwaited() {
			dropped, size = append(dropped, a), size+a.size()
			continue
		}
		if together > 0 && together+a.size() > maxAnswersTogether {
			break
		}
		response, ended = append(response, a.whole), append(ended, a)
		together += a.size()
	}
	q.small, size = slices.Delete(q.small, 0, n), size+together
	if len(q.large) == 0 {
		return response, size, ended, dropped
	}
	a := q.large[0]
	q.large = slices.Delete(q.large, 0, 1) // which keeps nothing of what was sent
	before := a.size()
	switch {
	case !a.isAwaited():
		return response, size + before, ended, append(dropped, a)
	case before > maxPart:
		q.large = append(q.large, a) // behind the other large ones
	default:
		ended = append(ended, a)
	}
	response = append(response, a.nextPart()...)
	return response, size + before - a.size(), ended, dropped
}

func (a *multiplexAnswer) isAwaited() bool { return a.call == nil || a.call.isAwaited() }

func (a *multiplexAnswer) size() int {
	if a.whole != nil {
		return a.whole.Len()
	}
	return len(a.rest)
}

// awaitSpace blocks while too much is not sent. When the stream ends, nothing remains unsent.
func (q *answerQueue) awaitSpace() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.unsent > maxUnsent {
		q.space.Wait()
	}
}
