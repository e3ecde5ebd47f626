package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// traffic is what the clients of two sidecars do with some queues while the servers beneath change: those of one send,
// those of the other receive and complete.
type traffic struct {
	t         *testing.T
	namespace string
	sender    *broker.Broker
	receiver  *broker.Broker
	stopped   chan struct{} // no sender begins another call
	senders   sync.WaitGroup
	receivers sync.WaitGroup
	drained   context.Context //nolint:containedctx // ends the receivers
	drain     context.CancelFunc

	mu        sync.Mutex
	sent      map[string]answered // by which a message is stored
	refused   map[string]error    // by which nothing was changed
	causes    map[string]int      // of all failures
	came      map[string]bool
	completed map[string]answered
	again     map[string]int64 // came after that, with this number
	sent1     chan struct{}    // signalled after each message that is stored
}

// answered is a call that succeeded. Its script ran between its begin and its end.
type answered struct {
	began, ended time.Time
	number       int64 // of the message
}

func (a answered) String() string {
	return fmt.Sprintf("number %d, from %s to %s", a.number, a.began.Format(time.StampMicro), a.ended.Format(time.StampMicro))
}

// trafficQueues are queues in different slots.
var trafficQueues = []string{"a", "b", "c", "d", "e", "f"}

// patient is a Store whose waiting calls do not look again in case a wake-up got lost.
type patient struct{ semantics.Store }

// Receive implements semantics.Receiver.
func (s patient) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	batch, err := s.Store.Receive(ctx, source, limit, register)
	if batch.RecheckAfter >= 10*time.Second {
		batch.RecheckAfter = time.Hour
	}
	return batch, err
}

func startTraffic(t *testing.T, url string) *traffic {
	t.Helper()
	f := &traffic{
		t: t, namespace: redistest.Namespace(), stopped: make(chan struct{}), sent: map[string]answered{}, refused: map[string]error{},
		causes: map[string]int{}, came: map[string]bool{}, completed: map[string]answered{}, again: map[string]int64{},
		sent1: make(chan struct{}, 1),
	}
	f.drained, f.drain = context.WithCancel(t.Context())
	stores := [2]*redisstore.Store{}
	for i := range stores {
		stores[i] = redistest.Open(t, redisstore.Options{URL: url, Namespace: f.namespace, DialTimeout: time.Second})
	}
	f.sender, f.receiver = brokerOver(stores[0]), brokerOver(patient{stores[1]})
	t.Cleanup(f.sender.Close)
	t.Cleanup(f.receiver.Close)
	if _, err := stores[0].Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	locksShortly := func(o *semantics.Options) { o.LockDuration, o.MaxDeliveryCount = 2*time.Second, 1000 }
	must(t, makeQueue(t, stores[0], "quiet"))
	for _, queue := range trafficQueues {
		must(t, makeQueue(t, stores[0], queue, locksShortly))
		f.senders.Go(func() { f.sendAll(queue) })
		f.receivers.Go(func() { f.receiveAll(queue) })
	}
	return f
}

// key is where a queue is.
func (f *traffic) key(queue string) string { return "sb:{" + f.namespace + "/" + queue + "}:entity" }

func (f *traffic) sendAll(queue string) {
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-f.stopped:
			return
		case <-pace.C:
		}
		id := fmt.Sprintf("%s%d", queue, n)
		began := time.Now()
		stored, err := f.sender.Send(f.t.Context(), semantics.ToQueue(queue), []*semantics.Message{{MessageID: id}})
		ended := time.Now()
		f.mu.Lock()
		switch {
		case err == nil:
			f.sent[id] = answered{began, ended, stored[0].SequenceNumber}
			signalTest(f.sent1)
		case !semantics.IsOutcomeUnknown(err):
			f.refused[id] = err
		}
		f.note(err)
		f.mu.Unlock()
	}
}

func signalTest(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// note counts a failure, and reports one that is not to be had here.
func (f *traffic) note(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	e := semantics.AsError(err)
	f.causes[fmt.Sprint(e.Details[semantics.DetailCause], " ", e.Details[semantics.DetailOutcome])]++
	if e.Code != semantics.StoreUnavailable {
		f.t.Errorf("while the servers change: %v", err)
	}
}

func (f *traffic) receiveAll(queue string) {
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	source := semantics.Source{Path: queue}
	for f.drained.Err() == nil {
		delivery, err := f.receiver.Receive(f.drained, source, broker.ReceiveOptions{MaxMessages: 10, MaxWait: time.Minute})
		f.mu.Lock()
		f.note(err)
		f.mu.Unlock()
		if err != nil {
			<-pace.C
			continue
		}
		f.complete(source, delivery.Messages)
	}
}

func (f *traffic) complete(source semantics.Source, messages []*semantics.Received) {
	tokens := make([]semantics.LockToken, len(messages))
	f.mu.Lock()
	for i, m := range messages {
		tokens[i] = m.LockToken
		f.came[m.MessageID] = true
		if _, is := f.completed[m.MessageID]; is {
			f.again[m.MessageID] = m.SequenceNumber
		}
	}
	f.mu.Unlock()
	if len(tokens) == 0 {
		return
	}
	began := time.Now()
	codes, err := f.receiver.Complete(f.t.Context(), source, tokens)
	ended := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(err)
	for i, code := range codes {
		if err == nil && code == "" {
			f.completed[messages[i].MessageID] = answered{began, ended, messages[i].SequenceNumber}
		}
	}
}

// awaitSends waits until so many more messages were stored.
func (f *traffic) awaitSends(n int) {
	f.t.Helper()
	late := time.After(redistest.Patience)
	for range n {
		select {
		case <-f.sent1:
		case <-late:
			f.t.Fatalf("no message can be sent any more: %v", f.causes)
		}
	}
}

// end ends the senders, and the receivers when nothing is left.
func (f *traffic) end() {
	f.t.Helper()
	close(f.stopped)
	f.senders.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(redistest.Patience)
	for _, queue := range trafficQueues {
		for {
			counts, err := f.sender.Runtime(f.t.Context(), semantics.QueueKind, queue)
			if err == nil && counts.Active == 0 {
				break
			}
			select {
			case <-tick.C:
			case <-late:
				f.t.Fatalf("queue %s is never empty: %+v, %v; failures %v", queue, counts, err, f.causes)
			}
		}
	}
	f.drain()
	f.receivers.Wait()
}

// wantNothingLost checks what became of each message. What a server did in the second before it died may be lost,
// because replicas follow asynchronously: a message, or that it was completed. A call that was under way then may have
// run before, however late this process read its answer. diedAt is zero if no server has died.
func (f *traffic) wantNothingLost(diedAt time.Time) {
	f.t.Helper()
	excused := func(call answered) bool {
		return !diedAt.IsZero() && call.ended.After(diedAt.Add(-time.Second)) && !call.began.After(diedAt)
	}
	lost := 0
	for id, call := range f.sent {
		if f.came[id] {
			continue
		}
		if lost++; !excused(call) {
			f.t.Errorf("message %s, sent (%s), is lost; a server died at %s", id, call, diedAt.Format(time.StampMicro))
		}
	}
	for id, err := range f.refused {
		if f.came[id] {
			f.t.Errorf("message %s was stored, though the answer said that nothing was changed: %v", id, err)
		}
	}
	for id, number := range f.again {
		if call := f.completed[id]; !excused(call) || number != call.number {
			f.t.Errorf("message %s came again with number %d, though it was completed (%s); a server died at %s",
				id, number, call, diedAt.Format(time.StampMicro))
		}
	}
	f.t.Logf("%d sent, %d of them lost, %d completed, %d of them came again; %d sends refused; failures %v",
		len(f.sent), lost, len(f.completed), len(f.again), len(f.refused), f.causes)
}

// waiting begins a receive that waits, and returns how to check that a message wakes it.
func (f *traffic) waiting() (wakes func()) {
	f.t.Helper()
	quiet := semantics.Source{Path: "quiet"}
	came := make(chan error, 1)
	go func() {
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for ; ; <-pace.C {
			options := broker.ReceiveOptions{MaxMessages: 1, MaxWait: semantics.MaxWait}
			delivery, err := f.receiver.Receive(f.t.Context(), quiet, options)
			if semantics.CodeOf(err) == semantics.StoreUnavailable {
				continue
			}
			if err == nil && len(delivery.Messages) != 1 {
				err = errors.New("nothing came")
			}
			came <- err
			return
		}
	}()
	return func() {
		f.t.Helper()
		for {
			_, err := f.sender.Send(f.t.Context(), semantics.ToQueue("quiet"), []*semantics.Message{{MessageID: "1"}})
			if err == nil {
				break
			}
			if semantics.CodeOf(err) != semantics.StoreUnavailable {
				f.t.Fatal(err)
			}
		}
		select {
		case err := <-came:
			must(f.t, err)
		case <-time.After(redistest.Patience):
			f.t.Error("the receive that waits was not woken")
		}
	}
}
