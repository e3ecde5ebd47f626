package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var consumerTests = []ruleTest{
	testRECV_10_EachMessageToExactlyOne,
	testRECV_10_OneMessageForManyWaiters,
	testRECV_10_EveryWaiterGetsItsShare,
	testCOMP_3_NoOverlapWithoutWaiting,
	testCOMP_7_EveryMessageAtLeastOnce,
}

// sidecars returns one Broker for each Store there is over the data.
func (h *fixture) sidecars() []*broker.Broker {
	brokers := []*broker.Broker{h.broker}
	if h.Peer != nil {
		brokers = append(brokers, h.newBroker(h.Peer()))
	}
	return brokers
}

// ledger counts what consumers took, and ends their work when nothing is left to do.
type ledger struct {
	work sync.WaitGroup // the consumers

	mu    sync.Mutex
	taken map[int64]int
	left  int
	done  context.CancelFunc
}

// consumeUntil runs consumers until total messages are done. handle is called for every message and reports whether it
// is done. The context ends when all are done, or when that takes too long.
func (h *fixture) consumeUntil(total, consumers, atOnce int, handle func(b *broker.Broker, m *semantics.Received) bool) (*ledger, context.Context) {
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	book := &ledger{taken: map[int64]int{}, left: total, done: cancel}
	brokers := h.sidecars()
	for i := range consumers {
		book.work.Go(func() {
			b := brokers[i%len(brokers)]
			for ctx.Err() == nil {
				delivery, err := b.Receive(ctx, orders, broker.ReceiveOptions{MaxMessages: atOnce, MaxWait: time.Minute})
				if err != nil {
					if semantics.CodeOf(err) != semantics.Cancelled {
						h.t.Error(err)
					}
					return
				}
				for _, m := range delivery.Messages {
					book.note(m.SequenceNumber, handle(b, m))
				}
			}
		})
	}
	h.t.Cleanup(book.work.Wait)
	h.t.Cleanup(cancel) // runs before the wait
	return book, ctx
}

func (l *ledger) note(number int64, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[number]++
	if done {
		if l.left--; l.left == 0 {
			l.done()
		}
	}
}

func (h *fixture) settleOne(verb func(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error), m *semantics.Received) bool {
	codes, err := verb(context.WithoutCancel(h.t.Context()), orders, tokensOf(m))
	if err != nil || codes[0] != "" {
		h.t.Errorf("settling message %d: %v, %v", m.SequenceNumber, codes, err)
		return false
	}
	return true
}

func abandonAtOnce(b *broker.Broker) func(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error) {
	return func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return b.Abandon(ctx, source, tokens, semantics.AbandonOptions{})
	}
}

// produce sends messages in calls of one to three from several senders.
func (h *fixture) produce(senders, each int) {
	var work sync.WaitGroup
	for s := range senders {
		work.Go(func() {
			for i := 0; i < each; {
				var batch []*semantics.Message
				for range min(1+i%3, each-i) {
					batch = append(batch, text(fmt.Sprintf("%d/%d", s, i)))
					i++
				}
				if _, err := h.broker.Send(h.t.Context(), semantics.ToQueue("orders"), batch); err != nil {
					h.t.Error(err)
				}
			}
		})
	}
	work.Wait()
}

// await blocks until the work is done and checks that every message was taken at least, and where exactly is set no
// more than, once.
func (l *ledger) await(ctx context.Context, h *fixture, total int, exactly bool) {
	h.t.Helper()
	<-ctx.Done()
	l.work.Wait() // one that released a message may note it after another one was done with it
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left != 0 {
		h.t.Fatalf("%d of %d messages are not done", l.left, total)
	}
	for number := int64(1); number <= int64(total); number++ {
		if n := l.taken[number]; n < 1 || exactly && n != 1 {
			h.t.Errorf("message %d was taken %d times", number, n)
		}
	}
}

func testRECV_10_EachMessageToExactlyOne(_ *testing.T, h *fixture) {
	h.create()
	const senders, each, consumers = 4, 50, 8
	book, ctx := h.consumeUntil(senders*each, consumers, 3, func(b *broker.Broker, m *semantics.Received) bool {
		return h.settleOne(b.Complete, m)
	})
	h.produce(senders, each)
	book.await(ctx, h, senders*each, true)
	h.wantCounts(0, 0, 0)
}

func testCOMP_7_EveryMessageAtLeastOnce(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1000))
	const senders, each, consumers = 3, 40, 6
	book, ctx := h.consumeUntil(senders*each, consumers, 2, func(b *broker.Broker, m *semantics.Received) bool {
		if m.SequenceNumber%3 == 0 && m.DeliveryCount < 3 { // some consumers fail
			h.settleOne(abandonAtOnce(b), m)
			return false
		}
		return h.settleOne(b.Complete, m)
	})
	h.produce(senders, each)
	book.await(ctx, h, senders*each, false)
	for number, n := range book.taken {
		if want := 1 + 2*btoi(number%3 == 0); n != want {
			h.t.Errorf("message %d was delivered %d times, want %d", number, n, want)
		}
	}
	h.wantCounts(0, 0, 0)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func testRECV_10_OneMessageForManyWaiters(t *testing.T, h *fixture) {
	h.races()
	h.create()
	const waiters = 5
	s := h.newSidecar(h.Store)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan outcome, waiters)
	for range waiters {
		wait := s.waiting(ctx, orders, 10)
		go func() { done <- <-wait }()
	}
	h.sendTexts(1)
	h.awaitNumbers(done, 1)
	cancel()
	for range waiters - 1 {
		h.wantCode(h.await(done).err, semantics.Cancelled)
	}
	h.wantCounts(0, 1, 0)
}

func testRECV_10_EveryWaiterGetsItsShare(t *testing.T, h *fixture) {
	h.races()
	h.create()
	const waiters, rounds = 4, 10
	s := h.newSidecar(h.Store)
	type took struct {
		waiter int
		outcome
	}
	done := make(chan took, waiters)
	wait := func(waiter int) {
		c := s.waiting(t.Context(), orders, 1)
		go func() { done <- took{waiter, <-c} }()
	}
	for i := range waiters {
		wait(i)
	}
	// How long a waiter takes to sit down is the machine's affair: it may miss many rounds once, but not over and over.
	// So this goes on until none has less than half of its share, which one that is left out never has.
	share, end := make([]int, waiters), time.After(patience)
	for total := 1; ; total++ {
		h.sendTexts(1)
		select {
		case got := <-done:
			h.ok(got.err)
			h.complete(orders, got.delivery.Messages...)
			share[got.waiter]++
			if total >= waiters*rounds && 2*waiters*slices.Min(share) >= total {
				return
			}
			wait(got.waiter) // and goes to the end of the line
		case <-end:
			t.Fatalf("the shares are %v of %d messages: one consumer has less than half of what is fair", share, total)
		}
	}
}

func testCOMP_3_NoOverlapWithoutWaiting(t *testing.T, h *fixture) {
	h.races()
	h.create()
	const messages, consumers = 200, 8
	h.sendTexts(messages)
	brokers := h.sidecars()
	var mu sync.Mutex
	owners := map[int64]int{}
	var work sync.WaitGroup
	for i := range consumers {
		work.Go(func() {
			for {
				delivery, err := brokers[i%len(brokers)].Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 3})
				if err != nil {
					t.Error(err)
					return
				}
				if len(delivery.Messages) == 0 {
					return
				}
				mu.Lock()
				for _, m := range delivery.Messages {
					owners[m.SequenceNumber]++
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	h.same(len(owners), messages)
	for number, n := range owners {
		if n != 1 {
			t.Errorf("message %d has %d holders at a time", number, n)
		}
	}
	h.wantCounts(0, messages, 0)
}
