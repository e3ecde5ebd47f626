package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// wakeups is this process' one subscription connection. Each watched queue has a channel of its own per sidecar, named
// after its waiting list, on which scripts publish how many messages came: "<count>". All held sessions of a queue
// share one channel per sidecar, and so do all sessions whose end a call waits for; there "<count> <topic>" names the
// session.
type wakeups struct {
	client   *redis.Client
	lifetime context.Context //nolint:containedctx // of the connection, which outlives every watch

	// wire keeps subscriptions and their ends in the order in which channels come and go, and does not block deliver
	// while Redis is slow. It is locked before mu.
	wire   sync.Mutex
	pubsub *redis.PubSub // nil until the first watch; under wire

	mu       sync.Mutex
	channels map[string]*wakeChannel
	work     sync.WaitGroup
}

type wakeChannel struct {
	watches map[string][]*watch // by topic, "" = the queue itself
	stands  chan struct{}       // closed when Redis has confirmed the subscription
	stood   bool
}

type watch struct {
	from    *wakeups
	channel string
	topic   string
	c       chan int
	leave   func(context.Context) // removes the sidecar from the waiting list of the channel; nil: it is on none
}

func newWakeups(client *redis.Client) *wakeups {
	return &wakeups{client: client, lifetime: context.Background(), channels: map[string]*wakeChannel{}}
}

// Watch implements semantics.Receiver.
func (s *Store) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	keys := s.keysOf(source)
	switch {
	case !source.SessionLock.IsZero():
		return s.wakeups.watch(
			ctx, &watch{channel: keys.key("session_waiting") + ":" + s.sidecar, topic: sessionToken(source)},
		)
	case source.Session != "":
		return s.wakeups.watch(
			ctx, &watch{channel: keys.key("session_locks") + ":ended", topic: sessionKey(source.Session)},
		)
	default:
		return s.wakeups.watch(ctx, &watch{
			channel: keys.of(source.SubQueue).key("waiting") + ":" + s.sidecar,
			// if it fails, the name expires there (lua/lib/wake/wait_here.lua)
			leave: func(ctx context.Context) { _ = s.passOn(ctx, source, s.sidecar) },
		})
	}
}

// pingEvery is after how long without a message the connection is tested. Until then each waiter looks at its queue at
// least every 10 s, in case wake-ups are lost.
const pingEvery = 10 * time.Second

// watch starts a watch and blocks until Redis has confirmed its channel.
func (w *wakeups) watch(ctx context.Context, mine *watch) (*watch, error) {
	channel, topic := mine.channel, mine.topic
	mine.from, mine.c = w, make(chan int, 1)
	w.wire.Lock()
	w.mu.Lock()
	ch := w.channels[channel]
	isNew := ch == nil
	if isNew {
		ch = &wakeChannel{stands: make(chan struct{}), watches: map[string][]*watch{}}
		w.channels[channel] = ch
	}
	ch.watches[topic] = append(ch.watches[topic], mine)
	w.mu.Unlock()
	if isNew {
		w.subscribe(ctx, channel)
	}
	w.wire.Unlock()

	select {
	case <-ch.stands:
		return mine, nil
	case <-ctx.Done():
		mine.Close()
		return nil, unavailable(context.Cause(ctx), "Redis did not confirm a subscription in time").
			With(semantics.DetailCause, "redis_unreachable")
	}
}

// subscribe requests one more channel. It ignores a failure: the client connects again with all channels, and the
// confirmation has a deadline.
func (w *wakeups) subscribe(ctx context.Context, channel string) {
	if w.pubsub != nil {
		_ = w.pubsub.SSubscribe(ctx, channel)
		return
	}
	w.pubsub = w.client.SSubscribe(w.lifetime, channel)
	messages := w.pubsub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(pingEvery))
	w.work.Go(func() {
		for m := range messages {
			w.deliver(m)
		}
	})
}

// deliver passes one wake-up on. A second confirmation of a subscription means that the connection was lost, and
// perhaps wake-ups with it, so all waiters must look.
func (w *wakeups) deliver(message any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := message.(type) {
	case *redis.Message:
		number, topic, _ := strings.Cut(m.Payload, " ")
		count, err := strconv.Atoi(number)
		if ch := w.channels[m.Channel]; ch != nil && err == nil {
			ch.notify(topic, count)
		}
	case *redis.Subscription:
		ch := w.channels[m.Channel]
		if ch == nil || m.Kind != "ssubscribe" {
			return
		}
		if ch.stood {
			ch.notify("", 0)
			return
		}
		ch.stood = true
		close(ch.stands)
	}
}

// notify wakes the watches of a topic, all of them if there is none.
func (ch *wakeChannel) notify(topic string, count int) {
	if topic != "" {
		ch.wake(topic, count)
		return
	}
	for topic := range ch.watches {
		ch.wake(topic, count)
	}
}

func (ch *wakeChannel) wake(topic string, count int) {
	for _, one := range ch.watches[topic] {
		select {
		case one.c <- count:
		default:
			// The reader is behind. Two wake-ups become one that makes all waiters look.
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

// leaveTimeout bounds the script by which a sidecar leaves a waiting list.
const leaveTimeout = time.Second

// Close implements semantics.Watch. It blocks for one script, by which the sidecar leaves the waiting list while it
// still listens. A wake-up that arrives before is passed on to the next sidecar, and none arrives after.
func (w *watch) Close() {
	isLeaving := w.leave != nil && w.from.isLast(w)
	if isLeaving {
		ctx, cancel := context.WithTimeout(w.from.lifetime, leaveTimeout)
		w.leave(ctx)
		cancel()
	}
	w.from.wire.Lock()
	defer w.from.wire.Unlock()
	if w.from.drop(w, isLeaving) {
		// After a failure an unused channel stays subscribed until the connection ends.
		_ = w.from.pubsub.SUnsubscribe(w.from.lifetime, w.channel)
	}
}

// isLast reports whether a watch is the only one of its channel.
func (w *wakeups) isLast(one *watch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channels[one.channel]
	return ch != nil && len(ch.watches) == 1 && len(ch.watches[one.topic]) == 1 && ch.watches[one.topic][0] == one
}

// drop removes a watch and reports whether it was the last of its channel. Watches that came while it removed the
// sidecar from the waiting list look again, which puts the sidecar back there.
func (w *wakeups) drop(gone *watch, hasLeft bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channels[gone.channel]
	if ch == nil {
		return false
	}
	left := slices.DeleteFunc(ch.watches[gone.topic], func(one *watch) bool { return one == gone })
	ch.watches[gone.topic] = left
	if len(left) == 0 {
		delete(ch.watches, gone.topic)
	}
	if len(ch.watches) > 0 {
		if hasLeft {
			ch.notify("", 0)
		}
		return false
	}
	delete(w.channels, gone.channel)
	return true
}

func (w *wakeups) close() error {
	w.wire.Lock()
	pubsub := w.pubsub
	w.wire.Unlock()
	if pubsub == nil {
		return nil
	}
	err := pubsub.Close()
	w.work.Wait()
	return err
}
