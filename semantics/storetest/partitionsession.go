package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

var partitionSessionTests = []ruleTest{
	testPART_2_ASessionHasItsPartition,
	testPART_3_TokensOfOtherPartitions,
	testPART_3_NumbersInASession,
	testPART_4_AcceptNextFromAllPartitions,
	testPART_4_AcceptNextWaitsForAnyPartition,
	testPART_4_EverySessionOnce,
	testPART_4_TurnsInSeveralPartitions,
	testPART_4_CancelledAcceptLocksNothing,
	testPART_5_SessionsInOneList,
	testPART_7_AcceptNextSkipsWhatIsAway,
	testPART_1_SessionsOfARecreatedQueue,
	testPART_1_FirstCallOfASidecarInASession,
}

// spreadSessions makes orders a queue with sessions and partitions, and returns one session for each partition.
func (h *fixture) spreadSessions(n int64, changes ...change) (ids []string) {
	h.t.Helper()
	h.spread(n, append(changes, hasSessions)...)
	found := map[int]string{}
	for i := 0; len(found) < int(n); i++ {
		id := fmt.Sprint("s", i)
		_, p := semantics.PartitionOf(h.send(part(id, "m")))
		if found[p] == "" {
			found[p] = id
		}
		h.same(h.purge(sessionOf(id), broker.PurgeOptions{Before: h.in(ms)}), int64(1))
	}
	for p := range int(n) {
		ids = append(ids, found[p])
	}
	return ids
}

func testPART_2_ASessionHasItsPartition(t *testing.T, h *fixture) {
	h.spread(16, hasSessions)
	of := map[string]int{}
	for round := range 3 {
		for i := range 20 {
			id := fmt.Sprint("session", i)
			m := part(id, fmt.Sprint(round))
			if round == 1 {
				m.PartitionKey = id // which must be the same (MSG-3)
			}
			results, err := h.peer().Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{m})
			h.ok(err)
			_, p := semantics.PartitionOf(results[0].SequenceNumber)
			if before, known := of[id]; known && before != p {
				t.Fatalf("%s is in partition %d and %d", id, before, p)
			}
			of[id] = p
		}
	}
	for id, p := range of {
		session := h.accept(id)
		if _, named := session.SessionLock.Partition(); named != p {
			t.Errorf("the lock of %s names partition %d, want %d", id, named, p)
		}
		h.same(messageIDs(h.receive(session, 9)), []string{"0", "1", "2"})
	}
	if used := slices.Compact(slices.Sorted(maps.Values(of))); len(used) < 8 {
		t.Errorf("20 sessions are in %d partitions", len(used))
	}
}

func testPART_3_TokensOfOtherPartitions(t *testing.T, h *fixture) {
	ids := h.spreadSessions(4)
	var held []semantics.Source
	var got []*semantics.Received
	for _, id := range ids {
		h.sendTo(id, 2)
		held = append(held, h.accept(id))
		got = append(got, h.receiveOne(held[len(held)-1]))
	}
	moved := held[3] // the token holds in its own partition only
	own, _ := moved.SessionLock.Partition()
	for p := range 64 {
		if moved.SessionLock = own.InPartition(p); p != 3 {
			h.sessionLost(moved, got...)
		}
	}
	for verb, s := range h.settlements(held[3], []semantics.LockToken{got[1].LockToken, got[0].LockToken}) {
		h.wantCodes(s.codes, s.err, semantics.MessageLockLost, semantics.MessageLockLost)
		if t.Failed() {
			t.Fatal(verb)
		}
	}
	outcome := h.Store.Turn(t.Context(), "orders", []semantics.Turn{
		{Session: held[3].SessionLock, Complete: tokensOf(got[1], got[3]), Receive: 1},
	})[0]
	h.ok(outcome.Err)
	h.same(outcome.Codes, []semantics.Code{semantics.MessageLockLost, ""})
	h.same(messageIDs(outcome.Batch.Messages), []string{"m2"})
	for p := range 3 {
		h.complete(held[p], got[p])
	}
	h.wantCounts(3, 1, 0)
}

func testPART_3_NumbersInASession(t *testing.T, h *fixture) {
	ids := h.spreadSessions(3)
	var held []semantics.Source
	var numbers []int64
	for _, id := range ids {
		h.sendTo(id, 3)
		source := h.accept(id)
		got := h.receive(source, 2)
		h.setAside(source, got...)
		held, numbers = append(held, source), append(numbers, numbersOf(got)...)
	}
	peek := func(source semantics.Source, from int64) []int64 { return numbersOf(h.peekFrom(source, from, 10)) }
	for p, source := range held {
		last := semantics.InPartition(numbers[2*p+1]&semantics.EndOfPartition+1, p)
		all := []int64{numbers[2*p], numbers[2*p+1], last}
		h.same(peek(source, 0), all)
		h.same(peek(source, numbers[0]), all)
		h.same(peek(sessionOf(ids[p]), all[1]), all[1:])
		h.same(peek(source, semantics.InPartition(1, p+1)), []int64(nil))
	}
	e := h.wantCode(h.receiveDeferred(held[1], numbers[2], numbers[5], 99, numbers[3], 99), semantics.MessageNotFound)
	h.same(e.Details[semantics.DetailNumbers], fmt.Sprintf("%d,99", numbers[5]))
	h.wantCode(h.reactivate(held[2], numbers[0]), semantics.MessageNotFound)
	codes, err := h.broker.DeleteBySequence(t.Context(), held[0], []int64{numbers[2], numbers[0]})
	h.wantCodes(codes, err, semantics.MessageNotFound, "")
	h.closeSession(held[1])
	h.wantCode(h.receiveDeferred(held[1], numbers[0]), semantics.SessionLockLost) // although it is of another one
	h.wantCode(h.reactivate(held[1], numbers[2]), semantics.SessionLockLost)
	_, err = h.broker.DeleteBySequence(t.Context(), held[1], []int64{numbers[5]})
	h.wantCode(err, semantics.SessionLockLost)
	h.wantCode(h.receiveDeferred(orders, 99), semantics.SessionRequired)
	h.ok(h.reactivate(orders, numbers[4], numbers[5]))
	h.same(h.purge(held[2], broker.PurgeOptions{Before: h.in(ms), Deferred: true}), int64(3))
	counts := h.runtime()
	h.same([]int64{counts.Available, counts.Deferred}, []int64{2, 3})
}

func testPART_4_AcceptNextFromAllPartitions(t *testing.T, h *fixture) {
	const n = 5
	ids := h.spreadSessions(n)
	for _, id := range ids {
		h.sendEach(id)
	}
	served := map[int]bool{}
	for range 2 * n { // each ends where others are ready, too
		a := h.acceptNext()
		_, p := a.Session.Lock.Partition()
		served[p] = true
		h.same(a.Session.ID, ids[p])
		h.closeSession(a.Source())
	}
	if len(served) != n {
		t.Fatalf("only sessions in partitions %v were accepted", served)
	}
	held := h.wantSessionsOfAny(ids)
	h.same(h.acceptNext().Session == nil, true)
	h.closeSession(held[2])
	h.wantSessionsOfAny(ids[2:3])
}

// wantSessionsOfAny accepts as many sessions as there are ids, and checks that they are these, in any order.
func (h *fixture) wantSessionsOfAny(ids []string) []semantics.Source {
	h.t.Helper()
	held := map[string]semantics.Source{}
	for range ids {
		a := h.acceptNext()
		if a.Session == nil {
			h.t.Fatalf("only %d of %d sessions are ready", len(held), len(ids))
		}
		held[a.Session.ID] = a.Source()
	}
	sources := make([]semantics.Source, len(ids))
	for i, id := range ids {
		if sources[i] = held[id]; sources[i].Path == "" {
			h.t.Fatalf("session %s was not accepted", id)
		}
	}
	return sources
}

func testPART_4_AcceptNextWaitsForAnyPartition(t *testing.T, h *fixture) {
	h.spread(16, hasSessions)
	s := h.newSidecar(h.Store)
	for i := range 24 {
		done := s.accepting(t.Context(), "")
		id := fmt.Sprint("s", i)
		h.sendEach(id)
		source := h.awaitSession(done, id)
		h.pass(source, numbersOf(h.peek(source))...)
		h.ok(s.broker.CloseSession(t.Context(), source))
	}
}

// Sessions of all partitions, accepted by several sidecars at once: none is held by two, and none is left.
func testPART_4_EverySessionOnce(t *testing.T, h *fixture) {
	h.spread(3, hasSessions)
	const total = 40
	for i := range total {
		h.sendEach(fmt.Sprint(i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	accepted := make(chan string, 2*total)
	brokers := []*broker.Broker{h.broker, h.peer(), h.peer()}
	for i := range 6 {
		go func() {
			for ctx.Err() == nil {
				a, err := brokers[i%3].AcceptSession(ctx, "orders", broker.AcceptOptions{MaxWait: patience})
				if err != nil || a.Session == nil {
					return
				}
				accepted <- a.Session.ID
			}
		}()
	}
	h.wantEachOnce(ctx, accepted, total)
	h.wantSessions(total, 0, total)
}

// counted counts the calls of Turn.
type counted struct {
	partitioned.Below
	turns atomic.Int64
}

func (c *counted) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	c.turns.Add(1)
	return c.Below.Turn(ctx, path, turns)
}

func testPART_4_TurnsInSeveralPartitions(t *testing.T, h *fixture) {
	below := &counted{Below: h.below()}
	h.Store = below
	h.spread(4, hasSessions)
	var turns []semantics.Turn
	var ids []string
	for i := range 30 {
		id := fmt.Sprint("s", i)
		h.sendTo(id, 3)
		source := h.accept(id)
		ids = append(ids, id)
		turns = append(turns, semantics.Turn{Session: source.SessionLock, Complete: tokensOf(h.receiveOne(source)), Receive: 1})
	}
	lost := semantics.Turn{Session: semantics.NewLockToken(), Complete: []semantics.LockToken{semantics.NewLockToken()}, Receive: 1}
	given := slices.Clone(turns[0].Complete)
	before := below.turns.Load()
	outcomes := h.Store.Turn(t.Context(), "ORDERS", append(slices.Clone(turns), lost))
	if n := below.turns.Load() - before; n != 4 {
		t.Errorf("turns of 31 sessions in 4 partitions were %d calls", n)
	}
	h.same(turns[0].Complete, given)
	for i, o := range outcomes[:30] {
		h.ok(o.Err)
		h.ok(o.Failure)
		h.same(o.Codes, []semantics.Code{""})
		got := o.Batch.Messages
		h.same([]any{messageIDs(got), got[0].SessionID}, []any{[]string{"m2"}, ids[i]})
		h.complete(semantics.Source{Path: "orders", SessionLock: turns[i].Session}, got...)
	}
	h.same(outcomes[30].Codes, []semantics.Code{semantics.SessionLockLost})
	h.wantCode(outcomes[30].Failure, semantics.SessionLockLost)
	h.wantCounts(30, 0, 0)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	for _, o := range h.Store.Turn(t.Context(), "orders", turns) {
		h.wantCode(o.Err, semantics.EntityNotFound)
	}
}

// ending is a Store that ends the context of an accept before the one that is told.
type ending struct {
	partitioned.Below
	left   int
	cancel context.CancelFunc
}

func (c *ending) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	if c.left--; c.left == 0 {
		c.cancel()
	}
	return c.Below.AcceptNextSession(ctx, path, register)
}

func testPART_4_CancelledAcceptLocksNothing(t *testing.T, h *fixture) {
	below := &ending{Below: h.below()}
	h.Store = below
	ids := h.spreadSessions(4)
	for range 4 { // whichever partition comes first
		h.sendEach(ids[2])
		for after := range 5 {
			var ctx context.Context
			ctx, below.cancel = context.WithCancel(t.Context())
			below.left = after
			session, _, err := h.Store.AcceptNextSession(ctx, "orders", semantics.RegisterNever)
			below.cancel()
			below.left = 0
			if (session == nil) != (err != nil) {
				t.Fatalf("got %+v and %v", session, err)
			}
			if err != nil {
				h.wantCode(err, semantics.Cancelled)
				h.wantSessions(1, 1, 0)
				continue
			}
			h.closeSession(semantics.Source{Path: "orders", SessionLock: session.Lock})
		}
		h.purge(sessionOf(ids[2]), broker.PurgeOptions{Before: h.in(ms)})
	}
}

func testPART_5_SessionsInOneList(_ *testing.T, h *fixture) {
	h.spread(16, hasSessions)
	var want []string
	for i := range 130 { // more than a page
		id := fmt.Sprintf("s%03d", i)
		h.sendEach(id)
		want = append(want, id)
	}
	for _, size := range []int{1, 7, 100} {
		h.same(idsOf(h.sessionPages(size, semantics.SessionFilter{})), want)
	}
	h.Advance(time.Second)
	since := h.Now()
	h.Advance(time.Second)
	h.setState(h.accept("s077"), []byte("x"))
	h.sendEach("s101")
	h.same(idsOf(h.sessionPages(1, semantics.SessionFilter{ActiveSince: since})), []string{"s077", "s101"})
	h.same(idsOf(h.sessions(semantics.SessionFilter{UpdatedSince: since})), []string{"s077"})
	h.wantSessions(130, 129, 1)
}

func (a away) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	if a.is(path) {
		return nil, 0, errAway
	}
	return a.Below.AcceptNextSession(ctx, path, register)
}

func (a away) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	if a.is(path) {
		return nil, errAway
	}
	return a.Below.AcceptSession(ctx, path, id)
}

func (a away) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	if a.is(path) {
		return slices.Repeat([]semantics.TurnOutcome{{Err: errAway}}, len(turns))
	}
	return a.Below.Turn(ctx, path, turns)
}

func testPART_7_AcceptNextSkipsWhatIsAway(t *testing.T, h *fixture) {
	var gone atomic.Value
	gone.Store("")
	h.Store = away{Below: h.below(), is: func(path string) bool { return path == gone.Load() }}
	ids := h.spreadSessions(3)
	for _, id := range ids {
		h.sendTo(id, 2)
	}
	held := h.accept(ids[1])
	gone.Store(h.Store.(*partitioned.Store).Path("orders", 1))
	others := h.wantSessionsOfAny([]string{ids[0], ids[2]})
	h.same(h.acceptNext().Session == nil, true)
	_, err := h.Store.AcceptSession(t.Context(), "orders", ids[1])
	e := h.wantCode(err, semantics.StoreUnavailable)
	h.same(e.Details[semantics.DetailPartition], "1")
	outcomes := h.Store.Turn(t.Context(), "orders", []semantics.Turn{
		{Session: held.SessionLock, Receive: 1}, {Session: others[0].SessionLock, Receive: 1},
	})
	h.same(h.wantCode(outcomes[0].Err, semantics.StoreUnavailable).Details[semantics.DetailPartition], "1")
	h.same(messageIDs(outcomes[1].Batch.Messages), []string{"m1"})
	gone.Store("")
	h.same(messageIDs(h.receive(held, 9)), []string{"m1", "m2"})
}

func testPART_1_SessionsOfARecreatedQueue(t *testing.T, h *fixture) {
	ids := h.spreadSessions(4)
	other := h.peer()
	for _, n := range []int64{2, 1, 5} {
		for _, id := range ids {
			h.sendEach(id)
		}
		a, err := other.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: ids[3]})
		h.ok(err)
		h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
		_, err = other.Receive(t.Context(), a.Source(), broker.ReceiveOptions{MaxMessages: 1})
		h.wantCode(err, semantics.EntityNotFound)
		options := semantics.Options{Partitions: n, RequiresSession: true}
		_, err = h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{"partitions", "requiresSession"})
		h.ok(err)
		h.wantCode(other.CloseSession(t.Context(), a.Source()), semantics.SessionLockLost)
		h.sendEach(ids[3])
		b, err := other.AcceptSession(t.Context(), "orders", broker.AcceptOptions{})
		h.ok(err)
		h.same(b.Session.ID, ids[3])
		h.pass(b.Source(), numbersOf(h.peek(b.Source()))...)
		h.ok(other.CloseSession(t.Context(), b.Source()))
	}
}

// A sidecar that knows nothing of the queue yet finds out, whatever its first call in a session is.
func testPART_1_FirstCallOfASidecarInASession(t *testing.T, h *fixture) {
	ids := h.spreadSessions(3)
	id := ids[2]
	fresh := func() semantics.Store {
		store := h.Store
		if h.Peer != nil {
			store = h.Peer()
		}
		return partitioned.New(withoutPartitions(store))
	}
	ctx := t.Context()
	h.sendTo(id, 2)
	source := h.accept(id)
	_, err := fresh().SetSessionState(ctx, source, []byte("x"), nil)
	h.ok(err)
	state, err := fresh().SessionState(ctx, source)
	h.ok(err)
	h.same(string(state.Data), "x")
	_, err = fresh().RenewSessionLock(ctx, source)
	h.ok(err)
	batch, err := fresh().Receive(ctx, source, 1, semantics.RegisterNever)
	h.ok(err)
	o := fresh().Turn(ctx, "orders", []semantics.Turn{{Session: source.SessionLock, Complete: tokensOf(batch.Messages...), Receive: 1}})[0]
	h.ok(o.Err)
	h.same(messageIDs(o.Batch.Messages), []string{"m2"})
	rows, _, err := fresh().ListSessions(ctx, "orders", "", 10, semantics.SessionFilter{})
	h.ok(err)
	h.same(idsOf(rows), []string{id})
	h.ok(fresh().CloseSession(ctx, source))
	_, err = fresh().AcceptSession(ctx, "orders", id)
	h.ok(err)
	h.sendTo(ids[0], 1)
	next, _, err := fresh().AcceptNextSession(ctx, "orders", semantics.RegisterNever)
	h.ok(err)
	h.same(next.ID, ids[0])
	h.sendTo(ids[1], 1)
	h.ok(fresh().UnblockSession(ctx, "orders", ids[1]))
	h.ok(fresh().DeadLetterRest(ctx, "orders", ids[1]))
	h.wantCounts(2, 0, 1)
}
