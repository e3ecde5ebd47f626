package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// joiner makes concurrent calls of one kind on one key share script calls (group commit): while one script call is
// under way the next ones gather, and leave together when it returns. No timer, no goroutine: the first of
// those that gathered does the work for all. Calls of one key run one after the other, in order of arrival.
type joiner[C any] struct {
	run   func(ctx context.Context, key string, calls []C) // gives every call its outcome
	weigh func(C) int
	most  int // weight at which a shared call is full; a single heavier call still goes

	mu    sync.Mutex
	lanes map[string]*lane[C]
}

// lane is the queue before one key. It exists only while a call is under way.
type lane[C any] struct{ waiting []*ticket[C] }

type ticket[C any] struct {
	call C
	lead chan struct{} // closed when this one must do the work
	done chan struct{} // closed when its call has its outcome
}

// do carries out one call, alone or together with others. It blocks until the outcome is there; when ctx ends before the
// call was sent it returns CANCELLED and nothing was done. Once sent, a call is seen through, so that its
// outcome is known.
func (j *joiner[C]) do(ctx context.Context, key string, call C) error {
	j.mu.Lock()
	l := j.lanes[key]
	if l == nil {
		if j.lanes == nil {
			j.lanes = map[string]*lane[C]{}
		}
		l = &lane[C]{}
		j.lanes[key] = l
		j.mu.Unlock()
		defer j.handOver(key, l) // also when run panics, so that the key is not blocked for good
		j.run(context.WithoutCancel(ctx), key, []C{call})
		return nil
	}
	t := &ticket[C]{call: call, lead: make(chan struct{}), done: make(chan struct{})}
	l.waiting = append(l.waiting, t)
	j.mu.Unlock()

	select {
	case <-t.done:
	case <-t.lead:
		j.work(ctx, key, l)
	case <-ctx.Done():
		return j.withdraw(ctx, key, l, t)
	}
	return nil
}

// work sends as many of the waiting calls as fit into one.
func (j *joiner[C]) work(ctx context.Context, key string, l *lane[C]) {
	j.mu.Lock()
	n, weight := 0, 0
	for n < len(l.waiting) {
		weight += j.weigh(l.waiting[n].call)
		if n > 0 && weight > j.most {
			break
		}
		n++
	}
	tickets := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	j.mu.Unlock()

	defer func() {
		j.handOver(key, l)
		for _, t := range tickets {
			close(t.done)
		}
	}()
	calls := make([]C, n)
	for i, t := range tickets {
		calls[i] = t.call
	}
	j.run(context.WithoutCancel(ctx), key, calls)
}

// handOver makes the first of the waiting calls do the next round, or takes the lane away.
func (j *joiner[C]) handOver(key string, l *lane[C]) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(l.waiting) == 0 {
		delete(j.lanes, key)
		return
	}
	close(l.waiting[0].lead)
}

// withdraw takes back a call that was not sent yet, or waits for one that was.
func (j *joiner[C]) withdraw(ctx context.Context, key string, l *lane[C], t *ticket[C]) error {
	j.mu.Lock()
	at := slices.Index(l.waiting, t)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	j.mu.Unlock()
	if at < 0 {
		<-t.done
		return nil
	}
	select {
	case <-t.lead:
		j.handOver(key, l)
	default:
	}
	return &semantics.Error{Code: semantics.Cancelled, Message: "the caller went away", Err: context.Cause(ctx)}
}
