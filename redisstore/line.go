package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The pauses between connections of a line that fail.
const (
	minLinePause = 50 * time.Millisecond
	maxLinePause = time.Second
)

// line is the way on which the wake-ups of one server come. Callers only say which channels they want, and never wait:
// a goroutine connects and subscribes, and does so again when a connection is lost or the server is silent. It leaves
// neither to the client, which waits for ever for a server that hangs, and which asks with one command for channels of
// several slots.
type line struct {
	server  *redis.Client
	changed chan struct{}      // capacity 1: other channels are wanted than before
	end     context.CancelFunc // ends the line

	mu     sync.Mutex
	wanted map[string]*subscription
}

// subscription is a channel that is wanted.
type subscription struct {
	asked       time.Time // when the server was asked for it, zero: not over this connection
	isConfirmed bool
}

func (w *wakeups) newLine(server *redis.Client) *line {
	ctx, end := context.WithCancel(w.lifetime)
	l := &line{server: server, changed: make(chan struct{}, 1), end: end, wanted: map[string]*subscription{}}
	w.work.Go(func() { l.run(ctx, w) })
	return l
}

// run makes one connection after the other until ctx ends.
func (l *line) run(ctx context.Context, w *wakeups) {
	pause := minLinePause
	for {
		began := time.Now()
		newHearing(ctx, l, w).run(ctx)
		if time.Since(began) > maxLinePause {
			pause = minLinePause
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			pause = min(2*pause, maxLinePause)
		case <-ctx.Done():
			again.Stop()
			return
		}
	}
}

// join wants a channel.
func (l *line) join(channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted[channel] = &subscription{}
	signal(l.changed)
}

// leave wants a channel no more.
func (l *line) leave(channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wanted, channel)
	signal(l.changed)
}

func (l *line) isUnused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.wanted) == 0
}

// confirm notes that the server has begun or ended a subscription.
func (l *line) confirm(channel string, isConfirmed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.wanted[channel]; one != nil {
		one.isConfirmed = isConfirmed
		signal(l.changed)
	}
}

// forget notes that nothing was asked for over a new connection.
func (l *line) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.wanted {
		*one = subscription{}
	}
}

// due returns the channels to ask for, and when to look again; zero: when something changes. A server refuses those of
// slots that it does not have yet, so they are asked for again. It fails if one is not confirmed though the server has
// said nothing since it was asked for.
func (l *line) due(now, heard time.Time) (ask []string, next time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel, one := range l.wanted {
		waited := now.Sub(one.asked)
		switch {
		case one.isConfirmed:
			continue
		case one.asked.IsZero():
		case waited < confirmWithin:
			next = confirmWithin - waited
			continue
		case heard.Before(one.asked):
			return nil, 0, errSilent
		}
		one.asked, next = now, confirmWithin
		ask = append(ask, channel)
	}
	return ask, next, nil
}

// unwanted returns those of some channels that are not wanted any more.
func (l *line) unwanted(subscribed map[string]bool) (drop []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel := range subscribed {
		if l.wanted[channel] == nil {
			drop = append(drop, channel)
		}
	}
	return drop
}
