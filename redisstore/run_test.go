package redisstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
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
	r := &runs{t: t, clock: storetest.NewClock(), namespace: redistest.NamespaceUntil(t, redistest.URL(t)), held: map[int64]semantics.LockToken{}}
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
		for _, part := range []string{"locks", "runs", "ready", "deferred", "run_locks", "entity run_messages"} {
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
	r.want("receive", "run_locks run", "runs run=1-8", "entity run_messages=8")
	r.settle(r.complete, 3, 2)
	r.want("complete some", "run_locks run", "runs run=1-1,4-8", "entity run_messages=6")
	r.settle(r.abandon, 5)
	r.want("abandon", "run_locks run", "runs run=1-1,4-4,6-8", "entity run_messages=5", "ready 5")
	if _, err := r.RenewLocks(t.Context(), orders, []semantics.LockToken{r.held[1]}); err != nil {
		t.Fatal(err)
	}
	r.want("renew", "locks 1", "run_locks run", "runs run=4-4,6-8", "entity run_messages=4", "ready 5")
	r.settle(func(tokens []semantics.LockToken) ([]semantics.Code, error) {
		return r.Defer(t.Context(), orders, tokens, nil)
	}, 4)
	r.want("defer", "locks 1", "run_locks run", "runs run=6-8", "entity run_messages=3", "ready 5", "deferred 4")
	r.settle(r.complete, 8, 1, 6)
	r.want("complete alone and in the run", "run_locks run", "runs run=7-7", "entity run_messages=1", "ready 5", "deferred 4")
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
	r.want("receive", "run_locks run", "runs run=2-49,51-248,250-250", "entity run_messages=247")
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
	r.audit()
}

func (r *runs) key(part string) string { return "sb:{" + r.namespace + "/orders}:" + part }

func (r *runs) audit() {
	r.t.Helper()
	if err := audit.New(rawClient(r.t), r.namespace).Audit(r.t.Context(), "orders"); err != nil {
		r.t.Error(err)
	}
}

// A nonce that comes again while it is in use takes nothing from the run that has it.
func TestLOCK_2_NonceOfARunComesAgain(t *testing.T) {
	t.Parallel()
	r := newRuns(t, 10)
	for range 2 {
		reply := callScript(t, r.key, "receive", allKeys, r.clock.Now().UnixMilli(), "", 5, 0, 1<<20, 77, 0, "me", 5, 1<<20, 0)
		if reply[0] != "OK" {
			t.Fatalf("got %v", reply)
		}
	}
	r.want("received twice", "locks 10", "locks 6", "locks 7", "locks 8", "locks 9", "run_locks run", "runs run=1-5", "entity run_messages=5")
	r.clock.Advance(time.Minute)
	for range 2 {
		r.receive(10)
	}
	if len(r.held) != 10 {
		t.Errorf("%d messages came back, want 10", len(r.held))
	}
	r.settle(r.complete, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	r.want("completed")
}

// A run in many pieces is dissolved, so that no script has to parse many.
func TestLOCK_1_RunInManyPieces(t *testing.T) {
	t.Parallel()
	for name, verb := range map[string]func(r *runs, n int64){
		"complete": func(r *runs, n int64) { r.settle(r.complete, n) },
		"abandon":  func(r *runs, n int64) { r.settle(r.abandon, n) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRuns(t, 100)
			r.receive(100)
			pieces := 0
			for n := int64(2); n <= 98; n += 2 {
				verb(r, n)
				for _, run := range rawClient(t).HVals(t.Context(), r.key("runs")).Val() {
					pieces = max(pieces, 1+strings.Count(run, ","))
				}
			}
			if pieces != 16 {
				t.Errorf("a run had %d pieces, want 16", pieces)
			}
			r.audit()
			for n := int64(1); n <= 99; n += 2 {
				r.settle(r.complete, n)
			}
			r.audit()
		})
	}
}

// Keys that another client removed do not stop what is due, and a log that cannot be read locks nothing.
func TestRunsOfBrokenKeys(t *testing.T) {
	t.Parallel()
	r := newRuns(t, 10)
	c := rawClient(t)
	c.Rename(t.Context(), r.key("log"), r.key("log-away"))
	c.Set(t.Context(), r.key("log"), "x", 0)
	if _, err := r.Receive(t.Context(), orders, 5, semantics.RegisterNever); err == nil {
		t.Error("received without a log")
	}
	c.Rename(t.Context(), r.key("log-away"), r.key("log"))
	r.want("no log")
	r.receive(5)
	c.Del(t.Context(), r.key("runs"))
	r.clock.Advance(time.Minute)
	reply := callScript(t, r.key, "sweep", append(slices.Clip(allKeys), "suspended", "entity"), r.clock.Now().UnixMilli(), 0)
	if n := c.ZCard(t.Context(), r.key("run_locks")).Val(); n != 0 {
		t.Errorf("%d locks without a run are left after %v", n, reply)
	}
}
