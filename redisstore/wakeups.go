package redisstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// wakeups is what this process waits for. Each watched queue has a channel of its own per sidecar, named after its
// waiting list, on which scripts publish how many messages came: "<count>". All held sessions of a queue share one
// channel per sidecar, and so do all sessions whose end a call waits for; there "<count> <topic>" names the session, and
// on the former "<count> <topic> <topic> ..." several.
//
// There is one line to each server. Nothing here waits for a server while others wait for a lock: a server that hangs
// holds up only what waits for its own channels.
type wakeups struct {
	servers  servers
	lifetime context.Context //nolint:containedctx // of the lines, which outlive every watch
	end      context.CancelFunc
	work     sync.WaitGroup

	mu       sync.Mutex
	channels map[string]*wakeChannel
	lines    map[*redis.Client]*line // to servers that have or had a watched channel
}

type wakeChannel struct {
	line    *line               // to the server that has it, nil if that is not known
	watches map[string][]*watch // by topic, "" = the queue itself
	several bool                // a message names one topic or several, with spaces between them
	stands  chan struct{}       // closed when Redis has confirmed the subscription
	stood   bool
}

// anyTopic is the topic of a watch that hears of all topics of its channel.
const anyTopic = "*"

type watch struct {
	from    *wakeups
	channel string
	topic   string
	several bool // as of its channel
	c       chan int
	woken   []semantics.LockToken // sessions, of a watch of all
	leave   func(context.Context) // removes the sidecar from the waiting list of the channel; nil: it is on none
}

func newWakeups(servers servers) *wakeups {
	w := &wakeups{servers: servers, lines: map[*redis.Client]*line{}, channels: map[string]*wakeChannel{}}
	w.lifetime, w.end = context.WithCancel(context.Background())
	if _, isCluster := servers.(*cluster); isCluster {
		w.work.Go(w.followMoves)
	}
	return w
}

// Watch implements semantics.Receiver.
func (s *Store) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	keys := s.keysOf(source)
	switch {
	case source.HeldSessions:
		return s.wakeups.watch(ctx, s.watchHeld(keys, anyTopic))
	case !source.SessionLock.IsZero():
		return s.wakeups.watch(ctx, s.watchHeld(keys, sessionToken(source)))
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

// holder returns the name under which this sidecar waits for messages of sessions that it holds. Scripts publish
// several sessions together to a name with this end.
func (s *Store) holder() string { return s.sidecar + "+" }

func (s *Store) watchHeld(keys entityKeys, topic string) *watch {
	return &watch{channel: keys.key("session_waiting") + ":" + s.holder(), topic: topic, several: true}
}

// watch starts a watch and blocks until Redis has confirmed its channel.
func (w *wakeups) watch(ctx context.Context, mine *watch) (*watch, error) {
	mine.from, mine.c = w, make(chan int, 1)
	ch, isNew := w.add(mine)
	if isNew {
		home, err := w.servers.of(ctx, mine.channel)
		if err == nil { // else followMoves finds it
			w.place(mine.channel, ch, home)
		}
	}
	select {
	case <-ch.stands:
		return mine, nil
	case <-ctx.Done():
		mine.Close()
		return nil, unavailable(context.Cause(ctx), "Redis did not confirm a subscription in time").
			With(semantics.DetailCause, "redis_unreachable")
	}
}

// add puts a watch on its channel, and reports whether that is new.
func (w *wakeups) add(one *watch) (ch *wakeChannel, isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch = w.channels[one.channel]
	if ch == nil {
		isNew = true
		ch = &wakeChannel{stands: make(chan struct{}), watches: map[string][]*watch{}, several: one.several}
		w.channels[one.channel] = ch
	}
	ch.watches[one.topic] = append(ch.watches[one.topic], one)
	return ch, isNew
}

// place puts a channel on the line to the server that has it, unless its last watch has left meanwhile.
func (w *wakeups) place(channel string, ch *wakeChannel, home *redis.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels[channel] != ch || ch.line != nil && ch.line.server == home || w.lifetime.Err() != nil {
		return
	}
	if ch.line != nil {
		ch.line.leave(channel)
	}
	if w.lines[home] == nil {
		w.lines[home] = w.newLine(home)
	}
	ch.line = w.lines[home]
	ch.line.join(channel)
}

// followEvery is how often followMoves looks. The client of a cluster learns of a move from the calls that it
// redirects.
const followEvery = time.Second

// followMoves puts the channels of slots that have moved on the lines to their new servers, after a failover or when
// the cluster grows.
func (w *wakeups) followMoves() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.followOnce()
		case <-w.lifetime.Done():
			return
		}
	}
}

func (w *wakeups) followOnce() {
	w.mu.Lock()
	channels := maps.Clone(w.channels)
	w.mu.Unlock()
	for channel, ch := range channels {
		if home, err := w.servers.of(w.lifetime, channel); err == nil {
			w.place(channel, ch, home)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for home, line := range w.lines {
		if line.isUnused() { // the server may be gone, so it is not told
			line.end()
			delete(w.lines, home)
		}
	}
}

// wake passes one wake-up on.
func (w *wakeups) wake(m *redis.Message) {
	number, topic, _ := strings.Cut(m.Payload, " ")
	count, err := strconv.Atoi(number)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.channels[m.Channel]; ch != nil && err == nil {
		ch.notify(topic, count)
	}
}

// stand notes that Redis has confirmed the subscription of a channel. A second time means that the subscription was
// lost, and perhaps wake-ups with it, so all waiters must look.
func (w *wakeups) stand(channel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channels[channel]
	switch {
	case ch == nil:
	case ch.stood:
		ch.notify("", 0)
	default:
		ch.stood = true
		close(ch.stands)
	}
}

// notify wakes the watches of a topic, all of them if there is none.
func (ch *wakeChannel) notify(topic string, count int) {
	if ch.several && topic != "" {
		for one := range strings.SplitSeq(topic, " ") {
			ch.wake(one, count)
			ch.noteWoken(one)
		}
		return
	}
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

// noteWoken passes the wake-up of a session to the watches of all sessions. One that a watch has not taken yet stands
// for later ones too.
func (ch *wakeChannel) noteWoken(topic string) {
	for _, one := range ch.watches[anyTopic] {
		token, err := semantics.ParseLockToken(topic)
		if err != nil {
			continue
		}
		one.woken = append(one.woken, token)
		select {
		case one.c <- 1:
		default:
		}
	}
}

// C implements semantics.Watch.
func (w *watch) C() <-chan int { return w.c }

// Sessions implements semantics.Watch.
func (w *watch) Sessions() []semantics.LockToken {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	woken := w.woken
	w.woken = nil
	return woken
}

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
	w.from.drop(w, isLeaving)
}

// isLast reports whether a watch is the only one of its channel.
func (w *wakeups) isLast(one *watch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channels[one.channel]
	return ch != nil && len(ch.watches) == 1 && len(ch.watches[one.topic]) == 1 && ch.watches[one.topic][0] == one
}

// drop removes a watch, and its channel if it was the last one there. Watches that came while it removed the sidecar
// from the waiting list look again, which puts the sidecar back there.
func (w *wakeups) drop(gone *watch, hasLeft bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.channels[gone.channel]
	if ch == nil {
		return
	}
	left := slices.DeleteFunc(ch.watches[gone.topic], func(one *watch) bool { return one == gone })
	ch.watches[gone.topic] = left
	if len(left) == 0 {
		delete(ch.watches, gone.topic)
	}
	switch {
	case len(ch.watches) == 0:
		delete(w.channels, gone.channel)
		if ch.line != nil {
			ch.line.leave(gone.channel)
		}
	case hasLeft:
		ch.notify("", 0)
	}
}

// close ends all lines.
func (w *wakeups) close() {
	w.mu.Lock() // no line begins any more
	w.end()
	w.mu.Unlock()
	w.work.Wait()
}
