package redisstore_test

import (
	"fmt"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
)

// copies are the cases of copies that share bodies, and of calls that share a script.
func (l *limits) copies() {
	ctx := l.b.Context()
	s := l.open()
	must(l.b, createTopic(l.b, s, func(o *semantics.Options) { o.MaxSizeInMegabytes = semantics.MaxSizeMegabytes }))
	names := []string{"a", "b"}
	for _, name := range names {
		must(l.b, subscribe(l.b, s, name))
	}
	publishTo := func(n, each, body int) {
		for range n {
			var publications []semantics.Publication
			for _, m := range l.some(each, semantics.Message{Body: make([]byte, body)}) {
				publications = append(publications, semantics.Publication{Message: m, Copies: copiesOf(m, names...)})
			}
			must(l.b, publish(l.b, s, publications...).Err)
		}
	}
	var tokens []semantics.LockToken
	for _, each := range []int{100, 1} {
		publishTo(1000/each, each, 1024)
		what := fmt.Sprintf("1,000 copies that share bodies, published by %d", each)
		l.at("receive "+what, 1, nil, func() { tokens, _ = l.held(s, of("a"), 1000) })
		l.at("renew 500 of "+what, limitTimes, nil, func() { _, err := s.RenewLocks(ctx, of("a"), tokens[:500]); must(l.b, err) })
		l.at("complete "+what, 1, nil, func() { _, err := s.Complete(ctx, of("a"), tokens); must(l.b, err) })
		tokens, _ = l.held(s, of("b"), 1000)
		l.at("complete the last of "+what, 1, nil, func() { _, err := s.Complete(ctx, of("b"), tokens); must(l.b, err) })
	}
	for _, name := range names {
		remove := func() { must(l.b, s.DeleteEntity(ctx, semantics.SubscriptionKind, of(name).Path)) }
		isFirst := true
		l.at("delete a subscription with 2,000 chunks, "+name, 3, func() {
			if !isFirst {
				must(l.b, subscribe(l.b, s, name))
			}
			isFirst = false
			publishTo(2000, 1, 1024)
		}, remove)
		must(l.b, subscribe(l.b, s, name))
	}
	must(l.b, s.DeleteEntity(ctx, semantics.TopicKind, "news"))
	l.turns()
}

// turns are the cases of turns in as many sessions as a caller may hold.
func (l *limits) turns() {
	ctx := l.b.Context()
	s, _ := l.queue(func(o *semantics.Options) { o.RequiresSession, o.SessionInFlight = true, 1000 })
	const sessions, each = semantics.MaxSettleTokens, 20
	for i := range each {
		batch := l.some(sessions, semantics.Message{Body: make([]byte, 1024)})
		for n, m := range batch {
			m.MessageID, m.SessionID = fmt.Sprint(i, "-", n), fmt.Sprintf("s%04d", n)
		}
		for at := 0; at < sessions; at += 200 {
			_, err := s.Send(ctx, "orders", batch[at:at+200])
			must(l.b, err)
		}
	}
	turns := make([]semantics.Turn, sessions)
	for n := range turns {
		session, err := s.AcceptSession(ctx, "orders", fmt.Sprintf("s%04d", n))
		must(l.b, err)
		turns[n] = semantics.Turn{Session: session.Lock, Receive: 1, Register: semantics.RegisterNever}
	}
	turn := func(s *redisstore.Store) {
		for n, o := range s.Turn(ctx, "orders", turns) {
			must(l.b, o.Err)
			must(l.b, o.Failure)
			turns[n].Complete = tokensOf(o.Batch.Messages)
		}
	}
	turn(s)
	l.at("complete and take one in each of 1,000 sessions", limitTimes, nil, func() { turn(s) })
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
}
