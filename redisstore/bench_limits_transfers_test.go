package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
)

// manySources are the sources that have forwarded to one destination. There is no bound: temporary queues come and go.
const manySources = 100_000

// transfers are the cases of forwarding: the most messages and the most bytes that one transfer may have, to a queue
// and to a topic.
func (l *limits) transfers() {
	l.fromQueueToQueue()
	l.fromQueueToTopic()
	l.arrivals()
}

// undeliverable gives the fates of n messages that go to the transfer dead-letter queue, or to that of their queue.
func undeliverable(keepsQueue bool) func(n int) []semantics.Fate {
	return func(n int) []semantics.Fate {
		return slices.Repeat([]semantics.Fate{dead(semantics.ReasonTooManyHops, keepsQueue)}, n)
	}
}

// way runs the three steps of one transfer, each a case of its own.
func (l *limits) way(what string, s *redisstore.Store, to string, version func() int64, fates func(n int) []semantics.Fate, ready func(), copies ...string) {
	ctx := l.b.Context()
	var transfer semantics.Transfer
	begin := func() { transfer = begin(l.b, s, orders, to, semantics.MaxReceiveMessages) }
	arrive := func() {
		arrivals, err := s.Arrive(ctx, transfer, version(), onward(transfer, copies...), true)
		must(l.b, err)
		for _, a := range arrivals {
			if a.Refused != "" {
				l.b.Fatalf("%s: refused with %s", what, a.Refused)
			}
		}
	}
	end := func() { must(l.b, s.EndTransfer(ctx, transfer, fates(len(transfer.Messages)))) }
	l.at(what, limitTimes, ready, func() { begin(); arrive(); end() })
}

func noVersion() int64 { return 0 }

func (l *limits) fromQueueToQueue() {
	ctx := l.b.Context()
	life := 24 * time.Hour
	roomy := func(o *semantics.Options) {
		o.MaxSizeInMegabytes, o.MaxMessageSizeInKilobytes = semantics.MaxSizeMegabytes, 102_400
	}
	s, send := l.queue(roomy, func(o *semantics.Options) { o.ForwardTo = archive.Path })
	must(l.b, makeQueue(l.b, s, archive.Path, roomy, func(o *semantics.Options) { o.RequiresDuplicateDetection = true }))
	send(65_000, semantics.Message{TimeToLive: &life})
	l.way("250 of 65,000 messages to a queue", s, archive.Path, noVersion, gone, nil)
	l.way("250 messages to the transfer dead letters", s, archive.Path, noVersion, undeliverable(false), nil)
	l.way("250 messages to the dead letters", s, archive.Path, noVersion, undeliverable(true), nil)
	for transfer := begin(l.b, s, orders, archive.Path, 250); len(transfer.Messages) > 0; transfer = begin(l.b, s, orders, archive.Path, 250) {
		must(l.b, s.EndTransfer(ctx, transfer, gone(len(transfer.Messages))))
	}
	some := func() {
		for range 2 { // one send may have 1 MiB
			send(125, semantics.Message{Body: make([]byte, 8<<10)})
		}
	}
	l.way("2 MiB of messages to a queue", s, archive.Path, noVersion, gone, some)
	l.way("2 MiB of messages to the transfer dead letters", s, archive.Path, noVersion, undeliverable(false), some)
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, archive.Path))
	s, send = l.queue(roomy, func(o *semantics.Options) { o.ForwardTo = archive.Path })
	must(l.b, makeQueue(l.b, s, archive.Path, roomy, func(o *semantics.Options) { o.RequiresSession = true }))
	l.way("250 messages to as many sessions", s, archive.Path, noVersion, gone, func() {
		messages := l.some(250, semantics.Message{})
		for _, m := range messages {
			m.SessionID = m.MessageID
		}
		_, err := s.Send(ctx, "orders", messages)
		must(l.b, err)
	})
	one := func() { send(1, semantics.Message{Body: make([]byte, 99<<20), SessionID: "s"}) }
	l.way("one message of 99 MiB to a queue", s, archive.Path, noVersion, gone, one)
	l.way("one message of 99 MiB to the transfer dead letters", s, archive.Path, noVersion, undeliverable(false), one)
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, archive.Path))
}

func (l *limits) fromQueueToTopic() {
	ctx := l.b.Context()
	roomy := func(o *semantics.Options) { o.MaxSizeInMegabytes = semantics.MaxSizeMegabytes }
	s, send := l.queue(func(o *semantics.Options) { o.ForwardTo = "news" })
	must(l.b, createTopic(l.b, s, roomy, func(o *semantics.Options) { o.RequiresDuplicateDetection = true }))
	version := func() int64 {
		routes, err := s.Routes(ctx, "news")
		must(l.b, err)
		return routes.Version
	}
	var names []string
	subscribeTo := func(n int) {
		for i := len(names); i < n; i++ {
			names = append(names, fmt.Sprintf("s%04d", i))
			must(l.b, subscribe(l.b, s, names[i]))
		}
	}
	of := func(n, size int) func() { return func() { send(n, semantics.Message{Body: make([]byte, size)}) } }
	subscribeTo(1)
	l.way("250 messages to 1 subscription", s, "news", version, gone, of(250, 0), names...)
	subscribeTo(4)
	l.way("250 messages to 4 subscriptions", s, "news", version, gone, of(250, 0), names...)
	subscribeTo(100)
	l.way("10 messages to 100 subscriptions", s, "news", version, gone, of(10, 0), names...)
	subscribeTo(250)
	l.way("1 message of 250 KiB to 250 subscriptions", s, "news", version, gone, of(1, 250<<10), names...)
	subscribeTo(semantics.MaxSubscriptionsPerTopic)
	l.way("1 message to 2,000 subscriptions", s, "news", version, gone, of(1, 100), names...)
	l.way("1 message of 31 KiB to 2,000 subscriptions", s, "news", version, gone, of(1, 31<<10), names...)
	must(l.b, s.DeleteEntity(ctx, semantics.TopicKind, "news"))
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
}

// arrivals are the cases of a destination that many sources forward to, and of a source that forgot its last transfers.
func (l *limits) arrivals() {
	ctx := l.b.Context()
	s, send := l.queue(func(o *semantics.Options) { o.ForwardTo = archive.Path })
	must(l.b, makeQueue(l.b, s, archive.Path))
	send(250, semantics.Message{})
	transfer := begin(l.b, s, orders, archive.Path, 250)
	_, err := s.Arrive(ctx, transfer, 0, onward(transfer), true)
	must(l.b, err)
	key := l.keyLike("*archive}:arrivals")
	field := l.raw.HKeys(ctx, key).Val()[0]
	for first := 0; first < manySources; first += 1000 {
		var fields []any
		for i := first; i < first+1000; i++ {
			note := fmt.Sprintf("%d:%d:%d:%s", l.clock.Now().UnixMilli(), i, l.clock.Now().UnixMilli(), strings.Repeat("f", 250))
			fields = append(fields, fmt.Sprintf("%d::queue-%d", i+1, i), note)
		}
		must(l.b, l.raw.HSet(ctx, key, fields...).Err())
	}
	broker := brokerOver(s)
	defer broker.Close()
	l.at("look at 100,000 sources, all there lately", 1, nil, func() { l.look(s, broker) })
	l.clock.Advance(2 * time.Hour)
	l.at("look at 100,000 sources, all gone", 1, nil, func() { l.look(s, broker) })

	l.at("a transfer that is overtaken", limitTimes, func() {
		number := numberOf(l.b, transfer) + 1
		must(l.b, l.raw.HSet(ctx, key, field, fmt.Sprintf("%d:1:%d:", number, l.clock.Now().UnixMilli())).Err())
	}, func() {
		if _, err := s.Arrive(ctx, transfer, 0, onward(transfer), true); !errors.Is(err, semantics.ErrOvertaken) {
			l.b.Fatalf("it was overtaken: %v", err)
		}
		transfer = begin(l.b, s, orders, archive.Path, 250) // with its new number
	})
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, archive.Path))
}

func (l *limits) look(s *redisstore.Store, upkeep semantics.Upkeep) {
	_, err := s.LookOnce(l.b.Context(), upkeep, func(entity string, err error) { l.b.Errorf("%s: %v", entity, err) })
	must(l.b, err)
}

// keyLike finds the one key that a pattern matches.
func (l *limits) keyLike(pattern string) string {
	keys := l.raw.Keys(l.b.Context(), pattern).Val()
	if len(keys) != 1 {
		l.b.Fatalf("%s matches %q", pattern, keys)
	}
	return keys[0]
}
