package redisstore

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// wakeups is this process' one subscription connection. Each watched source has a channel of its own per sidecar, named
// after its waiting list, on which scripts tell how many messages came.
type wakeups struct {
	client   *redis.Client
	lifetime context.Context //nolint:containedctx // of the connection, which outlives every watch

	mu       sync.Mutex
	pubsub   *redis.PubSub // nil until the first watch
	channels map[string]*wakeChannel
	work     sync.WaitGroup
}

type wakeChannel struct {
	watches []*watch
	stands  chan struct{} // closed when Redis has confirmed the subscription
	stood   bool
}

type watch struct {
	from    *wakeups
	channel string
	c       chan int
}

func newWakeups(client *redis.Client) *wakeups {
	return &wakeups{client: client, lifetime: context.Background(), channels: map[string]*wakeChannel{}}
}

// Watch implements semantics.Receiver.
func (s *Store) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	waiting := s.keys(source.Path).of(source.SubQueue)[4]
	return s.wakeups.watch(ctx, waiting+":"+s.sidecar)
}

func (w *wakeups) watch(ctx context.Context, channel string) (*watch, error) {
	mine := &watch{from: w, channel: channel, c: make(chan int, 1)}
	w.mu.Lock()
	ch := w.channels[channel]
	var err error
	if ch == nil {
		ch = &wakeChannel{stands: make(chan struct{})}
		err = w.subscribe(ctx, channel)
	}
	if err != nil {
		w.mu.Unlock()
		return nil, storeError(err, false)
	}
	w.channels[channel] = ch
	ch.watches = append(ch.watches, mine)
	w.mu.Unlock()

	select {
	case <-ch.stands:
		return mine, nil
	case <-ctx.Done():
		mine.Close()
		return nil, storeError(context.Cause(ctx), false)
	}
}

func (w *wakeups) subscribe(ctx context.Context, channel string) error {
	if w.pubsub != nil {
		return w.pubsub.SSubscribe(ctx, channel)
	}
	w.pubsub = w.client.SSubscribe(w.lifetime, channel)
	messages := w.pubsub.ChannelWithSubscriptions()
	w.work.Go(func() {
		for m := range messages {
			w.deliver(m)
		}
	})
	return nil
}

// deliver hands on one wake-up. A subscription confirmed for the second time means that the connection was lost and with
// it perhaps wake-ups, so everyone must look.
func (w *wakeups) deliver(message any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := message.(type) {
	case *redis.Message:
		count, err := strconv.Atoi(m.Payload)
		if ch := w.channels[m.Channel]; ch != nil && err == nil {
			ch.wake(count)
		}
	case *redis.Subscription:
		ch := w.channels[m.Channel]
		if ch == nil || m.Kind != "ssubscribe" {
			return
		}
		if ch.stood {
			ch.wake(0)
			return
		}
		ch.stood = true
		close(ch.stands)
	}
}

func (ch *wakeChannel) wake(count int) {
	for _, one := range ch.watches {
		select {
		case one.c <- count:
		default:
			// The reader is behind. Two wake-ups become one that makes everyone look.
			select {
			case <-one.c:
			default:
			}
			one.c <- 0
		}
	}
}

// C implements semantics.Watch.
func (w *watch) C() <-chan int { return w.c }

// Close implements semantics.Watch. It does not block on Redis' answer.
func (w *watch) Close() {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	ch := w.from.channels[w.channel]
	if ch == nil {
		return
	}
	for i, one := range ch.watches {
		if one == w {
			ch.watches = append(ch.watches[:i:i], ch.watches[i+1:]...)
		}
	}
	if len(ch.watches) > 0 {
		return
	}
	delete(w.from.channels, w.channel)
	// A failure only leaves a channel subscribed that nobody reads, until the connection ends.
	_ = w.from.pubsub.SUnsubscribe(w.from.lifetime, w.channel)
}

func (w *wakeups) close() error {
	w.mu.Lock()
	pubsub := w.pubsub
	w.mu.Unlock()
	if pubsub == nil {
		return nil
	}
	err := pubsub.Close()
	w.work.Wait()
	return err
}
