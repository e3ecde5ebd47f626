package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// pingEvery is after how long without a word from the server it is asked for one. Until then each waiter looks at
	// its queue at least every 10 s, in case wake-ups are lost.
	pingEvery = 10 * time.Second
	// confirmWithin is how long a server has to confirm a subscription, and to answer a ping.
	confirmWithin = 2 * time.Second
)

// errSilent means that a server has not answered in time.
var errSilent = errors.New("the server says nothing")

// hearing is one connection of a line.
type hearing struct {
	line    *line
	wakeups *wakeups
	pubsub  *redis.PubSub
	heard   atomic.Pointer[time.Time] // when the server said something last

	subscribed map[string]bool // channels that were asked for
	pinged     time.Time       // zero: nothing is awaited
	reading    sync.WaitGroup
	lost       chan struct{} // closed when the connection is lost; nil: nothing was asked for yet
}

func newHearing(ctx context.Context, l *line, w *wakeups) *hearing {
	l.forget()
	h := &hearing{line: l, wakeups: w, pubsub: l.server.SSubscribe(ctx), subscribed: map[string]bool{}}
	now := time.Now()
	h.heard.Store(&now)
	return h
}

// run subscribes to what the line wants until the connection fails, the server is silent, or ctx ends.
func (h *hearing) run(ctx context.Context) {
	defer h.reading.Wait()
	defer h.pubsub.Close() //nolint:errcheck // the connection is of no use any more
	for {
		next, err := h.keepUp(ctx)
		if err != nil {
			return
		}
		again := time.NewTimer(next)
		select {
		case <-h.line.changed:
		case <-again.C:
		case <-h.lost:
			again.Stop()
			return
		case <-ctx.Done():
			again.Stop()
			return
		}
		again.Stop()
	}
}

// keepUp asks for what is wanted, ends what is not, and pings. It returns after how long it must be called again.
func (h *hearing) keepUp(ctx context.Context) (time.Duration, error) {
	ask, next, err := h.line.due(time.Now(), *h.heard.Load())
	if err != nil {
		return 0, err
	}
	for _, channel := range h.line.unwanted(h.subscribed) {
		delete(h.subscribed, channel)
		if err := h.pubsub.SUnsubscribe(ctx, channel); err != nil {
			return 0, err
		}
	}
	for _, channel := range ask {
		h.subscribed[channel] = true
		if err := h.pubsub.SSubscribe(ctx, channel); err != nil { // connects, the first time
			return 0, err
		}
	}
	if h.lost == nil && len(ask) > 0 {
		h.lost = make(chan struct{})
		h.reading.Go(func() {
			defer close(h.lost)
			h.read(ctx)
		})
	}
	ping, err := h.ping(ctx)
	if next == 0 || ping < next {
		next = ping
	}
	return next, err
}

// ping asks a server that has said nothing for a while for a word, and fails if it does not come. It returns after how
// long to look again.
func (h *hearing) ping(ctx context.Context) (time.Duration, error) {
	if h.lost == nil { // there is no connection
		return pingEvery, nil
	}
	heard := *h.heard.Load()
	if heard.After(h.pinged) {
		h.pinged = time.Time{}
	}
	quiet, waited := time.Since(heard), time.Since(h.pinged)
	switch {
	case h.pinged.IsZero() && quiet < pingEvery:
		return pingEvery - quiet, nil
	case h.pinged.IsZero():
		h.pinged = time.Now()
		return confirmWithin, h.pubsub.Ping(ctx)
	case waited < confirmWithin:
		return confirmWithin - waited, nil
	default:
		return 0, errSilent
	}
}

// read passes on what the server says until the connection fails.
func (h *hearing) read(ctx context.Context) {
	for {
		message, err := h.pubsub.Receive(ctx)
		var refusal redis.Error
		if err != nil && !errors.As(err, &refusal) { // a refusal is about a slot that the server does not have
			return
		}
		now := time.Now()
		h.heard.Store(&now)
		switch m := message.(type) {
		case *redis.Message:
			h.wakeups.wake(m)
		case *redis.Subscription:
			isConfirmed := m.Kind == "ssubscribe"
			h.line.confirm(m.Channel, isConfirmed)
			if isConfirmed {
				h.wakeups.stand(m.Channel)
			}
		}
	}
}
