package broker_test

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// Of a bucket at this rate a credit is 10 ms.
const (
	testRate = 100
	credit   = time.Second / testRate
)

var (
	rateOrders = semantics.Source{Path: "orders"}
	rateDead   = semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
)

// limited is a Broker with a rate limit, which has not spent anything yet, over a furnished queue "orders".
type limited struct {
	*broker.Broker

	t     *testing.T
	free  *broker.Broker        // without limit, over the same store
	door  *door                 // what the limited Broker has for a store
	locks []semantics.LockToken // of 2 messages

	session semantics.Source // a held session of the queue "sessions"
}

// door leads to a store, or nowhere: then every call panics.
type door struct{ semantics.Store }

// newLimited makes a queue with 2 dead letters, deferred messages 3 and 4, locked 5 and 6, available 7 to 9 and
// scheduled 10 and 11.
func newLimited(t *testing.T, creditsPerSecond float64) *limited {
	t.Helper()
	store := memstore.New()
	l := &limited{t: t, free: broker.New(store), door: &door{store}}
	l.Broker = broker.New(l.door, broker.WithRateLimit(creditsPerSecond), broker.WithRules(filter.Compile))
	_, err := l.free.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil)
	l.ok(err)
	l.send(4, time.Time{})
	tokens := l.take(4)
	_, err = l.free.DeadLetter(t.Context(), rateOrders, tokens[:2], broker.DeadLetterOptions{})
	l.ok(err)
	_, err = l.free.Defer(t.Context(), rateOrders, tokens[2:], nil)
	l.ok(err)
	l.send(2, time.Time{})
	l.locks = l.take(2)
	l.send(3, time.Time{})
	l.send(2, time.Now().Add(time.Hour))
	_, err = l.free.CreateEntity(t.Context(), semantics.QueueKind, "sessions", semantics.Options{RequiresSession: true}, []string{"requiresSession"})
	l.ok(err)
	held, err := l.free.AcceptSession(t.Context(), "sessions", broker.AcceptOptions{SessionID: "held"})
	l.ok(err)
	l.session = held.Source()
	_, err = l.free.CreateEntity(t.Context(), semantics.TopicKind, "news", semantics.Options{}, nil)
	l.ok(err)
	_, err = l.free.CreateEntity(t.Context(), semantics.SubscriptionKind, rateEU, semantics.Options{}, nil)
	l.ok(err)
	return l
}

const rateEU = "news/Subscriptions/eu"

func (l *limited) close() {
	l.Close()
	l.free.Close()
}

func (l *limited) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *limited) send(n int, at time.Time) {
	l.t.Helper()
	messages := make([]*semantics.Message, n)
	for i := range messages {
		messages[i] = &semantics.Message{ScheduledAt: at, MessageID: "m"}
	}
	_, err := l.free.Send(l.t.Context(), semantics.ToQueue("orders"), messages)
	l.ok(err)
}

func (l *limited) take(n int) []semantics.LockToken {
	l.t.Helper()
	d, err := l.free.Receive(l.t.Context(), rateOrders, broker.ReceiveOptions{MaxMessages: n})
	l.ok(err)
	tokens := make([]semantics.LockToken, n)
	for i, m := range d.Messages {
		tokens[i] = m.LockToken
	}
	return tokens
}

// pay spends n credits for nothing: no message has these tokens.
func (l *limited) pay(n int) error {
	_, err := l.Complete(l.t.Context(), rateOrders, make([]semantics.LockToken, n))
	return err
}

// spent is how long the bucket takes to be full again. It is only asked of buckets that are not.
func (l *limited) spent() time.Duration {
	l.t.Helper()
	err := l.pay(testRate)
	wantCode(l.t, "all there is to spend", err, semantics.Throttled)
	return retryAfter(err)
}

// request makes a request, which somebody answers.
func (l *limited) request(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var worker sync.WaitGroup
	worker.Go(func() {
		requests, err := l.free.Receive(ctx, semantics.Source{Path: "empty"}, broker.ReceiveOptions{MaxMessages: 1, MaxWait: time.Minute})
		if err != nil {
			return // there was no request
		}
		r := requests.Messages[0]
		reply := &semantics.Message{SessionID: r.ReplyToSessionID, CorrelationID: r.MessageID}
		if _, err := l.free.Send(context.WithoutCancel(ctx), semantics.ToQueue(r.ReplyTo), []*semantics.Message{reply}); err != nil {
			l.t.Error(err)
		}
	})
	_, reply, err := l.Request(ctx, semantics.ToQueue("empty"), "sessions", &semantics.Message{}, time.Minute)
	cancel()
	worker.Wait()
	if err != nil {
		return err
	}
	return reply.Delivered(l.t.Context())
}

func retryAfter(err error) time.Duration {
	if err == nil {
		return 0
	}
	return semantics.AsError(err).RetryAfter
}

// pricedCall is a call that succeeds on a furnished queue, and its price.
type pricedCall struct {
	verb, what    string
	before, after int // credits it must afford, and those charged at its end
	call          func(ctx context.Context, l *limited) error
}

func pricedCalls() []pricedCall {
	options := semantics.Options{MaxDeliveryCount: 5}
	given := []string{"maxDeliveryCount"}
	receive := func(source semantics.Source, most int) func(context.Context, *limited) error {
		return func(ctx context.Context, l *limited) error {
			_, err := l.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: most})
			return err
		}
	}
	return []pricedCall{
		{"Transact", "", 4, 0, func(ctx context.Context, l *limited) error { // as its operations cost alone
			three := semantics.Operation{Source: rateOrders, Messages: []*semantics.Message{{}, {}, {}}}
			one := semantics.Operation{Source: rateOrders, Messages: []*semantics.Message{{}}}
			_, err := l.Transact(ctx, nil, []semantics.Operation{three, one})
			return err
		}},
		{"EnsureEntity", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, err := l.EnsureEntity(ctx, semantics.QueueKind, "new", options, given)
			return err
		}},
		{"CreateEntity", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, err := l.CreateEntity(ctx, semantics.QueueKind, "new", options, given)
			return err
		}},
		{"GetEntity", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, err := l.GetEntity(ctx, semantics.QueueKind, "orders")
			return err
		}},
		{"UpdateEntity", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, err := l.UpdateEntity(ctx, semantics.QueueKind, "orders", options, given)
			return err
		}},
		{"DeleteEntity", "", 10, 0, func(ctx context.Context, l *limited) error { return l.DeleteEntity(ctx, semantics.QueueKind, "orders") }},
		{"ListEntities", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, _, err := l.ListEntities(ctx, semantics.QueueKind, "", 0, "")
			return err
		}},
		{"Runtime", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, err := l.Runtime(ctx, semantics.QueueKind, "orders")
			return err
		}},
		{"ListEntitiesByPrefix", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, _, err := l.ListEntitiesByPrefix(ctx, semantics.QueueKind, "", "o", 0, "")
			return err
		}},
		{"CreateRule", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, _, err := l.CreateRule(ctx, rateEU, semantics.Rule{Name: "r", Filter: semantics.RuleFilter{All: true}})
			return err
		}},
		{"ReplaceRule", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, _, err := l.ReplaceRule(ctx, rateEU, semantics.Rule{Name: semantics.DefaultRule, Filter: semantics.RuleFilter{All: true}})
			return err
		}},
		{"GetRule", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, err := l.GetRule(ctx, rateEU, semantics.DefaultRule)
			return err
		}},
		{"ListRules", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, _, err := l.ListRules(ctx, rateEU, 0, "")
			return err
		}},
		{"DeleteRule", "", 10, 0, func(ctx context.Context, l *limited) error {
			return l.DeleteRule(ctx, rateEU, semantics.DefaultRule)
		}},
		{"Send", "", 3, 0, func(ctx context.Context, l *limited) error {
			_, err := l.Send(ctx, semantics.ToQueue("orders"), []*semantics.Message{{}, {}, {}})
			return err
		}},
		{"SendOnce", "", 3, 0, func(ctx context.Context, l *limited) error {
			_, _, err := l.SendOnce(ctx, semantics.ToQueue("orders"), "request-1", []*semantics.Message{{}, {}, {}})
			return err
		}},
		{"SendEach", "", 3, 0, func(ctx context.Context, l *limited) error {
			// each call has its own price
			_, errs := l.SendEach(ctx, semantics.ToQueue("orders"), [][]*semantics.Message{{{}, {}, {}}})
			return cmp.Or(errs...)
		}},
		{"Request", "", 1, 1, func(ctx context.Context, l *limited) error { return l.request(ctx) }},
		{"Subscribe", "", 1, 0, func(ctx context.Context, l *limited) error {
			options := stream.DefaultOptions()
			options.Credits = 0 // so that it receives nothing, which has its price
			s, err := l.Subscribe(ctx, rateOrders, options)
			if err == nil {
				s.Close(ctx)
			}
			return err
		}},
		{"AcceptSession", "", 1, 0, func(ctx context.Context, l *limited) error {
			_, err := l.AcceptSession(ctx, "sessions", broker.AcceptOptions{SessionID: "free"})
			return err
		}},
		{"RenewSessionLock", "", 1, 0, func(ctx context.Context, l *limited) error {
			_, err := l.RenewSessionLock(ctx, l.session)
			return err
		}},
		{"CloseSession", "", 1, 0, func(ctx context.Context, l *limited) error { return l.CloseSession(ctx, l.session) }},
		{"SessionState", "", 1, 0, func(ctx context.Context, l *limited) error {
			_, err := l.SessionState(ctx, l.session)
			return err
		}},
		{"SetSessionState", "", 1, 0, func(ctx context.Context, l *limited) error {
			_, err := l.SetSessionState(ctx, l.session, []byte("note"), nil)
			return err
		}},
		{"ListSessions", "", 10, 0, func(ctx context.Context, l *limited) error {
			_, _, err := l.ListSessions(ctx, "sessions", 0, "", semantics.SessionFilter{})
			return err
		}},
		{"UnblockSession", "", 10, 0, func(ctx context.Context, l *limited) error { return l.UnblockSession(ctx, "sessions", "held") }},
		{"DeadLetterRest", "", 10, 0, func(ctx context.Context, l *limited) error { return l.DeadLetterRest(ctx, "sessions", "gone") }},
		{"CancelScheduled", "by number", 1, 2, func(ctx context.Context, l *limited) error {
			_, err := l.CancelScheduled(ctx, semantics.ToQueue("orders"), []int64{10, 11, 10}, nil)
			return err
		}},
		{"CancelScheduled", "by id", 1, 2, func(ctx context.Context, l *limited) error {
			_, err := l.CancelScheduled(ctx, semantics.ToQueue("orders"), nil, []string{"m"})
			return err
		}},
		{"Receive", "some", 1, 1, receive(rateOrders, 2)},
		{"Receive", "all", 1, 2, receive(rateOrders, 1000)},
		{"Receive", "nothing", 1, 0, receive(semantics.Source{Path: "empty"}, 1000)},
		{"CompleteAndReceive", "", 3, 1, func(ctx context.Context, l *limited) error {
			next, err := l.CompleteAndReceive(ctx, rateOrders, l.locks, broker.ReceiveOptions{MaxMessages: 2})
			return cmp.Or(err, next.Failure)
		}},
		{"ReceiveDeferred", "", 1, 1, func(ctx context.Context, l *limited) error {
			_, err := l.ReceiveDeferred(ctx, rateOrders, []int64{3, 4}, semantics.PeekLock)
			return err
		}},
		{"ReceiveBySequence", "", 1, 2, func(ctx context.Context, l *limited) error {
			_, err := l.ReceiveBySequence(ctx, rateOrders, []int64{7, 8, 9}, semantics.PeekLock)
			return err
		}},
		{"Reactivate", "", 1, 2, func(ctx context.Context, l *limited) error { return l.Reactivate(ctx, rateOrders, []int64{3, 4}) }},
		{"Peek", "all", 1, 8, func(ctx context.Context, l *limited) error { _, err := l.Peek(ctx, rateOrders, 0, 250, 0); return err }},
		{"Peek", "nothing", 1, 0, func(ctx context.Context, l *limited) error { _, err := l.Peek(ctx, rateOrders, 99, 250, 0); return err }},
		{"Complete", "", 2, 0, func(ctx context.Context, l *limited) error {
			_, err := l.Complete(ctx, rateOrders, l.locks)
			return err
		}},
		{"Abandon", "", 2, 0, func(ctx context.Context, l *limited) error {
			_, err := l.Abandon(ctx, rateOrders, l.locks, semantics.AbandonOptions{})
			return err
		}},
		{"Defer", "", 2, 0, func(ctx context.Context, l *limited) error {
			_, err := l.Defer(ctx, rateOrders, l.locks, nil)
			return err
		}},
		{"Release", "", 2, 0, func(ctx context.Context, l *limited) error { _, err := l.Release(ctx, rateOrders, l.locks); return err }},
		{"DeadLetter", "", 2, 0, func(ctx context.Context, l *limited) error {
			_, err := l.DeadLetter(ctx, rateOrders, l.locks, broker.DeadLetterOptions{})
			return err
		}},
		{"RenewLocks", "", 2, 0, func(ctx context.Context, l *limited) error {
			_, err := l.RenewLocks(ctx, rateOrders, l.locks)
			return err
		}},
		{"Purge", "", 1, 5, func(ctx context.Context, l *limited) error {
			_, err := l.Purge(ctx, rateOrders, broker.PurgeOptions{Before: time.Now().Add(time.Hour), Deferred: true})
			return err
		}},
		{"DeleteBySequence", "", 1, 2, func(ctx context.Context, l *limited) error {
			_, err := l.DeleteBySequence(ctx, rateOrders, []int64{7, 8, 999})
			return err
		}},
		{"Resubmit", "", 1, 2, func(ctx context.Context, l *limited) error {
			_, _, err := l.Resubmit(ctx, rateDead, broker.ResubmitOptions{})
			return err
		}},
	}
}

// forEachCall runs a test with every call and a Broker of its own, in a bubble whose time stands still.
func forEachCall(t *testing.T, test func(t *testing.T, l *limited, c pricedCall)) {
	t.Helper()
	for _, c := range pricedCalls() {
		t.Run(c.verb+" "+c.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLimited(t, testRate)
				defer l.close()
				_, err := l.free.CreateEntity(t.Context(), semantics.QueueKind, "empty", semantics.Options{}, nil)
				l.ok(err)
				test(t, l, c)
			})
		})
	}
}
