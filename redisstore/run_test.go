package redisstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// runs is a queue of messages that are received together, whose state is compared step by step.
type runs struct {
	*redisstore.Store
	t         *testing.T
	clock     *storetest.Clock
	namespace string
	held      map[int64]semantics.LockToken
}

func newRuns(t *testing.T, messages int) *runs {
	t.Helper()
	r := &runs{t: t, clock: storetest.NewClock(), namespace: redistest.Namespace(), held: map[int64]semantics.LockToken{}}
	r.Store = redistest.Open(t, redisstore.Options{Namespace: r.namespace, Now: r.clock.Now})
	options := semantics.DefaultOptions()
	options.LockDuration = time.Minute
	if _, _, err := r.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	for range messages {
		if _, err := r.Send(t.Context(), "orders", []*semantics.Message{{MessageID: "m"}}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *runs) receive(n int) {
	r.t.Helper()
	batch, err := r.Receive(r.t.Context(), orders, n, semantics.RegisterNever)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range batch.Messages {
		r.held[m.SequenceNumber] = m.LockToken
	}
}

// settle settles messages, in the order given.
func (r *runs) settle(verb func([]semantics.LockToken) ([]semantics.Code, error), numbers ...int64) {
	r.t.Helper()
	var tokens []semantics.LockToken
	for _, n := range numbers {
		tokens = append(tokens, r.held[n])
	}
	codes, err := verb(tokens)
	if err != nil || slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" }) {
		r.t.Fatalf("settle %d: %v %v", numbers, codes, err)
	}
}

func (r *runs) complete(tokens []semantics.LockToken) ([]semantics.Code, error) {
	return r.Complete(r.t.Context(), orders, tokens)
}

func (r *runs) abandon(tokens []semantics.LockToken) ([]semantics.Code, error) {
	return r.Abandon(r.t.Context(), orders, tokens, semantics.AbandonOptions{})
}

// want compares what is kept of locks.
func (r *runs) want(step string, lines ...string) {
	r.t.Helper()
	var got []string
	for _, line := range dump(r.t, r.namespace) {
		for _, part := range []string{"locks", "runs", "ready", "deferred", "entity locked_more"} {
			if len(line) > len(part) && line[:len(part)] == part {
				got = append(got, line)
			}
		}
	}
	slices.Sort(lines)
	if diff := cmp.Diff(lines, got); diff != "" {
		r.t.Fatalf("%s (-want +got):\n%s", step, diff)
	}
}

// Messages that are received together share a lock. One that is treated alone gets a lock of its own, with the token that
// it has.
func TestLOCK_1_RunStepByStep(t *testing.T) {
	t.Parallel()
	r := newRuns(t, 9)
	r.receive(8)
	r.want("receive", "locks run", "runs run=1-8", "entity locked_more=7")
	r.settle(r.complete, 3, 2)
	r.want("complete some", "locks run", "runs run=1-1,4-8", "entity locked_more=5")
	r.settle(r.abandon, 5)
	r.want("abandon", "locks run", "runs run=1-1,4-4,6-8", "entity locked_more=4", "ready 5")
	if _, err := r.RenewLocks(t.Context(), orders, []semantics.LockToken{r.held[1]}); err != nil {
		t.Fatal(err)
	}
	r.want("renew", "locks 1", "locks run", "runs run=4-4,6-8", "entity locked_more=3", "ready 5")
	r.settle(func(tokens []semantics.LockToken) ([]semantics.Code, error) {
		return r.Defer(t.Context(), orders, tokens, nil)
	}, 4)
	r.want("defer", "locks 1", "locks run", "runs run=6-8", "entity locked_more=2", "ready 5", "deferred 4")
	r.settle(r.complete, 8, 1, 6)
	r.want("complete alone and in the run", "locks run", "runs run=7-7", "ready 5", "deferred 4")
	r.settle(r.complete, 7)
	r.want("complete the last", "ready 5", "deferred 4")
}

// The end of a run's lock is that of each of its messages: they are available again, in slices, and counted as such at
// once.
func TestLOCK_6_RunEnds(t *testing.T) {
	t.Parallel()
	r := newRuns(t, 250)
	r.receive(250)
	r.settle(r.complete, 1, 50, 249)
	r.want("receive", "locks run", "runs run=2-49,51-248,250-250", "entity locked_more=246")
	r.clock.Advance(time.Minute)
	counts, err := r.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.Locked != 0 || counts.Active != 247 {
		t.Errorf("got %+v, %v, want 247 messages, none of them locked", counts, err)
	}
	if codes, err := r.complete([]semantics.LockToken{r.held[2], r.held[250]}); err != nil || codes[0] != semantics.MessageLockLost || codes[1] != semantics.MessageLockLost {
		t.Errorf("complete after the end: got %v, %v, want MESSAGE_LOCK_LOST", codes, err)
	}
	clear(r.held)
	for range 4 {
		r.receive(250)
	}
	if len(r.held) != 247 {
		t.Errorf("%d messages came back, want 247", len(r.held))
	}
	auditor := redistest.NewAuditor(rawClient(t), r.namespace)
	if err := auditor.Audit(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
}
