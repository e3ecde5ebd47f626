package partitioned

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// subscriptions are those to some sources, with a goroutine for each, which subscribes again where that fails.
type subscriptions struct {
	first chan error // what became of the first try of each
	tries int
	over  context.Context //nolint:containedctx // ends the goroutines, which outlive the call that began them
	stop  context.CancelFunc
	work  sync.WaitGroup
}

const (
	// subscribeWithin is how long one try to subscribe may take.
	subscribeWithin = 5 * time.Second
	// awaitOthers is for how long a watch waits for its last subscriptions when others stand.
	awaitOthers = 500 * time.Millisecond
)

// subscribe begins to pass on the wake-ups of the partitions of a queue.
func (w *watch) subscribe(ctx context.Context, of *whole, sources []semantics.Source) *subscriptions {
	all := &subscriptions{first: make(chan error, len(sources)), tries: len(sources)}
	all.over, all.stop = context.WithCancel(context.WithoutCancel(ctx))
	for p, source := range sources {
		all.work.Go(func() {
			for isFirst := true; ; isFirst = false {
				below, err := w.store.watchBelow(all.over, source)
				if err == nil {
					w.hear(of, p)
				}
				if isFirst {
					all.first <- inPartition(err, p)
				}
				if err == nil {
					w.passOn(all.over, p, below)
					return
				}
				if !pause(all.over, lookEvery) {
					return
				}
			}
		})
	}
	return all
}

// watchBelow tries once to subscribe to a partition.
func (s *Store) watchBelow(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	ctx, cancel := context.WithTimeout(ctx, subscribeWithin)
	defer cancel()
	return s.Store.Watch(ctx, source)
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// await waits until all subscriptions stand, or some, and the others not soon. It fails if none does.
func (all *subscriptions) await(ctx context.Context) error {
	var late <-chan time.Time
	var failed error
	for range all.tries {
		select {
		case err := <-all.first:
			if err != nil {
				failed = err
				continue
			}
			if late == nil {
				timer := time.NewTimer(awaitOthers)
				defer timer.Stop()
				late = timer.C
			}
		case <-late:
			return nil
		case <-ctx.Done():
			if late != nil {
				return nil
			}
			return cmp.Or(failed, error(semantics.Errorf(semantics.StoreUnavailable, "Redis did not confirm a subscription in time")))
		}
	}
	if late != nil {
		return nil
	}
	return failed
}

// passOn passes the wake-ups of a partition on until the watch ends.
func (w *watch) passOn(over context.Context, p int, below semantics.Watch) {
	defer below.Close()
	for {
		select {
		case n := <-below.C():
			w.noteSessions(p, below.Sessions())
			w.wake(p, n)
		case <-over.Done():
			return
		}
	}
}

func (all *subscriptions) end() {
	all.stop()
	all.work.Wait()
}
