package redisstore

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// joiner makes concurrent calls of one kind on one key share script calls (group commit). A call whose key is idle is
// sent at once. Others wait in the batch queue and are sent together when it returns, or as soon as they fill a script
// and fewer than width are under way. There is no timer and no goroutine: the first call of a batch runs the script for
// all, after those have joined that other goroutines are about to make. Calls are sent in order of arrival.
type joiner[C any] struct {
	run   func(ctx context.Context, calls []C) // sets the outcome of every call
	weigh func(C) int
	full  int // weight that is sent although others are under way
	most  int // weight that shares one script; a single heavier call is sent alone

	mu     sync.Mutex
	queues map[string]*batchQueue[C]
}

// width is the most script calls of one kind under way on one key: enough to keep Redis busy while this process encodes
// and decodes.
const width = 8

// yields is how often in turn a batch lets other goroutines run without a call joining it, before it leaves. The first
// time, those that will join may still be behind others.
const yields = 2

// batchQueue is the queue before one key. It exists only while a call is under way.
type batchQueue[C any] struct {
	waiting []*ticket[C]
	weight  int  // of those waiting
	going   int  // script calls under way
	shared  bool // the last batch had several calls
}

type ticket[C any] struct {
	call C
	// turn delivers the batch that this ticket must run, itself first, or is closed when its call has its outcome.
	turn chan []*ticket[C]
}

// do runs one call, alone or together with others. It blocks until the call has its outcome. If ctx ends before the
// call was sent, do returns CANCELLED and nothing was changed; a call that was sent runs to its end, so that its
// outcome is known.
func (j *joiner[C]) do(ctx context.Context, key string, call C) error {
	if ctx.Err() != nil {
		return semantics.CancelledBy(ctx)
	}
	t := &ticket[C]{call: call, turn: make(chan []*ticket[C], 1)}
	j.mu.Lock()
	q := j.queues[key]
	if q == nil {
		if j.queues == nil {
			j.queues = map[string]*batchQueue[C]{}
		}
		q = &batchQueue[C]{}
		j.queues[key] = q
	}
	q.waiting = append(q.waiting, t)
	q.weight += j.weigh(call)
	j.dispatch(q)
	j.mu.Unlock()

	select {
	case batch := <-t.turn:
		j.lead(ctx, key, q, batch)
	case <-ctx.Done():
		if j.withdraw(q, t) {
			return semantics.CancelledBy(ctx)
		}
		j.lead(ctx, key, q, <-t.turn)
	}
	return nil
}

// lead runs a batch; an empty one means that another call ran it.
func (j *joiner[C]) lead(ctx context.Context, key string, q *batchQueue[C], batch []*ticket[C]) {
	if len(batch) == 0 {
		return
	}
	// Also when run panics, so that the key is not blocked for ever.
	defer func() {
		j.mu.Lock()
		q.going--
		j.dispatch(q)
		if q.going == 0 {
			delete(j.queues, key)
		}
		j.mu.Unlock()
		for _, t := range batch[1:] {
			close(t.turn)
		}
	}()
	batch = j.gather(q, batch)
	calls := make([]C, len(batch))
	for i, t := range batch {
		calls[i] = t.call
	}
	j.run(context.WithoutCancel(ctx), calls)
}

// gather lets other goroutines run that are ready to, until no more of their calls join the batch, or they fill it. The
// callers of the last batch have just got their answers, and most make the next call of their work: so they share a
// script instead of a short one leaving first. A lone caller does not wait: only calls behind a batch of several
// gather.
func (j *joiner[C]) gather(q *batchQueue[C], batch []*ticket[C]) []*ticket[C] {
	weight := 0
	for _, t := range batch {
		weight += j.weigh(t.call)
	}
	j.mu.Lock()
	gathers := q.shared || len(batch) > 1
	j.mu.Unlock()
	for inVain := 0; gathers && weight < j.full && inVain < yields; {
		runtime.Gosched()
		j.mu.Lock()
		joined, more := j.take(q, weight)
		j.mu.Unlock()
		if len(joined) == 0 {
			inVain++
			continue
		}
		batch, weight, inVain = append(batch, joined...), weight+more, 0
	}
	j.mu.Lock()
	q.shared = len(batch) > 1
	j.mu.Unlock()
	return batch
}

// dispatch sends the calls that may be sent now. The caller holds the mutex.
func (j *joiner[C]) dispatch(q *batchQueue[C]) {
	for len(q.waiting) > 0 && (q.going == 0 || q.going < width && q.weight >= j.full) {
		batch, _ := j.take(q, 0)
		q.going++
		batch[0].turn <- batch
	}
}

// take removes the first waiting calls that share a script with what weighs loaded, and returns them with their weight.
// The caller holds the mutex.
func (j *joiner[C]) take(q *batchQueue[C], loaded int) (taken []*ticket[C], weight int) {
	n := 0
	for n < len(q.waiting) {
		w := j.weigh(q.waiting[n].call)
		if loaded+weight > 0 && loaded+weight+w > j.most {
			break
		}
		weight += w
		n++
	}
	taken = slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.weight -= weight
	return taken, weight
}

// withdraw removes a call from its batch queue and reports whether it was still there.
func (j *joiner[C]) withdraw(q *batchQueue[C], t *ticket[C]) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.Index(q.waiting, t)
	if at < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	q.weight -= j.weigh(t.call)
	return true
}

// piecesOf divides calls, in their order, into pieces that weigh no more than most. A single heavier call is a piece of
// its own.
func piecesOf[C any, Calls ~[]C](calls Calls, weight func(Calls) int, most int) []Calls {
	var pieces []Calls
	for len(calls) > 0 {
		n, sum := 1, weight(calls[:1])
		for n < len(calls) {
			if sum += weight(calls[n : n+1]); sum > most {
				break
			}
			n++
		}
		pieces, calls = append(pieces, slices.Clip(calls[:n])), calls[n:]
	}
	return pieces
}
