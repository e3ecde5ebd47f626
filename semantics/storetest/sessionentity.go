package storetest

import (
	"maps"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Sessions and what is done to the queue as a whole.
var sessionEntityTests = []ruleTest{
	testENT_8_DeleteTakesSessions,
	testENT_9_RecreatedQueueHasNoSessions,
	testENT_11_WordsOfSessionOptions,
	testENT_16_RequiresSession,
	testBATCH_4_SessionsOfAPartitionedQueue,
	testDUP_2_SessionIsThePartition,
}

// queueSessionVerbs calls the session verbs that need no session to be held.
func (h *fixture) queueSessionVerbs() map[string]error {
	ctx, errs := h.t.Context(), map[string]error{}
	for _, id := range []string{"", "a"} {
		for _, wait := range []time.Duration{0, patience} {
			errs["accept "+id+" "+wait.String()] = second(h.broker.AcceptSession(ctx, "orders", broker.AcceptOptions{SessionID: id, MaxWait: wait}))
		}
	}
	_, _, errs["list"] = h.broker.ListSessions(ctx, "orders", 1, "", semantics.SessionFilter{})
	errs["unblock"] = h.broker.UnblockSession(ctx, "orders", "a")
	errs["dead-letter the rest"] = h.broker.DeadLetterRest(ctx, "orders", "a")
	errs["peek of one"] = second(h.broker.Peek(ctx, sessionOf("a"), 0, 1, semantics.ShowAll))
	errs["purge of one"] = second(h.broker.Purge(ctx, sessionOf("a"), broker.PurgeOptions{}))
	return errs
}

// everySessionVerb calls every verb for a session that is named, or held with a message of it.
func (h *fixture) everySessionVerb(held semantics.Source, m *semantics.Received) map[string]error {
	ctx, errs := h.t.Context(), h.holderVerbs(held)
	maps.Copy(errs, h.queueSessionVerbs())
	for verb, s := range h.settlements(held, tokensOf(m)) {
		errs[verb] = s.err
	}
	errs["complete and receive"] = second(h.broker.CompleteAndReceive(ctx, held, tokensOf(m), broker.ReceiveOptions{MaxMessages: 1}))
	errs["renew locks"] = second(h.broker.RenewLocks(ctx, held, tokensOf(m)))
	errs["receive by number"] = h.receiveNumbers(held, 1)
	return errs
}

func testENT_8_DeleteTakesSessions(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 2)
	a := h.accept("a")
	got := h.receiveOne(a)
	h.setState(a, []byte("note"))
	h.drop()
	for _, source := range []semantics.Source{a, unheld()} {
		h.wantAll(h.holderVerbs(source), semantics.EntityNotFound)
		for verb, s := range h.settlements(source, tokensOf(got)) {
			h.wantAll(map[string]error{verb: s.err}, semantics.EntityNotFound)
		}
	}
	h.wantAll(h.queueSessionVerbs(), semantics.EntityNotFound)
}

func testENT_9_RecreatedQueueHasNoSessions(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendEach("a", "a", "b", "b", "c")
	a, b := h.accept("a"), h.accept("b")
	got := h.receiveOne(a)
	h.setState(a, []byte("note"))
	h.deadLetterIn(b, h.receiveOne(b)) // b is blocked
	h.drop()
	h.createSessions()
	h.same(h.runtime(), semantics.Runtime{})
	h.same(h.sessionIDs(), []string(nil))
	h.sessionLost(a, got)
	h.sendEach("a", "b")
	h.sessionLost(a, got)
	again := h.take("a")
	h.same(again.Session.State.Data == nil, true)
	h.same(again.Session.State.Version, int64(0))
	h.sessionLost(a, got)
	m := h.receiveOne(again.Source())
	h.same([]any{m.SequenceNumber, m.SessionSequence, m.DeliveryCount}, []any{int64(1), int64(1), 1})
	h.pass(h.accept("b"), 2)
	h.closeSession(again.Source())
	h.drop()

	// A plain queue that takes its name knows nothing of sessions.
	h.create()
	h.same(h.send(text("1")), int64(1))
	before := h.snapshot()
	h.wantAll(h.everySessionVerb(a, got), semantics.SessionNotSupported)
	h.same(h.snapshot(), before)
	h.receiveOne(orders)
}

func testENT_11_WordsOfSessionOptions(t *testing.T, h *fixture) {
	h.createSessions()
	for name, options := range map[string]semantics.Options{
		"onDisconnect":        {OnDisconnect: semantics.ReleaseOnDisconnect + 1},
		"sessionExpiryMode":   {SessionExpiryMode: semantics.ExpireSession + 1},
		"sessionOnDeadLetter": {SessionOnDeadLetter: semantics.BlockSession + 1},
		"acceptNext":          {AcceptNext: semantics.AcceptNextForbidden + 1},
	} {
		err := h.refused(semantics.InvalidArgument, func() error {
			return second(h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{name}))
		})
		h.same(err.Details[semantics.DetailField], name)
	}
	want := semantics.Options{
		SessionInFlight: 9, OnDisconnect: semantics.ReleaseOnDisconnect, SessionExpiryMode: semantics.ExpireSession,
		SessionOnDeadLetter: semantics.BlockSession, AcceptNext: semantics.AcceptNextForbidden, SessionStateTTL: 1234 * ms,
	}
	names := []string{"sessionInFlight", "onDisconnect", "sessionExpiryMode", "sessionOnDeadLetter", "acceptNext", "sessionStateTtl"}
	_, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", want, names)
	h.ok(err)
	queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.same(queue.Options.Differences(want, names), []semantics.Difference(nil))
}

func testENT_16_RequiresSession(t *testing.T, h *fixture) {
	for _, requires := range []bool{false, true} {
		h.create(func(o *semantics.Options) { o.RequiresSession = requires })
		other := semantics.Options{RequiresSession: !requires, MaxDeliveryCount: 3}
		names := []string{"maxDeliveryCount", "requiresSession"}
		err := h.refused(semantics.PropertyImmutable, func() error {
			return second(h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", other, names))
		})
		h.same(err.Details[semantics.DetailField], "requiresSession")
		ensured, failed := h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "orders", other, names)
		h.ok(failed)
		h.same([]any{ensured.Created, ensured.Entity.Options.RequiresSession, len(ensured.Differences)}, []any{false, requires, 2})
		same := semantics.Options{RequiresSession: requires, MaxDeliveryCount: 3}
		_, failed = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", same, names)
		h.ok(failed)
		h.drop()
	}
}

func testBATCH_4_SessionsOfAPartitionedQueue(_ *testing.T, h *fixture) {
	h.createSessions(func(o *semantics.Options) { o.EnablePartitioning = true })
	h.refusedSend(semantics.PartitionKeyMismatch, part("a", "1"), part("b", "2"))
	h.send(part("a", "1"), part("a", "2"))
	h.sendEach("b")
	h.same(h.sessionIDs(), []string{"a", "b"})
}

func testDUP_2_SessionIsThePartition(_ *testing.T, h *fixture) {
	h.createSessions(detectsDuplicates, func(o *semantics.Options) { o.EnablePartitioning = true })
	h.same(h.sendAll(part("a", "1")), []semantics.Stored{stored(1)})
	h.same(h.sendAll(part("b", "1"), part("b", "1")), []semantics.Stored{stored(2), duplicate(2)})
	h.same(h.sendAll(part("a", "1")), []semantics.Stored{duplicate(1)})
	h.drop()
	h.createSessions(detectsDuplicates) // else the id alone decides
	h.same(h.sendAll(part("a", "1"), part("b", "1")), []semantics.Stored{stored(1), duplicate(1)})
	h.same(h.sessionIDs(), []string{"a"})
}
