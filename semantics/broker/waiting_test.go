package broker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// fakeStore has one source whose receives the test answers. What it does not override panics.
type fakeStore struct {
	semantics.Store
	looks  chan look // every Receive stands here until it is answered, unless answer is set
	answer func() (semantics.Batch, error)
	wakes  chan int
	passed chan struct{}
	watch  func() error
	noted  chan []semantics.Use
}

type look struct {
	register semantics.Register
	answer   chan<- semantics.Batch
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		looks: make(chan look), wakes: make(chan int), passed: make(chan struct{}, 100), watch: func() error { return nil },
		noted: make(chan []semantics.Use, 100),
	}
}

func (s *fakeStore) Receive(ctx context.Context, _ semantics.Source, _ int, register semantics.Register) (semantics.Batch, error) {
	if s.answer != nil {
		return s.answer()
	}
	answer := make(chan semantics.Batch, 1)
	cancelled := &semantics.Error{Code: semantics.Cancelled, Message: "over"}
	select {
	case s.looks <- look{register, answer}:
	case <-ctx.Done():
		return semantics.Batch{}, cancelled
	}
	select {
	case batch := <-answer:
		return batch, nil
	case <-ctx.Done():
		return semantics.Batch{}, cancelled
	}
}

func (s *fakeStore) Watch(context.Context, semantics.Source) (semantics.Watch, error) {
	return s, s.watch()
}
func (s *fakeStore) C() <-chan int                   { return s.wakes }
func (s *fakeStore) Sessions() []semantics.LockToken { return nil }
func (s *fakeStore) Close()                          {}

func (s *fakeStore) NoteUse(_ context.Context, uses []semantics.Use) error {
	s.noted <- uses
	return nil
}

func (s *fakeStore) PassOn(context.Context, semantics.Source) error {
	s.passed <- struct{}{}
	return nil
}

var (
	nothing = semantics.Batch{RecheckAfter: time.Hour}
	source  = semantics.Source{Path: "q"}
)

func something() semantics.Batch {
	return semantics.Batch{Messages: []*semantics.Received{{SequenceNumber: 1}}, RecheckAfter: time.Hour}
}

type received struct {
	delivery *delivery.Delivery
	err      error
}

// next gives the value of a channel that must come.
func next[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func startReceive(ctx context.Context, b *broker.Broker) <-chan received {
	return startWait(ctx, b, 5*time.Minute)
}

func startWait(ctx context.Context, b *broker.Broker, most time.Duration) <-chan received {
	done := make(chan received, 1)
	go func() {
		delivery, err := b.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: 1, MaxWait: most})
		done <- received{delivery, err}
	}()
	return done
}

func newBroker(t *testing.T, store semantics.Store) *broker.Broker {
	t.Helper()
	b := broker.New(store)
	t.Cleanup(b.Close)
	return b
}

func TestRECV_5_LookBeforeAndAfterTheSubscription(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	done := startReceive(t.Context(), newBroker(t, store))
	first := next(t, "the first look", store.looks)
	if first.register != semantics.RegisterNever {
		t.Errorf("the first look registers with %d, although no subscription stands", first.register)
	}
	first.answer <- nothing
	second := next(t, "the look after the subscription", store.looks)
	if second.register != semantics.RegisterIfEmpty {
		t.Errorf("the second look registers with %d, want RegisterIfEmpty", second.register)
	}
	second.answer <- nothing
	store.wakes <- 1
	next(t, "the look after the wake-up", store.looks).answer <- something()
	if got := next(t, "the answer", done); got.err != nil || len(got.delivery.Messages) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestTTL_8_MoreToClearMeansLookAgainAtOnce(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	done := startReceive(t.Context(), newBroker(t, store))
	next(t, "look 1", store.looks).answer <- semantics.Batch{} // by a receive that does not wait yet
	next(t, "look 2", store.looks).answer <- nothing
	next(t, "look 3", store.looks).answer <- semantics.Batch{} // by one that is in the waiting list
	next(t, "look 4", store.looks).answer <- something()
	if got := next(t, "the answer", done); got.err != nil {
		t.Error(got.err)
	}
}

func TestRECV_10_WakeUpWhileOnTheWay(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	done := startReceive(t.Context(), newBroker(t, store))
	next(t, "look 1", store.looks).answer <- nothing
	onTheWay := next(t, "look 2", store.looks)
	store.wakes <- 1 // nobody sits
	store.wakes <- 1 // taken only when the first has been dealt with
	onTheWay.answer <- nothing
	next(t, "the look for the wake-up that came meanwhile", store.looks).answer <- something()
	if got := next(t, "the answer", done); got.err != nil {
		t.Error(got.err)
	}
	next(t, "the second wake-up, passed on", store.passed)
}

func TestRECV_10_UnusedWakeUpIsPassedOn(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	done := startReceive(t.Context(), newBroker(t, store))
	next(t, "look 1", store.looks).answer <- nothing
	next(t, "look 2", store.looks).answer <- something()
	next(t, "the answer", done)
	store.wakes <- 1 // the waiting list stands empty
	next(t, "the passing on", store.passed)
}

// A waiter that was called for something another one took has not had its turn: it keeps its place before those who
// came later.
func TestRECV_10_FoundNothingKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		b := newBroker(t, store)
		var waiters []<-chan received
		for i := range 3 {
			waiters = append(waiters, startReceive(t.Context(), b))
			if i == 0 {
				next(t, "the first look", store.looks).answer <- nothing
			}
			next(t, "a look of one who waits", store.looks).answer <- nothing
			synctest.Wait() // it waits
		}
		store.wakes <- 2
		for range 2 {
			next(t, "a look for nothing", store.looks).answer <- nothing
		}
		synctest.Wait()
		for i, waiter := range waiters {
			store.wakes <- 1
			next(t, "a look", store.looks).answer <- something()
			synctest.Wait()
			select {
			case <-waiter:
			default:
				t.Errorf("waiter %d came before those who got a message, and has none", i)
			}
		}
	})
}

// Those who wait take turns, each that was served behind all others.
func TestRECV_10_WaitersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, source.Path, semantics.DefaultOptions()); err != nil {
			t.Fatal(err)
		}
		b := newBroker(t, store)
		const waiters, rounds = 4, 10
		var waiting [waiters]<-chan received
		for i := range waiting {
			waiting[i] = startReceive(t.Context(), b)
			synctest.Wait() // it waits
		}
		for i := range waiters * rounds {
			if _, err := b.Send(t.Context(), semantics.ToQueue(source.Path), []*semantics.Message{{MessageID: "m"}}); err != nil {
				t.Fatal(err)
			}
			turn := i % waiters
			if got := next(t, "the answer of the one whose turn it is", waiting[turn]); got.err != nil || len(got.delivery.Messages) != 1 {
				t.Fatalf("message %d: %+v", i, got)
			}
			waiting[turn] = startReceive(t.Context(), b)
			synctest.Wait()
		}
	})
}

// The timer goes on for those who still sit when the one that it called leaves, with something or without.
func TestRECV_10_TimerGoesOnForTheOthers(t *testing.T) {
	t.Parallel()
	soon := semantics.Batch{RecheckAfter: time.Second}
	for name, answer := range map[string]semantics.Batch{"it found something": something(), "it had no more time": soon} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				b := newBroker(t, store)
				first := startWait(t.Context(), b, time.Second+time.Millisecond)
				next(t, "look 1 of the first", store.looks).answer <- soon
				next(t, "look 2 of the first", store.looks).answer <- soon
				synctest.Wait() // it waits
				second := startWait(t.Context(), b, time.Minute)
				next(t, "the look of the second", store.looks).answer <- soon
				called := next(t, "the look of the first, called by the timer", store.looks)
				<-time.After(2 * time.Millisecond)
				called.answer <- answer
				next(t, "the end of the first", first)
				next(t, "a look of the second", store.looks).answer <- something()
				next(t, "the answer of the second", second)
			})
		})
	}
}

// A caller that goes away after it was called, but before it could take what it was called for, must leave that to
// somebody else who waits.
func TestRECV_7_WakeUpOfACancelledReceiveIsNotLost(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	b := newBroker(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	first := startReceive(ctx, b)
	next(t, "look 1 of the first", store.looks).answer <- nothing
	next(t, "look 2 of the first", store.looks).answer <- nothing
	second := startReceive(t.Context(), b)
	next(t, "the look of the second", store.looks).answer <- nothing

	store.wakes <- 1
	called := next(t, "the look of whoever was called", store.looks)
	cancel()
	wantCode(t, "first", next(t, "the end of the first", first).err, semantics.Cancelled)
	called.answer <- something() // if the second sat down before the first, it was the one that was called
	select {
	case l := <-store.looks:
		l.answer <- something()
		next(t, "the second's answer", second)
	case <-second:
	case <-time.After(2 * time.Minute):
		t.Fatal("the wake-up was lost with the first")
	}
}

// The same when the wake-up and the end of the caller meet while it still sits.
func TestRECV_7_WakeUpAgainstCancelIsNotLost(t *testing.T) {
	t.Parallel()
	for range 200 { // which of the two comes first is chance
		store := newFakeStore()
		b := broker.New(store)
		ctx, cancel := context.WithCancel(t.Context())
		first := startReceive(ctx, b)
		next(t, "look 1 of the first", store.looks).answer <- nothing
		next(t, "look 2 of the first", store.looks).answer <- nothing
		second := startReceive(t.Context(), b)
		next(t, "the look of the second", store.looks).answer <- nothing
		cancel()
		store.wakes <- 1
		for served := false; !served; {
			select {
			case l := <-store.looks:
				l.answer <- something()
			case got := <-first:
				first = nil
				served = got.err == nil // else somebody else must be
			case <-second:
				served = true
			case <-time.After(2 * time.Minute):
				t.Fatal("the wake-up was lost with the first")
			}
		}
		b.Close()
	}
}

func TestQUOTA_4_WaitingReceives(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	looked := make(chan struct{}, 3*broker.MaxWaiting)
	store.answer = func() (semantics.Batch, error) {
		looked <- struct{}{}
		return nothing, nil
	}
	b := newBroker(t, store)
	var waits []<-chan received
	for i := range broker.MaxWaiting {
		waits = append(waits, startReceive(t.Context(), b))
		if i == 0 {
			next(t, "the first look", looked)
		}
		next(t, "a look of one who waits", looked)
	}
	got := next(t, "the refusal", startReceive(t.Context(), b))
	wantCode(t, "one too many", got.err, semantics.Throttled)
	if limit := semantics.AsError(got.err).Details[semantics.DetailLimit]; limit != "5000" {
		t.Errorf("the limit in the details is %q", limit)
	}
	if _, err := b.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 1}); err != nil {
		t.Errorf("a receive that does not wait is refused: %v", err)
	}
	b.BeginDrain()
	for _, done := range waits {
		if got := next(t, "the end of a wait", done); got.err != nil || len(got.delivery.Messages) != 0 {
			t.Fatalf("a drained wait gives %+v", got)
		}
	}
}

func TestWaitFailsWithItsSubscription(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	down := true
	store.watch = func() error {
		if down {
			return &semantics.Error{Code: semantics.StoreUnavailable, Message: "no connection", Err: errors.New("refused")}
		}
		return nil
	}
	store.answer = func() (semantics.Batch, error) { return nothing, nil }
	b := newBroker(t, store)
	options := broker.ReceiveOptions{MaxMessages: 1, MaxWait: time.Millisecond}
	_, err := b.Receive(t.Context(), source, options)
	wantCode(t, "while it is down", err, semantics.StoreUnavailable)
	down = false
	_, err = b.Receive(t.Context(), source, options)
	wantCode(t, "when it is back", err, "")
}

func TestDrain(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	b := newBroker(t, store)
	if _, err := b.CreateEntity(t.Context(), semantics.QueueKind, "q", semantics.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), semantics.ToQueue("q"), []*semantics.Message{{}, {}, {}}); err != nil {
		t.Fatal(err)
	}
	held, err := b.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 3})
	if err != nil || b.Held() != 3 || b.Draining() {
		t.Fatalf("Receive = %v, holds %d", err, b.Held())
	}
	waiting := startReceive(t.Context(), b)

	b.BeginDrain()
	b.BeginDrain()
	if got := next(t, "the end of the wait", waiting); semantics.CodeOf(got.err) == semantics.StoreUnavailable {
		// It came only after the drain began.
		t.Log("the wait was refused, not ended")
	} else if got.err != nil || len(got.delivery.Messages) != 0 {
		t.Errorf("the wait ended with %+v", got)
	}
	_, err = b.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 1})
	wantCode(t, "a new receive", err, semantics.StoreUnavailable)
	for _, take := range []func(context.Context, semantics.Source, []int64, semantics.Mode) (*delivery.Delivery, error){b.ReceiveDeferred, b.ReceiveBySequence} {
		if _, err := take(t.Context(), source, []int64{1}, semantics.PeekLock); semantics.CodeOf(err) != semantics.StoreUnavailable {
			t.Errorf("a receive by number while draining: %v", err)
		}
	}
	if cause := semantics.AsError(err).Details[semantics.DetailCause]; cause != "draining" {
		t.Errorf("the cause is %q", cause)
	}
	if _, err := b.Send(t.Context(), semantics.ToQueue("q"), []*semantics.Message{{}}); err != nil {
		t.Errorf("a send while draining: %v", err)
	}

	left := make(chan int, 1)
	go func() { left <- b.AwaitSettled(t.Context()) }()
	for _, m := range held.Messages[:2] {
		if _, err := b.Complete(t.Context(), source, []semantics.LockToken{m.LockToken}); err != nil {
			t.Fatal(err)
		}
	}
	if b.Held() != 1 {
		t.Errorf("%d messages are held, want 1", b.Held())
	}
	if err := b.ReleaseHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := next(t, "the end of AwaitSettled", left); n != 0 {
		t.Errorf("AwaitSettled = %d", n)
	}
	rows, err := b.Peek(t.Context(), source, 0, 10, semantics.ShowAll)
	if err != nil || len(rows) != 2 || rows[0].Locked || rows[0].DeliveryCount != 0 {
		t.Errorf("after the release: %+v, %v", rows, err)
	}
}

func TestAwaitSettledEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBroker(t, memstore.New())
	if _, err := b.CreateEntity(t.Context(), semantics.QueueKind, "q", semantics.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), semantics.ToQueue("q"), []*semantics.Message{{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 1}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n := b.AwaitSettled(ctx); n != 1 {
		t.Errorf("AwaitSettled = %d, want 1", n)
	}
}
