package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var transactTests = []ruleTest{
	testTX_6_Rollback,
	testTX_9_UnknownTransactions,
	testTX_2_DeadLettersAndOtherSides,
	testTX_3_Bounds,
	testTX_3_BytesOfDeadLetters,
	testTX_5_LockEndsBeforeTheCommit,
	testTX_8_Partitions,
	testTX_14_ALockCountsOnce,
	testTX_14_AScheduledMessageCountsOnce,
	testTX_14_AMessageIDCountsOnce,
	testTX_14_RoomIsCountedBeforeAnythingIsFreed,
	testTX_13_RoomOfATopic,
	testSESS_33d_RefusedStates,
}

// togetherTests have transactions on several entities, which some stores refuse.
var togetherTests = []ruleTest{
	testTX_10_CrashedReaders,
	testTX_2_EveryVerb,
	testTX_4_NumbersInTheOrderOfTheOperations,
	testTX_7_ManyEntities,
	testTX_11_FirstRefusalAndNothingDone,
	testTX_12_OtherOperations,
	testTX_12_RepeatGivesTheFirstAnswer,
	testTX_12_RefusedLeavesNoTrace,
	testTX_13_Topics,
	testSESS_33d_StateAndSettlement,
	testTX_1_CommitRunsAll,
	testTX_8_SeveralQueues,
}

// runTogether runs the tests of transactions on several entities, or those of stores that refuse them.
func runTogether(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for i, test := range slices.Concat(togetherTests, apartTests) {
		t.Run(ruleName(test), func(t *testing.T) {
			t.Parallel()
			harness := open(t)
			isForApart := i >= len(togetherTests)
			if isForApart != harness.IsApart {
				return
			}
			if isForApart {
				harness.Reference = nil // which refuses nothing
			}
			try(t, test, harness)
		})
	}
}

// apartTests are for stores that cannot change several entities in one step.
var apartTests = []ruleTest{testTX_7_EntitiesApart, testTX_8_QueuesApart}

func testTX_7_EntitiesApart(_ *testing.T, h *fixture) {
	h.create()
	h.createNews()
	for i := range 4 { // more than one is in another place
		h.createNamed(fmt.Sprint("other-", i))
	}
	h.sendTexts(1)
	got := h.receive(orders, 1)
	operations := []semantics.Operation{completes(orders, got...), sends(orders.Path, text("a"))}
	for i := range 4 {
		operations = append(operations, sends(fmt.Sprint("other-", i), text("a")))
	}
	before := h.snapshot()
	_, err := h.broker.Transact(h.t.Context(), nil, operations)
	e := h.wantCode(err, semantics.InvalidOperation)
	h.same(e.Details[semantics.DetailEntity] != "", true)
	h.same(e.Details[semantics.DetailOperation] != "", true)
	if diff := cmp.Diff(before, h.snapshot(), comparing); diff != "" {
		h.t.Fatalf("a refused transaction changed something (-before +after):\n%s", diff)
	}
	h.receiveNone(semantics.Source{Path: "other-0"})
	h.transact(operations[:2]...)
	h.wantNumbers(h.receive(orders, 9), 2)
	h.transact(publishes(text("c"))) // a topic and its subscriptions are in one place
	copied := h.receiveOne(eu)
	h.transact(completes(eu, copied), publishes(text("d")))
	h.same(h.receiveOne(eu).MessageID, "d")
}

// Operations of transactions.

func sends(path string, messages ...*semantics.Message) semantics.Operation {
	return semantics.Operation{Verb: semantics.OperationSend, Source: semantics.Source{Path: path}, Messages: messages}
}

func publishes(messages ...*semantics.Message) semantics.Operation {
	o := sends(news, messages...)
	o.IsTopic = true
	return o
}

func cancels(path string, numbers ...int64) semantics.Operation {
	return semantics.Operation{Verb: semantics.OperationCancel, Source: semantics.Source{Path: path}, Numbers: numbers}
}

func ends(verb semantics.OperationVerb, source semantics.Source, messages ...*semantics.Received) semantics.Operation {
	return semantics.Operation{Verb: verb, Source: source, Tokens: tokensOf(messages...)}
}

func completes(source semantics.Source, messages ...*semantics.Received) semantics.Operation {
	return ends(semantics.OperationComplete, source, messages...)
}

func setsState(source semantics.Source, state []byte) semantics.Operation {
	return semantics.Operation{Verb: semantics.OperationSetState, Source: source, State: state}
}

// transact runs operations that must not be refused.
func (h *fixture) transact(operations ...semantics.Operation) []broker.OperationResult {
	h.t.Helper()
	result, err := h.broker.Transact(h.t.Context(), nil, operations)
	h.ok(err)
	return result.Results
}

// refusedTransaction checks that a transaction is refused because of the operation at a place, and that nothing of
// orders changes.
func (h *fixture) refusedTransaction(code semantics.Code, place int, operations ...semantics.Operation) *semantics.Error {
	h.t.Helper()
	before := h.snapshot()
	_, err := h.broker.Transact(h.t.Context(), nil, operations)
	e := h.wantCode(err, code)
	h.same(e.Details[semantics.DetailOperation], fmt.Sprint(place))
	if diff := cmp.Diff(before, h.snapshot(), comparing); diff != "" {
		h.t.Fatalf("a refused transaction changed something (-before +after):\n%s", diff)
	}
	return e
}

// sentBy returns the numbers of what a send stored.
func sentBy(result broker.OperationResult) (numbers []int64) {
	for _, s := range result.Sent {
		if s.Deduplicated {
			s.SequenceNumber *= -1
		}
		numbers = append(numbers, s.SequenceNumber)
	}
	return numbers
}

func testTX_2_EveryVerb(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.createNamed("replies")
	h.sendTexts(5)
	later := text("later")
	later.ScheduledAt = h.in(time.Hour)
	number := h.send(later)
	got := h.receive(orders, 5) // they share a run
	abandon := ends(semantics.OperationAbandon, orders, got[1])
	abandon.Properties = properties{"try": semantics.Int64(2)}
	bury := ends(semantics.OperationDeadLetter, orders, got[2])
	bury.Texts = semantics.DeadLetterTexts{Reason: ptr("why"), Description: ptr("so")}
	again := text("again")
	again.ScheduledAt = h.in(time.Minute)
	results := h.transact(
		completes(orders, got[0]), abandon, bury, ends(semantics.OperationDefer, orders, got[3]),
		cancels(orders.Path, number), sends(orders.Path, text("new"), again), sends("replies", text("reply")),
	)
	h.same(sentBy(results[5]), []int64{7, 8})
	h.same(sentBy(results[6]), []int64{1})
	r := h.runtime()
	h.same([]int64{r.Available, r.Locked, r.Deferred, r.Scheduled, r.DeadLetter}, []int64{2, 1, 1, 1, 1})
	back := h.receive(orders, 5)
	h.wantNumbers(back, 2, 7)
	h.same([]int{back[0].DeliveryCount, back[1].DeliveryCount}, []int{2, 1})
	h.same(back[0].Properties["try"], semantics.Int64(2))
	dead := h.receiveOne(deadOrders)
	h.same([]string{dead.DeadLetterReason, dead.DeadLetterErrorDescription}, []string{"why", "so"})
	h.wantNumbers(h.receive(semantics.Source{Path: "replies"}, 2), 1)
	h.transact(completes(orders, got[4], back[1]), ends(semantics.OperationAbandon, orders, back[0]), completes(deadOrders, dead))
	h.same(h.receiveOne(deadOrders).DeadLetterReason, "MaxDeliveryCountExceeded")
}

func testTX_2_DeadLettersAndOtherSides(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	got := h.receive(orders, 3)
	h.transact(ends(semantics.OperationDeadLetter, orders, got...))
	dead := h.receive(deadOrders, 3)
	defers := ends(semantics.OperationDefer, deadOrders, dead[1])
	h.transact(completes(deadOrders, dead[0]), defers, ends(semantics.OperationAbandon, deadOrders, dead[2]))
	h.wantNumbers(h.receive(deadOrders, 3), 3)
	h.wantNumbers(h.peek(deadOrders), 2, 3)
	bury := ends(semantics.OperationDeadLetter, deadOrders, dead[1])
	h.refusedTransaction(semantics.InvalidOperation, 0, bury)
	h.refusedTransaction(semantics.InvalidOperation, 1, sends(orders.Path, text("a")), sends(deadOrders.String(), text("a")))
}

func testTX_3_Bounds(_ *testing.T, h *fixture) {
	h.create()
	var many []semantics.Operation
	for i := range semantics.MaxOperations {
		many = append(many, sends(orders.Path, text(fmt.Sprint(i))))
	}
	h.transact(many...)
	refused := func(field string, operations ...semantics.Operation) {
		h.t.Helper()
		err := h.refused(semantics.TransactionTooLarge, func() error {
			_, err := h.broker.Transact(h.t.Context(), nil, operations)
			return err
		})
		h.same(err.Details[semantics.DetailField], field)
	}
	refused("operations", append(many, sends(orders.Path, text("over")))...)
	tokens := func(n int) []semantics.LockToken {
		tokens := make([]semantics.LockToken, n)
		for i := range tokens {
			tokens[i] = semantics.NewLockToken()
		}
		return tokens
	}
	refused("messages, tokens and numbers",
		semantics.Operation{Verb: semantics.OperationComplete, Source: orders, Tokens: tokens(semantics.MaxTransactionItems)}, sends(orders.Path, text("a")))
	refused("messages to abandon or dead-letter",
		semantics.Operation{Verb: semantics.OperationAbandon, Source: orders, Tokens: tokens(150)},
		semantics.Operation{Verb: semantics.OperationDeadLetter, Source: orders, Tokens: tokens(101)})
	var large []semantics.Operation
	for range 5 {
		large = append(large, sends(orders.Path, sized(1<<20-1)))
	}
	refused("bytes of messages, states and changes", large...)
	_, err := h.broker.Transact(h.t.Context(), nil, nil)
	h.wantCode(err, semantics.InvalidArgument)
}

// What a transaction may copy counts as it is now. A token that does not hold is refused before.
func testTX_3_BytesOfDeadLetters(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 2048 })
	const quarter = semantics.MaxDeadLetterMoveSize / 4
	for _, size := range []int64{quarter, quarter, quarter, quarter - 400, 400} {
		h.send(sized(size))
	}
	abandon, bury := semantics.OperationAbandon, semantics.OperationDeadLetter
	receiveAll := func() (all []*semantics.Received) { // an answer has less
		for got := h.receive(orders, 9); len(got) > 0; got = h.receive(orders, 9) {
			all = append(all, got...)
		}
		return all
	}
	got := receiveAll()
	h.same(len(got), 5)
	h.transact(ends(abandon, orders, got[:2]...), ends(bury, orders, got[2:]...))
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 2, DeadLetter: 3})
	h.resubmit(broker.ResubmitOptions{})
	got = receiveAll()
	changed := ends(abandon, orders, got[0])
	changed.Properties = map[string]semantics.Value{"longer": semantics.String("x")}
	h.transact(changed)
	got[0] = h.receiveOne(orders)
	tooLarge := func(operations ...semantics.Operation) {
		h.t.Helper()
		e := h.refused(semantics.TransactionTooLarge, func() error { return second(h.broker.Transact(h.t.Context(), nil, operations)) })
		want := fmt.Sprint(semantics.MaxDeadLetterMoveSize + len("longer") + 1)
		h.same([]string{e.Details[semantics.DetailActual], e.Details[semantics.DetailField]}, []string{want, "bytes of messages that are abandoned or dead-lettered"})
	}
	tooLarge(ends(bury, orders, got...))
	tooLarge(ends(abandon, orders, got[:1]...), ends(bury, orders, got[1:]...))
	h.transact(ends(abandon, orders, got[1]))
	h.refusedTransaction(semantics.MessageLockLost, 0, ends(bury, orders, got...))
	h.transact(ends(bury, orders, got[0]), completes(orders, got[2:]...)) // completions copy nothing
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1, DeadLetter: 1})
}

func testTX_4_NumbersInTheOrderOfTheOperations(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("other")
	results := h.transact(
		sends(orders.Path, text("a"), text("b")), sends("other", text("x")), sends(orders.Path, text("c")), sends("other", text("y")),
	)
	h.same([][]int64{sentBy(results[0]), sentBy(results[1]), sentBy(results[2]), sentBy(results[3])}, [][]int64{{1, 2}, {1}, {3}, {2}})
	var ids []string
	for _, m := range h.receive(orders, 9) {
		ids = append(ids, m.MessageID)
	}
	h.same(ids, []string{"a", "b", "c"})
}

func testTX_5_LockEndsBeforeTheCommit(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receive(orders, 2)
	h.Advance(lock - ms)
	h.transact(completes(orders, got[0]), sends(orders.Path, text("reply")))
	h.Advance(ms)
	h.refusedTransaction(semantics.MessageLockLost, 1, sends(orders.Path, text("reply")), completes(orders, got[1]))
	h.wantNumbers(h.receive(orders, 9), 2, 3)
}

func testTX_7_ManyEntities(_ *testing.T, h *fixture) {
	h.create()
	var operations []semantics.Operation
	for i := range 50 {
		h.createNamed(fmt.Sprintf("q%d", i))
		operations = append(operations, sends(fmt.Sprintf("Q%d", i), text("a")))
	}
	h.refusedTransaction(semantics.EntityNotFound, 50, append(operations, sends("nowhere", text("a")))...)
	h.transact(operations...)
	for i := range 50 {
		h.wantNumbers(h.receive(semantics.Source{Path: fmt.Sprintf("q%d", i)}, 2), 1)
	}
}

func testTX_8_Partitions(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.EnablePartitioning = true })
	of := func(id, partition string) *semantics.Message {
		m := text(id)
		m.PartitionKey = partition
		return m
	}
	h.refusedTransaction(semantics.PartitionKeyMismatch, 0, sends(orders.Path, of("a", "1"), of("b", "2")))
	h.transact(sends(orders.Path, of("a", "1"), of("b", "1")))
}

func testTX_11_FirstRefusalAndNothingDone(_ *testing.T, h *fixture) {
	h.create(holdsAtMost(4))
	h.createNamed("closed", func(o *semantics.Options) { o.Status = semantics.StatusDisabled })
	h.createNamed("sessions", hasSessions)
	h.sendTexts(3)
	got := h.receive(orders, 2)
	good := []semantics.Operation{completes(orders, got[0]), sends(orders.Path, text("new"))}
	lost := semantics.Operation{Verb: semantics.OperationDefer, Source: orders, Tokens: append(tokensOf(got[1]), semantics.NewLockToken())}
	for code, bad := range map[semantics.Code]semantics.Operation{
		semantics.EntityNotFound:      sends("nowhere", text("a")),
		semantics.EntityDisabled:      sends("closed", text("a")),
		semantics.SessionIDMissing:    sends("sessions", text("a")),
		semantics.EntityFull:          sends(orders.Path, text("b")),
		semantics.MessageNotFound:     cancels(orders.Path, 1),
		semantics.MessageLockLost:     lost,
		semantics.SessionRequired:     completes(semantics.Source{Path: "sessions"}, got[1]),
		semantics.SessionNotSupported: setsState(unheld(), []byte("a")),
		semantics.MessageSizeExceeded: sends(orders.Path, sized(semantics.SmallBatchSize+1)),
	} {
		e := h.refusedTransaction(code, 2, append(good, bad, sends("nowhere", text("a")))...)
		if code == semantics.MessageLockLost {
			h.same(e.Details[semantics.DetailIndex], "1")
		}
	}
	heavy := ends(semantics.OperationAbandon, orders, got[1])
	heavy.Properties = properties{}
	for i := range 3 {
		heavy.Properties[fmt.Sprint("p", i)] = semantics.String(string(make([]byte, 30<<10)))
	}
	h.refusedTransaction(semantics.MessageSizeExceeded, 2, append(good, heavy)...)
	h.transact(good...)
}

func testTX_14_ALockCountsOnce(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receive(orders, 2)
	h.refusedTransaction(semantics.MessageLockLost, 1, completes(orders, got...), ends(semantics.OperationDefer, orders, got[1]))
	h.refusedTransaction(semantics.MessageLockLost, 0, completes(orders, got[0], got[0]))
	h.transact(completes(orders, got...))
	h.refusedTransaction(semantics.MessageLockLost, 0, completes(orders, got[0]))
}

func testTX_14_AScheduledMessageCountsOnce(_ *testing.T, h *fixture) {
	h.create()
	first, second := text("a"), text("b")
	first.ScheduledAt, second.ScheduledAt = h.in(time.Minute), h.in(time.Hour)
	h.send(first, second)
	h.refusedTransaction(semantics.MessageNotFound, 1, cancels(orders.Path, 1, 2), cancels(orders.Path, 2))
	h.Advance(time.Minute) // the first is due, though nothing has looked yet
	_, err := h.broker.Transact(h.t.Context(), nil, []semantics.Operation{cancels(orders.Path, 1)})
	h.wantCode(err, semantics.MessageNotFound)
	h.transact(cancels(orders.Path, 2, 2))
	h.same(h.runtime().Scheduled, int64(0))
}

func testTX_14_AMessageIDCountsOnce(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, func(o *semantics.Options) { o.ForgetOnCancel = true })
	later := func() *semantics.Message {
		m := text("later")
		m.ScheduledAt = h.in(time.Hour)
		return m
	}
	results := h.transact(sends(orders.Path, text("a"), later()), sends(orders.Path, text("b"), text("a")))
	h.same([][]int64{sentBy(results[0]), sentBy(results[1])}, [][]int64{{1, 2}, {3, -1}})
	// A cancel makes the id new for what comes after it, and not for what comes before.
	results = h.transact(sends(orders.Path, text("later")), cancels(orders.Path, 2), sends(orders.Path, later()))
	h.same([][]int64{sentBy(results[0]), sentBy(results[2])}, [][]int64{{-2}, {4}})
	h.same(h.runtime().Scheduled, int64(1))
	h.refusedTransaction(semantics.MessageNotFound, 1, sends(orders.Path, text("c")), cancels(orders.Path, 99))
	h.same(sentBy(h.transact(sends(orders.Path, text("c")))[0]), []int64{5}) // DUP-10
}

func testTX_14_RoomIsCountedBeforeAnythingIsFreed(_ *testing.T, h *fixture) {
	h.create(holdsAtMost(2))
	h.sendTexts(2)
	got := h.receive(orders, 2)
	h.refusedTransaction(semantics.EntityFull, 1, completes(orders, got...), sends(orders.Path, text("a")))
	h.transact(completes(orders, got...))
	h.refusedTransaction(semantics.EntityFull, 2, sends(orders.Path, text("a")), sends(orders.Path, text("b")), sends(orders.Path, text("c")))
	h.transact(sends(orders.Path, text("a")), sends(orders.Path, text("b")))
}

func testTX_13_Topics(_ *testing.T, h *fixture) {
	h.create()
	h.createNews()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	later := text("later")
	later.ScheduledAt = h.in(time.Minute)
	h.transact(completes(orders, got), publishes(text("a"), text("b"), later))
	h.wantCounts(0, 0, 0)
	copies := h.receive(eu, 9)
	h.same(len(copies), 2)
	h.same([]string{copies[0].MessageID, copies[1].MessageID}, []string{"a", "b"})
	h.same(copies[0].ScheduledAt.IsZero(), true)
	// A subscription is a source, also of what goes back into its topic.
	h.transact(completes(eu, copies[0]), ends(semantics.OperationDeadLetter, eu, copies[1]), publishes(text("c")))
	next := h.receiveOne(eu)
	h.same(next.MessageID, "c")
	h.refusedTransaction(semantics.MessageLockLost, 1, publishes(text("d")), completes(eu, copies[0]))
	h.refusedTransaction(semantics.EntityNotFound, 0, sends(news, text("d")))
	h.receiveNone(eu)
	h.refusedTransaction(semantics.InvalidOperation, 0, ends(semantics.OperationComplete, semantics.Source{Path: news}, got))
}

func testTX_13_RoomOfATopic(_ *testing.T, h *fixture) {
	h.create()
	h.createNews(func(o *semantics.Options) { o.MaxSizeInMegabytes = 1 })
	third := int64(400 << 10)
	small := func() *semantics.Message { return sized(third / 2) }
	h.transact(publishes(small()), publishes(small()))
	h.refusedTransaction(semantics.EntityFull, 1, publishes(small()), publishes(small())) // each has two copies by now
	got := h.receive(eu, 9)
	h.transact(completes(eu, got...), publishes(small()))
	h.transact(publishes(small()))
	h.same(len(h.receive(eu, 9)), 2)
	h.refusedTransaction(semantics.EntityFull, 0, publishes(small()))
}

func testSESS_33d_StateAndSettlement(_ *testing.T, h *fixture) {
	h.createSessions()
	h.createNamed("replies")
	h.sendTo("s", 4)
	h.sendTo("t", 1)
	source, other := h.accept("s"), h.accept("t")
	got := h.receive(source, 4)
	defers := ends(semantics.OperationDefer, source, got[1])
	results := h.transact(
		completes(source, got[0]), setsState(source, []byte("one")), defers, setsState(other, []byte{}),
		ends(semantics.OperationDeadLetter, source, got[2]), sends(orders.Path, part("s", "next")), sends("replies", text("reply")),
	)
	h.same(h.state(source), semantics.SessionState{Data: []byte("one"), Version: results[1].Version})
	h.same(h.state(other).Data != nil, true)
	h.transact(ends(semantics.OperationAbandon, source, got[3]), setsState(other, nil), setsState(source, []byte("two")))
	h.same(h.state(other), semantics.SessionState{})
	h.pass(source, 4, 6)
	h.closeSession(source)
	h.refusedTransaction(semantics.SessionLockLost, 1, sends("replies", text("a")), setsState(source, []byte("late")))
	h.refusedTransaction(semantics.SessionLockLost, 0, completes(source, got[1]))
	h.same(h.state(h.accept("s")).Data, []byte("two"))
}

func testSESS_33d_RefusedStates(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("s", 1)
	source := h.accept("s")
	got := h.receive(source, 1)
	version := h.setState(source, []byte("one"))
	wrong := setsState(source, []byte("two"))
	wrong.Version = ptr(version + 1)
	h.refusedTransaction(semantics.PreconditionFailed, 1, completes(source, got...), wrong)
	h.refusedTransaction(semantics.SessionStateTooLarge, 1, completes(source, got...), setsState(source, make([]byte, 257<<10)))
	h.refusedTransaction(semantics.InvalidArgument, 1, setsState(source, []byte("a")), setsState(source, []byte("b")))
	h.update(func(o *semantics.Options) { o.MaxSizeInMegabytes = 1 }, "maxSizeInMegabytes")
	h.send(part("t", "x"))
	for range 4 {
		h.send(of("t", sized(200<<10)))
	}
	h.refusedTransaction(semantics.EntityFull, 1, completes(source, got...), setsState(source, make([]byte, 250<<10)))
	h.refusedTransaction(semantics.EntityFull, 1, setsState(source, make([]byte, 100<<10)), sends(orders.Path, of("t", sized(150<<10))))
	right := setsState(source, []byte("two"))
	right.Version = &version
	h.transact(completes(source, got...), right)
}
