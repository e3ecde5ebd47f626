package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// lossy is a store whose answers to transactions can be lost, after they were run or before.
type lossy struct {
	semantics.Store

	loses, reaches bool
	refuses        error         // what it answers without running the transaction
	isUnconfirmed  bool          // it runs a transaction and cannot confirm the durability
	hold           chan struct{} // answers wait until it is closed
}

func (s *lossy) Transact(
	ctx context.Context, once *semantics.Once, operations []semantics.Operation,
) (outcome semantics.TransactionOutcome) {
	if s.hold != nil {
		<-s.hold
	}
	if s.refuses != nil {
		return semantics.TransactionOutcome{Err: s.refuses}
	}
	if s.reaches || !s.loses {
		outcome = s.Store.Transact(ctx, once, operations)
	}
	if s.loses {
		outcome = semantics.TransactionOutcome{Err: semantics.Errorf(semantics.StoreUnavailable, "lost").
			With(semantics.DetailOutcome, semantics.OutcomeUnknown)}
	}
	if s.isUnconfirmed {
		outcome.Err = semantics.Unconfirmed(semantics.DurabilityReplica, nil)
	}
	return outcome
}

// begun returns a Broker with a queue and a transaction with one send.
func begun(t *testing.T) (b *Broker, store *lossy, id string) {
	t.Helper()
	store = &lossy{Store: memstore.New()}
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	b = New(store)
	t.Cleanup(b.Close)
	return b, store, beginWith(t, b, "a")
}

func beginWith(t *testing.T, b *Broker, text string) string {
	t.Helper()
	id, err := b.Begin("app")
	if err == nil {
		_, err = b.Add(t.Context(), id, []semantics.Operation{sendOf(text)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func sendOf(text string) semantics.Operation {
	return semantics.Operation{
		Verb: semantics.OperationSend, Source: semantics.Source{Path: "orders"},
		Messages: []*semantics.Message{{Body: []byte(text)}},
	}
}

func commit(t *testing.T, b *Broker, id string) (*TransactionResult, error) {
	t.Helper()
	return b.Commit(t.Context(), id, func([]semantics.Operation) error { return nil })
}

// pass lets time pass in the bubble of a test.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // takes no time there
}

func wantReason(t *testing.T, err error, want semantics.Code) {
	t.Helper()
	if got := semantics.CodeOf(err); got != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func wantUnknown(t *testing.T, err error) {
	t.Helper()
	if !semantics.IsOutcomeUnknown(err) || semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("got %v, want an unknown outcome", err)
	}
}

func wantSent(t *testing.T, b *Broker, want int64) {
	t.Helper()
	counts, err := b.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.Active != want {
		t.Errorf("%d messages were sent, want %d: %v", counts.Active, want, err)
	}
}

// wantKept checks how many transactions and bytes of operations a Broker keeps.
func wantKept(t *testing.T, b *Broker, transactions int, hasOperations bool) {
	t.Helper()
	s := &b.transactions
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) != transactions || (s.bytes > 0) != hasOperations || s.bytes < 0 {
		t.Errorf("%d transactions with %d bytes of operations are kept, want %d, with operations: %v", len(s.byID), s.bytes, transactions, hasOperations)
	}
	if transactions == 0 && (s.answers != 0 || len(s.ended) != 0) {
		t.Errorf("%d bytes of answers of %d are left", s.answers, len(s.ended))
	}
}

func TestTX_3_TimedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _, id := begun(t)
		wantKept(t, b, 1, true)
		pass(semantics.TransactionLifetime)
		synctest.Wait()
		wantKept(t, b, 1, false) // without any call
		_, err := commit(t, b, id)
		wantReason(t, err, semantics.TransactionTimedOut)
		_, err = b.Add(t.Context(), id, []semantics.Operation{sendOf("b")})
		wantReason(t, err, semantics.TransactionTimedOut)
		wantReason(t, b.Rollback(t.Context(), id), semantics.TransactionTimedOut)
		wantSent(t, b, 0)
	})
}

func TestTX_9_LongOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _, id := begun(t)
		committed := beginWith(t, b, "b")
		if _, err := commit(t, b, committed); err != nil {
			t.Fatal(err)
		}
		pass(semantics.TransactionLifetime + semantics.RequestsKeptFor)
		synctest.Wait()
		wantKept(t, b, 0, false)
		for _, gone := range []string{id, committed} {
			_, err := commit(t, b, gone)
			wantReason(t, err, semantics.TransactionNotFound)
		}
	})
}

func TestTX_9_AnswersAreBounded(t *testing.T) {
	t.Parallel()
	b, _, first := begun(t)
	if _, err := commit(t, b, first); err != nil {
		t.Fatal(err)
	}
	for range MaxTransactions {
		id, err := b.Begin("app")
		if err == nil {
			err = b.Rollback(t.Context(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wantKept(t, b, MaxTransactions, false)
	_, err := commit(t, b, first)
	wantReason(t, err, semantics.TransactionNotFound)
}

// A commit whose answer was lost may be repeated, also when the transaction would be over: it returns what happened.
func TestTX_12_CommitWithUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, reaches := range []bool{false, true} {
		t.Run(fmt.Sprintf("reaches the store: %v", reaches), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, store, id := begun(t)
				pass(semantics.TransactionLifetime - time.Second)
				store.loses, store.reaches = true, reaches
				_, err := commit(t, b, id)
				wantUnknown(t, err)
				_, err = b.Add(t.Context(), id, []semantics.Operation{sendOf("b")})
				wantUnknown(t, err)
				wantUnknown(t, b.Rollback(t.Context(), id))
				pass(semantics.RequestsKeptFor / 2)
				store.loses = false
				for i := range 2 {
					result, err := commit(t, b, id)
					if err != nil || result.Repeated != (reaches || i > 0) || len(result.Results) != 1 {
						t.Errorf("repeated commit: %+v, %v", result, err)
					}
				}
				wantSent(t, b, 1)
			})
		})
	}
}

// When the store has forgotten what became of a commit, a repeat does not run it again, and says that it is unknown.
func TestTX_12_UnknownOutcomeStaysUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, store, id := begun(t)
		store.loses, store.reaches = true, true
		_, err := commit(t, b, id)
		wantUnknown(t, err)
		pass(semantics.RequestsKeptFor)
		store.loses = false
		for range 2 {
			_, err = commit(t, b, id)
			wantUnknown(t, err)
		}
		wantUnknown(t, b.Rollback(t.Context(), id))
		wantSent(t, b, 1)
		wantKept(t, b, 1, false)
		pass(semantics.RequestsKeptFor)
		synctest.Wait()
		wantKept(t, b, 0, false)
	})
}

// What the caller of a commit may not do is not done, and the transaction stays open.
func TestAUTH_3_CommitsArePermitted(t *testing.T) {
	t.Parallel()
	b, _, id := begun(t)
	denied := semantics.Errorf(semantics.PermissionDenied, "no")
	_, err := b.Commit(t.Context(), id, func(operations []semantics.Operation) error {
		if len(operations) != 1 || operations[0].Source.Path != "orders" {
			t.Errorf("asked for %+v", operations)
		}
		return denied
	})
	wantReason(t, err, semantics.PermissionDenied)
	wantSent(t, b, 0)
	if _, err := commit(t, b, id); err != nil {
		t.Error(err)
	}
	asked := false
	_, err = b.Commit(t.Context(), id, func(operations []semantics.Operation) error {
		asked = len(operations) == 1 && operations[0].Source.Path == "orders" && operations[0].Messages == nil
		return denied
	})
	wantReason(t, err, semantics.PermissionDenied)
	if !asked {
		t.Error("the repeated commit of an ended transaction asked for nothing")
	}
}

// A transaction whose commit is under way when it would be over is remembered as any other.
func TestTX_12_CommitUnderWayAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, reaches := range []bool{false, true} {
		t.Run(fmt.Sprintf("the answer is lost: %v", reaches), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, store, id := begun(t)
				pass(semantics.TransactionLifetime - time.Second)
				store.hold, store.loses, store.reaches = make(chan struct{}), reaches, reaches
				first := make(chan error)
				go func() {
					_, err := commit(t, b, id)
					first <- err
				}()
				pass(2 * time.Second)
				synctest.Wait()
				close(store.hold)
				if err := <-first; reaches {
					wantUnknown(t, err)
				} else if err != nil {
					t.Error(err)
				}
				store.loses = false
				pass(semantics.RequestsKeptFor / 2)
				synctest.Wait()
				result, err := commit(t, b, id)
				if err != nil || !result.Repeated {
					t.Errorf("repeated commit: %+v, %v", result, err)
				}
				wantSent(t, b, 1)
				pass(semantics.RequestsKeptFor)
				synctest.Wait()
				wantKept(t, b, 0, false)
			})
		})
	}
}

// Who waits for the commit of another caller goes when its own call ends.
func TestTX_12_WaitingForACommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, store, id := begun(t)
		store.hold = make(chan struct{})
		first := make(chan error)
		go func() {
			_, err := commit(t, b, id)
			first <- err
		}()
		synctest.Wait()
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := b.Commit(short, id, func([]semantics.Operation) error { return nil })
		wantReason(t, err, semantics.CodeOf(semantics.CancelledBy(short)))
		_, err = b.Add(short, id, []semantics.Operation{sendOf("b")})
		wantReason(t, err, semantics.CodeOf(semantics.CancelledBy(short)))
		wantReason(t, b.Rollback(short, id), semantics.CodeOf(semantics.CancelledBy(short)))
		close(store.hold)
		if err := <-first; err != nil {
			t.Error(err)
		}
		wantSent(t, b, 1)
	})
}

// The store may forget the id of a commit, if there were many others. A repeat that is refused then does not say that
// nothing was done: the first one may have ended the lock.
func TestTX_12_ARefusedRepeatIsUnknown(t *testing.T) {
	t.Parallel()
	b, store, id := begun(t)
	store.loses, store.reaches = true, true
	_, err := commit(t, b, id)
	wantUnknown(t, err)
	store.loses = false
	for _, refusal := range []error{semantics.LockLost("orders", 0), semantics.NotFound("orders")} {
		store.refuses = refusal
		_, err = commit(t, b, id)
		wantUnknown(t, err)
	}
	store.refuses = nil
	if result, err := commit(t, b, id); err != nil || !result.Repeated {
		t.Errorf("repeated commit: %+v, %v", result, err)
	}
}

// What was not confirmed took effect: its locks have ended, and the commit can be repeated to confirm it.
func TestDUR_2_CommitIsNotConfirmed(t *testing.T) {
	t.Parallel()
	b, store, _ := begun(t)
	source := semantics.Source{Path: "orders"}
	if _, err := b.Send(t.Context(), semantics.Target{Path: "orders"}, sendOf("a").Messages); err != nil {
		t.Fatal(err)
	}
	got, err := b.Receive(t.Context(), source, ReceiveOptions{MaxMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := beginWith(t, b, "b")
	completion := semantics.Operation{
		Verb: semantics.OperationComplete, Source: source, Tokens: []semantics.LockToken{got.Messages[0].LockToken},
	}
	if _, err := b.Add(t.Context(), id, []semantics.Operation{completion}); err != nil {
		t.Fatal(err)
	}
	store.isUnconfirmed = true
	_, err = commit(t, b, id)
	wantReason(t, err, semantics.DurabilityNotMet)
	wantReason(t, b.Rollback(t.Context(), id), semantics.TransactionNotFound) // as after any commit
	wantSent(t, b, 1)
	store.isUnconfirmed = false
	if result, err := commit(t, b, id); err != nil || !result.Repeated {
		t.Errorf("repeated commit: %+v, %v", result, err)
	}
	wantSent(t, b, 1)
}

// Each argument of an operation makes another transaction.
func TestTX_12_OtherOperationsHaveAnotherDigest(t *testing.T) {
	t.Parallel()
	text, empty, delay, version := "a", "", time.Second, int64(1)
	all := map[string]semantics.Operation{
		"plain":             {},
		"to a topic":        {IsTopic: true},
		"delay":             {Abandon: semantics.AbandonOptions{Delay: &delay}},
		"order":             {Abandon: semantics.AbandonOptions{SkipOrder: true}},
		"reason":            {Texts: semantics.DeadLetterTexts{Reason: &text}},
		"empty reason":      {Texts: semantics.DeadLetterTexts{Reason: &empty}},
		"description":       {Texts: semantics.DeadLetterTexts{Description: &text}},
		"property":          {Properties: map[string]semantics.Value{"a": semantics.String("b")}},
		"other property":    {Properties: map[string]semantics.Value{"b": semantics.String("b")}},
		"empty state":       {State: []byte{}},
		"state":             {State: []byte("a")},
		"version":           {Version: &version},
		"number":            {Numbers: []int64{1}},
		"token":             {Tokens: []semantics.LockToken{{}}},
		"source":            {Source: semantics.Source{Path: "orders"}},
		"verb":              {Verb: semantics.OperationDefer},
		"message":           {Messages: sendOf("a").Messages},
		"message of a size": {Messages: sendOf("ab").Messages},
	}
	names := map[string]string{}
	for name, o := range all {
		digest := digestOfOperations([]semantics.Operation{o})
		if other := names[digest]; other != "" {
			t.Errorf("%s and %s are one to a store", name, other)
		}
		names[digest] = name
	}
}

// What settlements add to messages counts for each of them, and so does what an ended transaction keeps.
func TestTX_3_ChangesAreCounted(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 1000)
	changes := semantics.Operation{
		Tokens: make([]semantics.LockToken, 500), Properties: map[string]semantics.Value{"a": semantics.String(strings.Repeat("x", 9000))},
	}
	var load transactionLoad
	load.add(&changes)
	wantReason(t, load.check(), semantics.TransactionTooLarge)
	texts := []semantics.Operation{{
		Tokens: make([]semantics.LockToken, 1), Texts: semantics.DeadLetterTexts{Reason: &text, Description: &text},
	}}
	if got := sizeOf(texts); got < 2000 {
		t.Errorf("texts of 2000 bytes are kept as %d", got)
	}
	if got := sizeOfAnswer(nil, semantics.NotFound(text)); got < 1000 {
		t.Errorf("a failure of 1000 bytes is kept as %d", got)
	}
}

// What took effect stays so, whatever a repeat hears, and is never rolled back or unknown.
func TestDUR_2_UnconfirmedCommitsStayStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, store, id := begun(t)
		store.isUnconfirmed = true
		_, err := commit(t, b, id)
		wantReason(t, err, semantics.DurabilityNotMet)
		wantReason(t, b.Rollback(t.Context(), id), semantics.TransactionNotFound)
		_, err = b.Add(t.Context(), id, []semantics.Operation{sendOf("b")})
		wantReason(t, err, semantics.TransactionNotFound)
		for _, code := range []semantics.Code{semantics.StoreUnavailable, semantics.MessageLockLost} {
			store.refuses = semantics.Errorf(code, "refused")
			_, err = commit(t, b, id)
			wantReason(t, err, semantics.DurabilityNotMet)
		}
		pass(semantics.RequestsKeptFor)
		synctest.Wait()
		_, err = commit(t, b, id)
		wantReason(t, err, semantics.DurabilityNotMet)
		wantReason(t, b.Rollback(t.Context(), id), semantics.TransactionNotFound)
		wantSent(t, b, 1)
	})
}

// Subscriptions get their copies although the transaction is not confirmed.
func TestDUR_2_UnconfirmedTransactionsToTopics(t *testing.T) {
	t.Parallel()
	store := &lossy{Store: memstore.New(), isUnconfirmed: true}
	b := New(store, WithRules(filter.Compile))
	t.Cleanup(b.Close)
	copies := "news/subscriptions/all"
	for _, entity := range []semantics.Entity{
		{Kind: semantics.TopicKind, Name: "news"}, {Kind: semantics.SubscriptionKind, Name: copies},
	} {
		if _, err := b.CreateEntity(t.Context(), entity.Kind, entity.Name, semantics.Options{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	publish := sendOf("a")
	publish.Source.Path, publish.IsTopic = "news", true
	_, err := b.Transact(t.Context(), nil, []semantics.Operation{publish})
	wantReason(t, err, semantics.DurabilityNotMet)
	counts, err := b.Runtime(t.Context(), semantics.SubscriptionKind, copies)
	if err != nil || counts.Active != 1 {
		t.Errorf("%d copies, want 1: %v", counts.Active, err)
	}
}

// An internal failure may come after the step.
func TestTX_12_AnUnexpectedFailureIsUnknown(t *testing.T) {
	t.Parallel()
	b, store, id := begun(t)
	store.refuses = semantics.Errorf(semantics.Internal, "no reply")
	_, err := commit(t, b, id)
	wantReason(t, err, semantics.StoreUnavailable)
	wantUnknown(t, err)
	wantUnknown(t, b.Rollback(t.Context(), id))
	store.refuses = nil
	if _, err := commit(t, b, id); err != nil {
		t.Error(err)
	}
	wantSent(t, b, 1)
}
