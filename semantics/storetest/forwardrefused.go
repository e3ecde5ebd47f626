package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// What a destination says to what is forwarded to it.
var forwardRefusedTests = []ruleTest{
	testFWD_8_Disabled,
	testFWD_8_Deleted,
	testFWD_8_DeletedUnderWay,
	testFWD_8_MadeAgainUnderWay,
	testFWD_8_ATopicInsteadOfAQueue,
	testFWD_8_FullOfMessages,
	testFWD_8_FullOfBytes,
	testFWD_8_TooLarge,
	testFWD_8_RemembersNoMore,
	testFWD_8_TopicDisabledOrDeleted,
	testFWD_8_TopicFull,
	testFWD_8_TooManyCopies,
	testFWD_8_NobodySelectsIt,
	testFWD_8_RetryWaits,
	testFWD_8_RetryEnds,
	testFWD_8_RetryTakesAllOrNone,
	testFWD_8_RetryToATopic,
	testFWD_8_RetryDoesNotWaitForWhatIsGone,
}

// wantUndelivered checks the only transfer dead letters of orders: their ids, that all have a reason, and what the
// description says.
func (h *fixture) wantUndelivered(reason, says string, ids ...string) {
	h.t.Helper()
	rows := h.peek(undelivered(orders))
	h.same(messageIDs(rows), ids)
	for _, m := range rows {
		h.same([]any{m.DeadLetterReason, m.DeadLetterSource, m.DeadLetteredAt}, []any{reason, "", h.Now()})
		h.same(m.Properties[semantics.PropertyDeadLetterReason], semantics.String(reason))
		if d := m.DeadLetterErrorDescription; !strings.Contains(d, says) || !strings.Contains(d, `"archive"`) && !strings.Contains(d, `"news"`) {
			h.t.Errorf("the description is %q, want %q and the destination", d, says)
		}
	}
}

func testFWD_8_Disabled(_ *testing.T, h *fixture) {
	h.createForwarding()
	for _, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusSendDisabled} {
		h.updateNamed(archive, hasStatus(status), "status")
		h.sendTexts(2)
		h.forward()
		h.wantUndelivered(semantics.ReasonDestinationDisabled, "ENTITY_DISABLED", "m1", "m2")
		h.purge(undelivered(orders), broker.PurgeOptions{Before: h.in(time.Second)})
	}
	h.updateNamed(archive, hasStatus(semantics.StatusReceiveDisabled), "status")
	h.send(text("goes"))
	h.forward()
	h.updateNamed(archive, hasStatus(semantics.StatusActive), "status")
	h.wantIDs(archive, "goes")
	h.same(h.counts(), semantics.Runtime{})
}

func testFWD_8_Deleted(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.deleteQueue(archive)
	h.sendTexts(2)
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1", "m2")
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 2})
	h.createNamed(archive.Path)
	h.send(text("goes"))
	h.forward()
	h.wantIDs(archive, "goes")
}

func testFWD_8_DeletedUnderWay(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(2)
	h.begin(orders, archive.Path, 1)
	h.deleteQueue(archive)
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1", "m2")
}

// What was on its way to the one may have arrived there, so it must not arrive at the other too.
func testFWD_8_MadeAgainUnderWay(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(2)
	transfer := h.begin(orders, archive.Path, 1)
	h.arrive(transfer)
	h.deleteQueue(archive)
	h.createNamed(archive.Path)
	h.same(h.arrive(transfer), []semantics.Code{semantics.EntityNotFound})
	h.forward()
	h.wantIDs(archive, "m2")
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1")
}

func testFWD_8_ATopicInsteadOfAQueue(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(2)
	h.begin(orders, archive.Path, 1)
	h.deleteQueue(archive)
	h.createTopicNamed(archive.Path)
	sub := semantics.Source{Path: semantics.SubscriptionPath(archive.Path, "all")}
	h.createSubscription(sub)
	h.forward()
	h.wantIDs(sub, "m2")
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1")
}

func testFWD_8_FullOfMessages(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, holdsAtMost(3))
	h.create(forwardsTo(archive.Path))
	h.sendToQueue(archive, later("scheduled", h.in(time.Hour)))
	h.sendTexts(4)
	h.forward()
	h.wantNumbers(h.peek(archive), 1, 2, 3)
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "m3", "m4")
}

// Each message is accepted or refused separately.
func testFWD_8_FullOfBytes(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, megabytes(1))
	h.create(forwardsTo(archive.Path))
	for range 4 {
		h.send(sized(255 << 10))
	}
	h.send(text("a"), sized(4<<10-1), sized(4<<10-2)) // the text has two bytes
	h.forward()
	r, err := h.broker.Runtime(h.t.Context(), semantics.QueueKind, archive.Path)
	h.ok(err)
	h.same([]int64{r.Active, r.SizeInBytes}, []int64{6, 1 << 20})
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "sized")
	h.same(h.row(undelivered(orders), 6).Size, int64(4<<10-1))
}

func testFWD_8_TooLarge(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.create(forwardsTo(archive.Path))
	h.send(sized(1<<10), sized(1<<10+1), text("c"))
	h.forward()
	h.wantNumbers(h.peek(archive), 1, 2)
	h.wantUndelivered(semantics.ReasonDestinationFull, "MESSAGE_SIZE_EXCEEDED", "sized")
}

func testFWD_8_RemembersNoMore(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, detectsDuplicates, remembersAtMost(2))
	h.create(forwardsTo(archive.Path))
	h.send(text("a"), text("a"), text("b"), text("c"), text("a"))
	h.forward()
	h.wantIDs(archive, "a", "b")
	h.wantUndelivered(semantics.ReasonDestinationFull, "QUOTA_EXCEEDED", "c")
}

func testFWD_8_TopicDisabledOrDeleted(_ *testing.T, h *fixture) {
	h.createNews()
	h.create(forwardsTo(news))
	h.updateTopic(hasStatus(semantics.StatusSendDisabled), "status")
	h.sendTexts(2)
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationDisabled, "ENTITY_DISABLED", "m1", "m2")
	h.purge(undelivered(orders), broker.PurgeOptions{Before: h.in(time.Second)})
	h.deleteTopic()
	h.sendTexts(2)
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1", "m2")
	h.purge(undelivered(orders), broker.PurgeOptions{Before: h.in(time.Second)})
	h.createNews()
	h.send(text("a"), text("b"))
	h.begin(orders, news, 1)
	h.deleteTopic()
	h.createNews()
	h.forward()
	h.wantIDs(eu, "b")
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "a")
	h.send(text("c"))
	h.begin(orders, news, 1)
	h.deleteTopic()
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "a", "c")
}

func testFWD_8_TopicFull(_ *testing.T, h *fixture) {
	h.createTopic(megabytes(1))
	h.createSubscription(eu, overflows(3, semantics.RejectOverflow))
	h.createSubscription(us)
	h.create(forwardsTo(news))
	h.send(sized(200<<10), text("a"))
	h.send(sized(200 << 10))
	h.send(sized(200 << 10)) // which does not fit a second time
	h.send(text("b"), text("c"))
	h.forward()
	h.wantIDs(eu, "sized", "a", "sized")
	h.wantIDs(us, "sized", "a", "sized")
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "sized", "b", "c")
	h.same(h.topicRuntime().SizeInBytes, int64(800<<10+4))
}

func testFWD_8_NobodySelectsIt(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "x")})
	h.create(forwardsTo(news))
	h.send(text("lost"), about("x", text("a")))
	h.forward() // as with a send, it vanishes (TOPIC-3)
	h.same(h.counts(), semantics.Runtime{})
	h.updateTopic(failsUnmatched, "failIfUnmatched")
	h.send(text("kept"), about("x", text("b")))
	h.forward()
	h.wantIDs(eu, "a", "b")
	h.wantUndelivered(semantics.ReasonDestinationFull, "NO_MATCHING_SUBSCRIPTION", "kept")
}

// patient makes the fixture's Broker one that waits so long for a destination.
func (h *fixture) patient(retry time.Duration) {
	h.broker = h.newBroker(h.Store, broker.WithForwardRetry(retry))
}

// waits checks that orders cannot be forwarded now, and that a try loses nothing.
func (h *fixture) waits(want semantics.Runtime) {
	h.t.Helper()
	for range 2 {
		if err := h.broker.Forward(h.t.Context(), orders); err == nil {
			h.t.Fatal("Forward does not say that it is to be tried again")
		}
		h.same(h.counts(), want)
	}
}

func testFWD_8_RetryWaits(_ *testing.T, h *fixture) {
	h.createForwarding(livesFor(2*time.Second), buriesExpired)
	h.patient(5 * time.Second)
	h.updateNamed(archive, hasStatus(semantics.StatusSendDisabled), "status")
	h.sendTexts(2)
	h.waits(semantics.Runtime{Transfer: 2})
	h.Advance(time.Second)
	h.sendTexts(1)
	h.Advance(1500 * ms)
	h.waits(semantics.Runtime{Active: 1, Available: 1, Transfer: 2}) // so that their order stays
	h.updateNamed(archive, hasStatus(semantics.StatusActive), "status")
	h.Advance(400 * ms)
	h.forward()
	h.wantIDs(archive, "m1") // the one that was sent later; the others are expired there
	h.same(h.counts(), semantics.Runtime{})
	h.wantIDs(undelivered(orders))
}

func testFWD_8_RetryEnds(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.patient(5 * time.Second)
	h.deleteQueue(archive)
	h.sendTexts(2)
	h.waits(semantics.Runtime{Transfer: 2})
	h.Advance(5*time.Second - ms)
	h.waits(semantics.Runtime{Transfer: 2})
	h.send(text("new"))
	h.Advance(ms)
	h.waits(semantics.Runtime{Transfer: 1, TransferDeadLetter: 2}) // what follows has a time of its own
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1", "m2")
	h.Advance(5 * time.Second)
	h.forward()
	h.wantIDs(undelivered(orders), "m1", "m2", "new")
}

func testFWD_8_RetryTakesAllOrNone(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, holdsAtMost(3))
	h.create(forwardsTo(archive.Path))
	h.patient(5 * time.Second)
	h.sendToQueue(archive, text("x"), text("y"))
	h.sendTexts(3)
	h.waits(semantics.Runtime{Transfer: 3})
	h.complete(archive, h.receiveOne(archive))
	h.waits(semantics.Runtime{Transfer: 3})
	h.wantIDs(archive, "y")
	h.complete(archive, h.receiveOne(archive))
	h.forward()
	h.wantIDs(archive, "m1", "m2", "m3")
	h.same(h.counts(), semantics.Runtime{})
}

func testFWD_8_RetryToATopic(_ *testing.T, h *fixture) {
	h.createTopic(failsUnmatched)
	h.create(forwardsTo(news))
	h.patient(5 * time.Second)
	h.sendTexts(2)
	h.waits(semantics.Runtime{Transfer: 2})
	h.createSubscription(eu)
	h.forward()
	h.wantIDs(eu, "m1", "m2")
	h.deleteTopic()
	h.sendTexts(2)
	h.waits(semantics.Runtime{Transfer: 2})
	h.Advance(5 * time.Second)
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1", "m2")
}

// There is another queue of the name by now, so what was for the first one will never arrive, and holds up the others
// no longer.
func testFWD_8_RetryDoesNotWaitForWhatIsGone(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.patient(time.Hour)
	h.sendTexts(1)
	h.begin(orders, archive.Path, 9)
	h.deleteQueue(archive)
	h.waits(semantics.Runtime{Transfer: 1})
	h.createNamed(archive.Path)
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1")
	h.deleteQueue(archive)
	h.send(text("m2"))
	h.waits(semantics.Runtime{Transfer: 1, TransferDeadLetter: 1})
	h.createNamed(archive.Path)
	h.send(text("new"))
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1", "m2")
	h.wantIDs(archive, "new")
}
