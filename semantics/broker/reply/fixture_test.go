package reply_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// office has a Broker that asks, one that works, the queues "work" and "replies", and a clock that the test moves by
// waiting.
type office struct {
	t      *testing.T
	store  *spiedStore
	asks   *broker.Broker
	works  *broker.Broker
	asking sync.WaitGroup
}

// spiedStore is a memstore that knows the last session that was accepted, and fails when told to.
type spiedStore struct {
	*memstore.Store

	onSend  func(path string)
	session atomic.Pointer[semantics.Source]
	down    atomic.Bool
	jams    atomic.Bool // replies cannot be settled
}

func (s *spiedStore) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	if s.onSend != nil {
		s.onSend(path)
	}
	return s.Store.Send(ctx, path, messages)
}

func (s *spiedStore) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	if s.down.Load() {
		return nil, errAway
	}
	session, err := s.Store.AcceptSession(ctx, path, id)
	if err == nil {
		s.session.Store(&semantics.Source{Path: path, SessionLock: session.Lock})
	}
	return session, err
}

func (s *spiedStore) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if s.down.Load() && source.Path == "replies" {
		return semantics.Batch{}, errAway
	}
	return s.Store.Receive(ctx, source, limit, register)
}

func (s *spiedStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if s.jams.Load() && source.Path == "replies" {
		return nil, errAway
	}
	return s.Store.Complete(ctx, source, tokens)
}

func (s *spiedStore) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if s.jams.Load() && source.Path == "replies" {
		return nil, errAway
	}
	return s.Store.Release(ctx, source, tokens)
}

// inOffice runs a test in a bubble whose time passes by itself while everybody waits.
func inOffice(t *testing.T, test func(t *testing.T, o *office)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &spiedStore{Store: memstore.New()}
		o := &office{t: t, store: store, asks: broker.New(store), works: broker.New(store)}
		o.queue("work", semantics.DefaultOptions())
		replies := semantics.DefaultOptions()
		replies.RequiresSession, replies.LockDuration = true, 5*time.Second
		o.queue("replies", replies)
		test(t, o)
		o.asks.Close()
		o.works.Close()
		o.asking.Wait()
		if n := o.asks.Held(); n != 0 {
			t.Errorf("%d held after the end", n)
		}
	})
}

func (o *office) queue(name string, options semantics.Options) {
	o.t.Helper()
	if _, _, err := o.store.CreateEntity(o.t.Context(), semantics.QueueKind, name, options); err != nil {
		o.t.Fatal(err)
	}
}

// answer is what a request came to.
type answer struct {
	sent     []semantics.SendResult
	delivery *delivery.Delivery
	err      error
}

func (a answer) text() string {
	if a.err != nil {
		return string(semantics.CodeOf(a.err))
	}
	return string(a.delivery.Messages[0].Body)
}

// ask begins a request. Its reply is delivered.
func (o *office) ask(ctx context.Context, target string, m *semantics.Message, timeout time.Duration) <-chan answer {
	done := make(chan answer, 1)
	o.asking.Go(func() {
		var a answer
		a.sent, a.delivery, a.err = o.asks.Request(ctx, semantics.ToQueue(target), "replies", m, timeout)
		if a.err == nil {
			if err := a.delivery.Delivered(o.t.Context()); err != nil {
				o.t.Error(err)
			}
		}
		done <- a
	})
	return done
}

// take receives requests and completes them.
func (o *office) take(source string, n int) []*semantics.Received {
	o.t.Helper()
	var taken []*semantics.Received
	for len(taken) < n {
		delivery, err := o.works.Receive(o.t.Context(), semantics.Source{Path: source}, broker.ReceiveOptions{MaxMessages: n - len(taken), MaxWait: time.Minute})
		if err != nil || len(delivery.Messages) == 0 {
			o.t.Fatalf("got %v, %v", delivery, err)
		}
		for _, m := range delivery.Messages {
			if _, err := o.works.Complete(o.t.Context(), delivery.Source(), []semantics.LockToken{m.LockToken}); err != nil {
				o.t.Fatal(err)
			}
		}
		taken = append(taken, delivery.Messages...)
	}
	return taken
}

// reply answers a request as a worker does (RR-3).
func (o *office) reply(request *semantics.Received, text string) {
	o.t.Helper()
	key := request.CorrelationID
	if key == "" {
		key = request.MessageID
	}
	m := &semantics.Message{SessionID: request.ReplyToSessionID, CorrelationID: key, Body: []byte(text)}
	if _, err := o.works.Send(o.t.Context(), semantics.ToQueue(request.ReplyTo), []*semantics.Message{m}); err != nil {
		o.t.Fatal(err)
	}
}

// left fails the test unless so many replies are in the reply queue.
func (o *office) left(want int64) {
	o.t.Helper()
	runtime, err := o.store.Runtime(o.t.Context(), semantics.QueueKind, "replies")
	if err != nil || runtime.Total() != want {
		o.t.Errorf("%d messages among the replies, %v, want %d", runtime.Total(), err, want)
	}
}

// sessionIs fails the test unless the Broker's session is held by it or free.
func (o *office) sessionIs(held bool, id string) {
	o.t.Helper()
	session, err := o.store.Store.AcceptSession(o.t.Context(), "replies", id)
	if got := semantics.CodeOf(err) == semantics.SessionCannotBeLocked; got != held {
		o.t.Errorf("accept of the session: %v, want it held: %v", err, held)
	}
	if err == nil {
		if err := o.store.CloseSession(o.t.Context(), semantics.Source{Path: "replies", SessionLock: session.Lock}); err != nil {
			o.t.Error(err)
		}
	}
}

func (o *office) orphans(want int64) {
	o.t.Helper()
	if got := o.asks.OrphanReplies(); got != want {
		o.t.Errorf("%d orphans, want %d", got, want)
	}
}

// jam lets a reply come that cannot be settled when ends has been called for it, or as an orphan.
func (o *office) jam(ends func(o *office, d *delivery.Delivery) error) {
	o.t.Helper()
	replies := make(chan *delivery.Delivery, 1)
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	o.asking.Go(func() {
		_, delivery, _ := o.asks.Request(ctx, semantics.ToQueue("work"), "replies", &semantics.Message{}, time.Minute)
		replies <- delivery
	})
	r := o.take("work", 1)[0]
	if ends == nil { // nobody waits for it
		cancel()
		<-replies
	}
	o.store.jams.Store(true)
	o.reply(r, "in the way")
	if ends != nil {
		wantCode(o.t, "settle", ends(o, <-replies), semantics.StoreUnavailable)
	}
	synctest.Wait()
}
