package redisstore_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

const limitTimes = 5 // a case is run so often, and the shortest time counts

// queues are the cases of a queue without sessions.
func (l *limits) queues() {
	ctx := l.b.Context()
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	for name, like := range map[string]semantics.Message{
		"4,500 small messages":     {},
		"4,500 scheduled messages": {ScheduledAt: l.clock.Now().Add(24 * time.Hour)},
	} {
		for _, keyed := range []bool{false, true} {
			s, send := l.queue(func(o *semantics.Options) { o.RequiresDuplicateDetection = keyed })
			what := "send " + name
			if keyed {
				what += ", duplicate detection"
			}
			l.at(what, limitTimes, nil, func() { send(4500, like) })
			must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
		}
	}
	s, send := l.queue()
	send(65_000, semantics.Message{})
	var tokens []semantics.LockToken
	var numbers []int64
	take := func(n int) func() { return func() { tokens, numbers = l.held(s, orders, n) } }
	l.at("receive 1,000 of 65,000", limitTimes, nil, take(1000))
	settle := func(what string, call func() ([]semantics.Code, error)) {
		l.at(what, limitTimes, take(1000), func() { _, err := call(); must(l.b, err) })
	}
	settle("complete 1,000", func() ([]semantics.Code, error) { return s.Complete(ctx, orders, tokens) })
	settle("abandon 1,000", func() ([]semantics.Code, error) {
		return s.Abandon(ctx, orders, tokens, semantics.AbandonOptions{})
	})
	settle("release 1,000", func() ([]semantics.Code, error) { return s.Release(ctx, orders, tokens) })
	settle("dead-letter 1,000", func() ([]semantics.Code, error) {
		return s.DeadLetter(ctx, orders, tokens, semantics.DeadLetterTexts{}, nil)
	})
	l.at("renew 500", limitTimes, take(500), func() { _, err := s.RenewLocks(ctx, orders, tokens); must(l.b, err) })
	deferAll := func() {
		take(1000)()
		_, err := s.Defer(ctx, orders, tokens, nil)
		must(l.b, err)
	}
	l.at("defer 1,000", limitTimes, nil, deferAll)
	for range 17 {
		deferAll()
	}
	l.at("receive 1 behind 20,000 deferred", limitTimes, nil, take(1))
	l.at("receive 250 by number", limitTimes, deferAll, func() {
		_, err := s.ReceiveByNumber(ctx, orders, semantics.Deferred, numbers[:250])
		must(l.b, err)
	})
	l.at("reactivate 250", limitTimes, deferAll, func() { must(l.b, s.Reactivate(ctx, orders, numbers[:250])) })
	l.at("delete 250 by number", limitTimes, deferAll, func() {
		_, err := s.DeleteByNumber(ctx, orders, numbers[:250])
		must(l.b, err)
	})
	l.at("peek 250", limitTimes, nil, func() { _, err := s.Peek(ctx, orders, 1, 250, semantics.ShowAll); must(l.b, err) })
	l.at("purge 4,000", limitTimes, func() { send(4000, semantics.Message{}) }, func() {
		_, err := s.Purge(ctx, orders, semantics.Purge{Show: semantics.ShowAvailable, Limit: 4000})
		must(l.b, err)
	})
	l.at("runtime", limitTimes, nil, func() { _, err := s.Runtime(ctx, semantics.QueueKind, "orders"); must(l.b, err) })
	l.at("delete with all it holds", 1, nil, func() { must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders")) })

	// What time brings comes in slices.
	s, send = l.queue(func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = true })
	broker := brokerOver(s)
	defer broker.Close()
	sweep := func() { must(l.b, s.SweepOnce(ctx, broker)) }
	life := time.Minute
	l.at("10,000 expire to the dead letters", 1, func() {
		send(10_000, semantics.Message{TimeToLive: &life})
		l.clock.Advance(2 * life)
	}, sweep)
	l.at("10,000 locks end", 1, func() {
		send(10_000, semantics.Message{})
		take(10_000)()
		l.clock.Advance(2 * semantics.MaxLockDuration)
	}, sweep)
	l.at("9,000 scheduled are activated", 1, func() {
		send(9000, semantics.Message{ScheduledAt: l.clock.Now().Add(time.Minute)})
		l.clock.Advance(time.Hour)
	}, sweep)
	letters := make([]semantics.Resubmission, 250)
	rows, err := s.Peek(ctx, dead, 1, 250, semantics.ShowAll)
	must(l.b, err)
	for i := range letters {
		letters[i] = semantics.Resubmission{SequenceNumber: rows[i].SequenceNumber, MessageID: rows[i].MessageID}
	}
	l.at("resubmit 250", 1, nil, func() { _, err := s.Resubmit(ctx, dead, "orders", letters, false); must(l.b, err) })
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
}

// large are the cases of large messages.
func (l *limits) large() {
	ctx := l.b.Context()
	s, send := l.queue(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 102_400 })
	body := make([]byte, 250<<10)
	var tokens []semantics.LockToken
	l.at("send one message of 99 MiB", limitTimes, nil, func() { send(1, semantics.Message{Body: make([]byte, 99<<20)}) })
	l.at("receive one message of 99 MiB", limitTimes, nil, func() { tokens, _ = l.held(s, orders, 1) })
	l.at("dead-letter one message of 99 MiB", 1, nil, func() {
		_, err := s.DeadLetter(ctx, orders, tokens, semantics.DeadLetterTexts{}, nil)
		must(l.b, err)
	})
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
	s, send = l.queue()
	fill := func() {
		for range 200 {
			send(1, semantics.Message{Body: body})
		}
		tokens, _ = l.held(s, orders, 200)
	}
	l.at("dead-letter 200 of 250 KiB", 1, fill, func() {
		_, err := s.DeadLetter(ctx, orders, tokens, semantics.DeadLetterTexts{}, nil)
		must(l.b, err)
	})
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
}

// sessions are the cases of a queue with 100,000 sessions, and of one session with 100,000 messages.
func (l *limits) sessions() {
	ctx := l.b.Context()
	const many = 100_000
	s, send := l.queue(func(o *semantics.Options) {
		o.RequiresSession, o.SessionInFlight, o.SessionExpiryMode = true, 1000, semantics.ExpireSession
	})
	first := 0
	some := func() (batch []*semantics.Message) {
		batch = l.some(4500, semantics.Message{})
		for i, m := range batch {
			m.SessionID = fmt.Sprintf("s%06d", first+i)
		}
		first += len(batch)
		return batch
	}
	sendSome := func(batch []*semantics.Message) { _, err := s.Send(ctx, "orders", batch); must(l.b, err) }
	for first < many-limitTimes*4500 {
		sendSome(some())
	}
	var batch []*semantics.Message
	l.at("send 4,500 messages to as many sessions", limitTimes, func() { batch = some() }, func() { sendSome(batch) })
	var held semantics.Source
	l.at("accept the next of 100,000 sessions", limitTimes, nil, func() {
		session, _, err := s.AcceptNextSession(ctx, "orders", semantics.RegisterNever)
		must(l.b, err)
		held = semantics.Source{Path: "orders", SessionLock: session.Lock}
	})
	l.at("list 100 of 100,000 sessions", limitTimes, nil, func() {
		_, _, err := s.ListSessions(ctx, "orders", "s05", 100, semantics.SessionFilter{})
		must(l.b, err)
	})
	l.at("runtime of 100,000 sessions", limitTimes, nil, func() { _, err := s.Runtime(ctx, semantics.QueueKind, "orders"); must(l.b, err) })
	must(l.b, s.CloseSession(ctx, held))

	session, err := s.AcceptSession(ctx, "orders", "large")
	must(l.b, err)
	held = semantics.Source{Path: "orders", SessionLock: session.Lock}
	life := 24 * time.Hour
	send(1, semantics.Message{SessionID: "large", TimeToLive: &life})
	send(many, semantics.Message{SessionID: "large"})
	var tokens []semantics.LockToken
	l.at("receive 1,000 of a session", 1, nil, func() { tokens, _ = l.held(s, held, 1000) })
	l.at("complete 500 of a session", 1, nil, func() { _, err := s.Complete(ctx, held, tokens[500:]); must(l.b, err) })
	l.at("set the state of a session", limitTimes, nil, func() { _, err := s.SetSessionState(ctx, held, make([]byte, 200<<10), nil); must(l.b, err) })
	tokens, _ = l.held(s, held, 500)
	s.NoteUnanswered(held, tokens...)
	l.at("release 500 of a session after lost answers", 1, nil, func() { l.held(s, held, 1) })
	l.held(s, held, 499)
	l.at("close a session with 1,000 in flight", 1, nil, func() { must(l.b, s.CloseSession(ctx, held)) })
	broker := brokerOver(s)
	defer broker.Close()
	l.at("a session of 100,000 expires", 1, func() { l.clock.Advance(2 * life) }, func() { must(l.b, s.SweepOnce(ctx, broker)) })
	l.at("delete 100,000 sessions", 1, nil, func() { must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders")) })
}

// topics are the cases of 2,000 subscriptions, 3,000 rules and DROP_OLDEST.
func (l *limits) topics() {
	ctx := l.b.Context()
	s := l.open()
	roomy := func(o *semantics.Options) { o.MaxSizeInMegabytes = semantics.MaxSizeMegabytes }
	must(l.b, createTopic(l.b, s, roomy))
	var names []string
	for i := range semantics.MaxSubscriptionsPerTopic {
		names = append(names, fmt.Sprintf("s%04d", i))
		must(l.b, subscribe(l.b, s, names[i]))
	}
	publishTo := func(n, body int, names []string) func() {
		return func() {
			var publications []semantics.Publication
			for _, m := range l.some(n, semantics.Message{Body: make([]byte, body)}) {
				publications = append(publications, semantics.Publication{Message: m, Copies: copiesOf(m, names...)})
			}
			must(l.b, publish(l.b, s, publications...).Err)
		}
	}
	l.at("2 messages for 2,000 subscriptions", limitTimes, nil, publishTo(2, 100, names))
	l.at("1 message of 32 KiB for 2,000 subscriptions", limitTimes, nil, publishTo(1, 31<<10, names))
	l.at("1 message of 250 KiB for 250 subscriptions", limitTimes, nil, publishTo(1, 250<<10, names[:250]))
	l.at("50 messages for 100 subscriptions", limitTimes, nil, publishTo(50, 100, names[:100]))
	l.at("4,500 messages for 1 subscription", limitTimes, nil, publishTo(4500, 0, names[:1]))
	l.at("routes of 2,000 subscriptions", limitTimes, nil, func() { _, err := s.Routes(ctx, "news"); must(l.b, err) })
	l.at("runtime of 2,000 subscriptions", limitTimes, nil, func() { _, err := s.Runtime(ctx, semantics.TopicKind, "news"); must(l.b, err) })
	l.at("delete 2,000 subscriptions", 1, nil, func() { must(l.b, s.DeleteEntity(ctx, semantics.TopicKind, "news")) })

	s = l.open()
	must(l.b, createTopic(l.b, s, roomy))
	rules := make([]semantics.Rule, 3000)
	for i := range rules {
		rules[i] = semantics.Rule{Name: fmt.Sprint("r", i), Filter: semantics.RuleFilter{None: true}}
	}
	options := semantics.DefaultOptions()
	l.at("a subscription with 3,000 rules", 1, nil, func() {
		_, _, err := s.CreateSubscription(ctx, of("ruled").Path, options, rules)
		must(l.b, err)
	})
	l.at("routes of 3,000 rules", limitTimes, nil, func() { _, err := s.Routes(ctx, "news"); must(l.b, err) })
	l.at("list 100 of 3,000 rules", limitTimes, nil, func() { _, _, err := s.ListRules(ctx, of("ruled").Path, "", 100); must(l.b, err) })
	l.at("delete a subscription with 3,000 rules", 1, nil, func() { must(l.b, s.DeleteEntity(ctx, semantics.SubscriptionKind, of("ruled").Path)) })

	must(l.b, subscribe(l.b, s, "full", func(o *semantics.Options) { o.MaxMessageCount, o.Overflow = 20_010, semantics.DropOldestOverflow }))
	for range 20 {
		publishTo(1000, 0, []string{"full"})()
		tokens, _ := l.held(s, of("full"), 1000)
		_, err := s.Defer(ctx, of("full"), tokens, nil)
		must(l.b, err)
	}
	publishTo(10, 0, []string{"full"})()
	l.at("DROP_OLDEST behind 20,000 deferred", limitTimes, nil, publishTo(1, 0, []string{"full"}))
	l.at("DROP_OLDEST for a batch of 1,000", limitTimes, nil, publishTo(1000, 0, []string{"full"}))
	must(l.b, s.DeleteEntity(ctx, semantics.TopicKind, "news"))
}

// usual measures common calls one after the other.
func (l *limits) usual() {
	ctx := l.b.Context()
	s := redistest.Open(l.b, redisstore.Options{URL: l.url})
	must(l.b, makeQueue(l.b, s, "orders"))
	body := make([]byte, 1024)
	l.slow = l.pace()
	l.took()
	for range 2000 {
		_, err := s.Send(ctx, "orders", []*semantics.Message{{MessageID: "m", Body: body}})
		must(l.b, err)
		tokens, _ := l.held(s, orders, 1)
		_, err = s.Abandon(ctx, orders, tokens, semantics.AbandonOptions{})
		must(l.b, err)
		tokens, _ = l.held(s, orders, 1)
		_, err = s.RenewLocks(ctx, orders, tokens)
		must(l.b, err)
		_, err = s.Peek(ctx, orders, 1, 10, semantics.ShowAll)
		must(l.b, err)
		_, err = s.Complete(ctx, orders, tokens)
		must(l.b, err)
	}
	for name, took := range l.took() {
		slices.Sort(took)
		l.row(usualCalls, name, took[len(took)*99/100])
	}
}
