package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// A member of one key stands for something in another: a position for a message, a session for its record. Somebody who
// changes a key by hand can take one away and leave the other. Then it is dropped or made right, and the entity works
// on. These tests take away each half of each pair in turn, of an entity that has messages in every state, and use
// every verb.

// kept is what an entity has in Redis, by what follows the namespace.
type kept map[string]string

func keep(t *testing.T, raw *redis.Client, namespace string) kept {
	t.Helper()
	all := kept{}
	for _, pattern := range []string{"sb:{" + namespace + "/*", "sb:{" + namespace + "}*"} {
		for _, key := range raw.Keys(t.Context(), pattern).Val() {
			all[strings.TrimPrefix(key, "sb:{"+namespace)] = raw.Dump(t.Context(), key).Val()
		}
	}
	return all
}

// restored gives a store with a copy of what is kept.
func (k kept) restored(t *testing.T, clock *storetest.Clock) *swept {
	t.Helper()
	s := openSwept(t, redisstore.Options{Now: clock.Now})
	for key, value := range k {
		must(t, s.raw.Restore(t.Context(), "sb:{"+s.namespace+key, 0, value).Err())
	}
	return s
}

// loss takes something away from a key, which is given without its namespace.
type loss struct {
	what, key string
	take      func(ctx context.Context, c *redis.Client, key string) error
}

// some are at most four of many members, which would all do the same.
func some(members []string) []string {
	for len(members) > 4 {
		members = slices.Delete(members, 1, 2)
	}
	return members
}

// losses are what can be taken away: every message, some members of every key, and every key as a whole.
func losses(t *testing.T, s *swept) []loss {
	t.Helper()
	var all []loss
	add := func(what, key string, take func(ctx context.Context, c *redis.Client, key string) error) {
		all = append(all, loss{what, strings.TrimPrefix(key, "sb:{"+s.namespace), take})
	}
	for _, key := range s.raw.Keys(t.Context(), "sb:{"+s.namespace+"/*").Val() {
		if strings.HasSuffix(key, ":entity") || strings.HasSuffix(key, "}:subscriptions") || strings.HasSuffix(key, "}:rules") {
			continue
		}
		add("all", key, func(ctx context.Context, c *redis.Client, key string) error { return c.Del(ctx, key).Err() })
		switch s.raw.Type(t.Context(), key).Val() {
		case "stream":
			for _, m := range s.raw.XRange(t.Context(), key, "-", "+").Val() {
				add(m.ID, key, func(ctx context.Context, c *redis.Client, key string) error { return c.XDel(ctx, key, m.ID).Err() })
			}
		case "zset":
			for _, m := range some(s.raw.ZRange(t.Context(), key, 0, -1).Val()) {
				add(m, key, func(ctx context.Context, c *redis.Client, key string) error { return c.ZRem(ctx, key, m).Err() })
			}
		case "hash":
			for _, m := range some(s.raw.HKeys(t.Context(), key).Val()) {
				add(m, key, func(ctx context.Context, c *redis.Client, key string) error { return c.HDel(ctx, key, m).Err() })
			}
		}
	}
	return all
}

// user uses an entity that something was taken away from. What it is told may be anything but a failure.
type user struct {
	*swept
	t      *testing.T
	clock  *storetest.Clock
	broker *broker.Broker
	after  string // what was taken away
}

func (u *user) ok(verb string, err error) bool {
	u.t.Helper()
	var known *semantics.Error
	if err == nil || (errors.As(err, &known) && known.Code != semantics.Internal) {
		return err == nil
	}
	u.t.Errorf("without %s: %s: %v", u.after, verb, err)
	return false
}

// sweep does what is due, which comes to an end.
func (u *user) sweep() {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), 20*time.Second)
	defer cancel()
	u.ok("sweep", u.SweepOnce(ctx, u.broker))
	if ctx.Err() != nil {
		u.t.Errorf("without %s: the sweep does not end", u.after)
	}
}

// look uses the verbs that look and those that take what they name.
func (u *user) look(source semantics.Source, numbers []int64) {
	u.t.Helper()
	ctx := u.t.Context()
	for _, show := range []semantics.Show{semantics.ShowAll, semantics.ShowDeferred, semantics.ShowScheduled, semantics.ShowLocked} {
		_, err := u.Peek(ctx, source, 1, 100, show)
		u.ok("peek", err)
	}
	for _, n := range numbers {
		_, err := u.ReceiveByNumber(ctx, source, semantics.Deferred, []int64{n})
		u.ok("receive deferred", err)
		_, err = u.ReceiveByNumber(ctx, source, semantics.Active, []int64{n})
		u.ok("receive by number", err)
	}
	u.ok("reactivate", u.Reactivate(ctx, source, numbers[len(numbers)/2:]))
}

// drain receives and settles what is there.
func (u *user) drain(source semantics.Source) (ids []string) {
	u.t.Helper()
	for empty := 0; empty < 25; { // what is left of a message that is gone takes a script of its own
		batch, err := u.Receive(u.t.Context(), source, 100, semantics.RegisterNever)
		if !u.ok("receive", err) {
			return ids
		}
		for i, m := range batch.Messages {
			ids = append(ids, m.MessageID)
			tokens := []semantics.LockToken{m.LockToken}
			switch i % 4 {
			case 0:
				_, err = u.DeadLetter(u.t.Context(), source, tokens, semantics.DeadLetterTexts{}, nil)
			case 1:
				_, err = u.Abandon(u.t.Context(), source, tokens, semantics.AbandonOptions{})
			default:
				_, err = u.Complete(u.t.Context(), source, tokens)
			}
			u.ok("settle", err)
		}
		if len(batch.Messages) == 0 {
			empty++
		}
	}
	return ids
}

// purge removes all that is there.
func (u *user) purge(source semantics.Source) {
	u.t.Helper()
	for _, show := range []semantics.Show{semantics.ShowAvailable, semantics.ShowDeferred, semantics.ShowScheduled} {
		_, err := u.Purge(u.t.Context(), source, semantics.Purge{Show: show, Limit: 100})
		u.ok("purge", err)
	}
}

// breakAll takes away each half of each pair in turn, with what follows. One goroutine does it all, so for the race
// detector a few are enough.
func breakAll(t *testing.T, s *swept, clock *storetest.Clock, use func(u *user)) {
	t.Helper()
	whole, start := keep(t, s.raw, s.namespace), clock.Now()
	all := losses(t, s)
	for i, d := range all {
		if testing.Short() && i%10 != 0 {
			continue
		}
		t.Run(d.key, func(t *testing.T) { // which closes the store and removes the copy
			clock := storetest.NewClock()
			clock.Advance(start.Sub(clock.Now()))
			copied := whole.restored(t, clock)
			must(t, d.take(t.Context(), copied.raw, "sb:{"+copied.namespace+d.key))
			broker := brokerOver(copied.Store)
			defer broker.Close()
			use(&user{swept: copied, t: t, clock: clock, broker: broker, after: fmt.Sprintf("%q of %s", d.what, d.key)})
		})
	}
	t.Logf("%d losses", len(all))
}

// everyState puts messages into an entity in every state: send gives it one, which is the next to be received from
// source. It returns the numbers.
func everyState(t *testing.T, s semantics.Store, source semantics.Source, send func(*semantics.Message)) []int64 {
	t.Helper()
	ctx, n := t.Context(), 0
	next := func(life *time.Duration) {
		n++
		send(&semantics.Message{MessageID: fmt.Sprint("m", n), TimeToLive: life, SessionID: "a"})
	}
	take := func(source semantics.Source, life *time.Duration) []semantics.LockToken {
		t.Helper()
		if source.SubQueue == semantics.MainQueue {
			next(life)
		}
		batch, err := s.Receive(ctx, source, 1, semantics.RegisterNever)
		must(t, err)
		if len(batch.Messages) != 1 {
			t.Fatalf("message %d is not to be had", n)
		}
		return []semantics.LockToken{batch.Messages[0].LockToken}
	}
	done := func(codes []semantics.Code, err error) {
		t.Helper()
		must(t, err)
		if codes[0] != "" {
			t.Fatal(codes)
		}
	}
	life := ofMinutes(5)
	changed := map[string]semantics.Value{"color": semantics.String("red")}
	for _, life := range []*time.Duration{nil, life} {
		done(s.Defer(ctx, source, take(source, life), changed))
		done(s.Abandon(ctx, source, take(source, life), semantics.AbandonOptions{Delay: ofMinutes(3), SkipOrder: true, Properties: changed}))
		take(source, life) // stays locked
		done(s.DeadLetter(ctx, source, take(source, life), semantics.DeadLetterTexts{}, changed))
		done(s.DeadLetter(ctx, source, take(source, life), semantics.DeadLetterTexts{}, nil))
	}
	dead := semantics.Source{Path: source.Path, SubQueue: semantics.DeadLetterQueue}
	take(dead, nil)
	done(s.Abandon(ctx, dead, take(dead, nil), semantics.AbandonOptions{Delay: ofMinutes(1)}))
	done(s.Defer(ctx, dead, take(dead, nil), nil))
	_, err := s.ReceiveByNumber(ctx, source, semantics.Deferred, []int64{1})
	must(t, err)
	done(s.Abandon(ctx, source, take(source, nil), semantics.AbandonOptions{}))
	next(nil)
	next(life)
	numbers := make([]int64, n+3)
	for i := range numbers {
		numbers[i] = int64(i + 1)
	}
	return numbers
}

// rich are the options of an entity that has as many keys as there can be.
func rich(o *semantics.Options) {
	o.MaxDeliveryCount, o.DeadLetteringOnMessageExpiration, o.DeadLetterTTL = 3, true, 10*time.Minute
	o.ExpireDeferred = true
}

func TestOrphansOfAQueue(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.make("orders", rich, remembering)
	numbers := everyState(t, s, orders, func(m *semantics.Message) { s.send(t, m) })
	for i := range 3 {
		s.send(t, &semantics.Message{MessageID: fmt.Sprint("s", i), ScheduledAt: s.clock.Now().Add(time.Duration(i) * 5 * time.Minute).Add(time.Minute)})
	}
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	breakAll(t, s.swept, s.clock, func(u *user) {
		ctx := u.t.Context()
		u.look(orders, numbers)
		u.look(dead, numbers)
		u.ok("cancel", u.CancelScheduled(ctx, "orders", numbers[len(numbers)-1:]))
		_, err := u.CancelScheduledByID(ctx, "orders", []string{"s1", "s2"})
		u.ok("cancel by id", err)
		_, err = u.Runtime(ctx, semantics.QueueKind, "orders")
		u.ok("runtime", err)
		for range 3 {
			u.sweep()
			u.clock.Advance(3 * time.Minute)
		}
		var letters []semantics.Resubmission
		for _, n := range numbers {
			letters = append(letters, semantics.Resubmission{SequenceNumber: n, MessageID: fmt.Sprint("again", n)})
		}
		_, err = u.Resubmit(ctx, dead, "orders", letters, false)
		u.ok("resubmit", err)
		u.worksOn(orders, &semantics.Message{MessageID: "new"})
		u.drain(dead)
		u.clock.Advance(time.Hour)
		u.sweep()
		u.purge(orders)
		u.purge(dead)
		u.ok("delete", u.DeleteEntity(ctx, semantics.QueueKind, "orders"))
	})
}

// worksOn checks that what is sent can be received, and that nothing stays due for ever.
func (u *user) worksOn(source semantics.Source, m *semantics.Message) {
	u.t.Helper()
	_, err := u.Send(u.t.Context(), source.Path, []*semantics.Message{m})
	if !u.ok("send", err) {
		return
	}
	for _, id := range u.drain(source) {
		if id == m.MessageID {
			return
		}
	}
	u.t.Errorf("without %s: what is sent cannot be received", u.after)
}

func TestOrphansOfSessions(t *testing.T) {
	t.Parallel()
	for _, mode := range []semantics.SessionExpiryMode{semantics.ExpireMessage, semantics.ExpireSession} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openSessions(t, rich, remembering, func(o *semantics.Options) {
				o.SessionInFlight, o.SessionExpiryMode, o.SessionStateTTL, o.LockDuration = 100, mode, time.Hour, 5*time.Minute
			})
			held := s.accept("a")
			numbers := everyState(t, s, held, func(m *semantics.Message) { s.send(t, m) })
			s.setState(held, []byte("note"))
			for i := range 3 {
				session := fmt.Sprint("b", i)
				s.sendTo(session, 2)
				s.send(t, &semantics.Message{MessageID: session, SessionID: session, ScheduledAt: s.clock.Now().Add(time.Minute)})
			}
			other := s.accept("b1")
			s.setState(other, []byte("note"))
			s.closes(other)
			s.accept("b2")
			at := s.accept("rests") // nothing but a state
			s.setState(at, []byte("note"))
			s.closes(at)
			dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
			breakAll(t, s.swept, s.clock, func(u *user) {
				ctx := u.t.Context()
				u.look(held, numbers)
				u.look(dead, numbers)
				u.drain(held)
				_, _, err := u.ListSessions(ctx, "orders", "", 100, semantics.SessionFilter{})
				u.ok("list", err)
				_, err = u.SessionState(ctx, held)
				u.ok("state", err)
				_, err = u.RenewSessionLock(ctx, held)
				u.ok("renew", err)
				for range 3 {
					u.sweep()
					u.clock.Advance(3 * time.Minute)
				}
				u.ok("close", u.CloseSession(ctx, held))
				_, err = u.Runtime(ctx, semantics.QueueKind, "orders")
				u.ok("runtime", err)
				u.ok("unblock", u.UnblockSession(ctx, "orders", "a"))
				for range 10 {
					session, _, err := u.AcceptNextSession(ctx, "orders", semantics.RegisterNever)
					if !u.ok("accept next", err) || session == nil {
						break
					}
					u.drain(semantics.Source{Path: "orders", SessionLock: session.Lock})
				}
				u.clock.Advance(6 * time.Minute)
				u.sweep()
				for _, id := range []string{"a", "b0", "b1", "b2", "rests", "new"} {
					session, err := u.AcceptSession(ctx, "orders", id)
					if !u.ok("accept", err) {
						u.t.Errorf("without %s: session %s cannot be had: %v", u.after, id, err)
						continue
					}
					source := semantics.Source{Path: "orders", SessionLock: session.Lock}
					u.worksOn(source, &semantics.Message{MessageID: "new in " + id, SessionID: id})
					u.purge(source)
				}
				u.drain(dead)
				u.clock.Advance(2 * time.Hour)
				u.sweep()
				u.purge(orders)
				u.ok("delete", u.DeleteEntity(ctx, semantics.QueueKind, "orders"))
			})
		})
	}
}

func TestOrphansOfATopic(t *testing.T) {
	t.Parallel()
	s := openTopics(t, remembering)
	s.subscribe("eu", rich)
	s.subscribe("us", func(o *semantics.Options) { o.RequiresSession = true })
	send := func(m *semantics.Message) { must(t, s.publish(m, copiesOf(m, "eu", "us")...).Err) }
	numbers := everyState(t, s, of("eu"), send)
	for i := range 3 {
		m := &semantics.Message{MessageID: fmt.Sprint("s", i), SessionID: "a", ScheduledAt: s.clock.Now().Add(time.Duration(i+1) * 3 * time.Minute)}
		send(m)
	}
	breakAll(t, s.swept, s.clock, func(u *user) {
		ctx := u.t.Context()
		u.look(semantics.Source{Path: "news"}, numbers)
		u.look(of("eu"), numbers)
		_, err := u.CancelScheduledByID(ctx, "news", []string{"s1"})
		u.ok("cancel by id", err)
		for range 3 {
			u.clock.Advance(3 * time.Minute)
			u.sweep()
			due, err := u.Due(ctx, "news", 10)
			if u.ok("due", err) && len(due) > 0 {
				u.t.Errorf("without %s: %d messages are still due after the sweep", u.after, len(due))
			}
		}
		_, err = u.Runtime(ctx, semantics.TopicKind, "news")
		u.ok("runtime", err)
		m := &semantics.Message{MessageID: "new", SessionID: "a"}
		u.ok("publish", publish(u.t, u.Store, semantics.Publication{Message: m, Copies: copiesOf(m, "eu", "us")}).Err)
		if got := u.drain(of("eu")); !slices.Contains(got, "new") {
			u.t.Errorf("without %s: what is sent does not arrive: %v", u.after, got)
		}
		u.ok("delete", u.DeleteEntity(ctx, semantics.TopicKind, "news"))
	})
}
