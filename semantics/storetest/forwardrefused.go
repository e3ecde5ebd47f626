package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
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
	testFWD_8_NobodySelectsIt,
	testFWD_8_RetryWaits,
	testFWD_8_RetryEnds,
	testFWD_8_RetryTakesAllOrNone,
	testFWD_8_RetryToATopic,
	testFWD_8_RetryDoesNotWaitForWhatIsGone,
	testFWD_3_SessionsAtTheDestination,
	testFWD_3_SessionsOfATopic,
	testDLQ_9_CountsAsDeadLetter,
	testDUP_9_DetectionOfTheDestination,
	testDUP_9_DetectionOfATopic,
	testSCHED_3_IsNotScheduledAgain,
	testTOPIC_5_RulesAndActionsOnTheWay,
	testFWD_5_LoopEnds,
	testFWD_5_LoopThroughATopic,
	testFWD_5_ResubmittedBeginsAnew,
	testFWD_5_SomeHaveGoneTooFar,
	testDLQ_10_TooFarInTheDeadLetterQueue,
}

// wantUndelivered checks the only transfer dead letters of orders: their ids, that all have a reason, and what the description says.
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
		h.purge(undelivered(orders), semantics.PurgeOptions{Before: h.in(time.Second)})
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

// Each message is taken or refused by itself.
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
	h.purge(undelivered(orders), semantics.PurgeOptions{Before: h.in(time.Second)})
	h.deleteTopic()
	h.sendTexts(2)
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "ENTITY_NOT_FOUND", "m1", "m2")
	h.purge(undelivered(orders), semantics.PurgeOptions{Before: h.in(time.Second)})
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
	h.send(sized(200 << 10)) // which has no room twice
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
	h.broker = h.newBroker(h.Store, semantics.WithForwardRetry(retry))
}

// waits checks that orders cannot be forwarded now, and that nobody has lost anything by trying.
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

// There is another queue of the name by now, so what was for the first one will never arrive, and holds up the others no longer.
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

func testFWD_3_SessionsAtTheDestination(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, hasSessions)
	h.create(forwardsTo(archive.Path))
	h.send(part("s", "a"), text("b"), part("t", "c"), part("s", "d"))
	h.forward()
	source := h.acceptOf(archive, "s")
	got := h.receive(source, 9)
	h.same(messageIDs(got), []string{"a", "d"})
	h.same([]int64{got[0].SessionSequence, got[1].SessionSequence}, []int64{1, 2})
	h.wantIDs(deadArchive, "b")
	dead := h.row(deadArchive, 2)
	h.same([]any{dead.DeadLetterReason, dead.EnqueuedSequenceNumber, dead.EnqueuedAt, dead.DeadLetteredAt}, []any{semantics.ReasonNoSession, int64(2), h.Now(), h.Now()})
	h.same(dead.DeadLetterErrorDescription != "", true)
	h.same(h.counts(), semantics.Runtime{})
}

func testFWD_3_SessionsOfATopic(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.create(forwardsTo(news))
	h.send(text("a"), part("s", "b"))
	h.forward()
	h.wantIDs(h.acceptOf(eu, "s"), "b")
	h.wantReasons(deadEU, semantics.ReasonNoSession)
}

// It takes none of the places for messages (TOPIC-7), but its room.
func testDLQ_9_CountsAsDeadLetter(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, hasSessions, holdsAtMost(1), detectsDuplicates)
	h.create(forwardsTo(archive.Path))
	h.send(part("s", "a"), text("b"), text("b"), part("s", "c"))
	h.forward()
	h.same(h.countsOf(archive).DeadLetter, int64(1))
	h.wantIDs(archive, "a")
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "c")
}

func testDUP_9_DetectionOfTheDestination(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, detectsDuplicates, remembersFor(time.Minute))
	h.create(forwardsTo(archive.Path))
	h.sendToQueue(archive, text("a"))
	h.send(text("a"), text("b"), text("b"), text("c"))
	h.forward()
	h.wantIDs(archive, "a", "b", "c")
	h.same(h.counts(), semantics.Runtime{}) // a duplicate counts as delivered
	h.Advance(time.Minute)
	h.send(text("b"))
	h.forward()
	h.wantIDs(archive, "a", "b", "c", "b")
	results, err := h.broker.Send(h.t.Context(), semantics.ToQueue(archive.Path), []*semantics.Message{text("b")})
	h.ok(err)
	h.same(results[0].Stored, duplicate(4)) // and it is remembered under the number it has there
}

func testDUP_9_DetectionOfATopic(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.create(forwardsTo(news))
	h.publishTexts("a")
	h.send(text("a"), text("b"), text("b"))
	h.forward()
	h.wantIDs(eu, "a", "b")
	h.same(h.publish(text("b")), []semantics.Stored{duplicate(2)})
	h.same(h.counts(), semantics.Runtime{})
}

// When it was scheduled for stays on it, and does not count any more, whatever the clock at the destination says.
func testSCHED_3_IsNotScheduledAgain(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.createTopic()
	h.createSubscription(eu)
	for i, to := range []string{archive.Path, news} {
		h.forwardTo(to)
		h.sendTexts(1)
		transfer := h.begin(orders, to, 9)
		publications := carried(transfer)
		publications[0].Message.ScheduledAt = h.in(time.Hour)
		version := int64(0)
		if to == news {
			publications[0].Copies = []semantics.Copy{{Subscription: "eu", Message: publications[0].Message}}
			version = h.routes().Version
		}
		h.ok(second(h.Store.Arrive(h.t.Context(), transfer, version, publications, true)))
		h.end(transfer)
		m := h.receiveOne([]semantics.Source{archive, eu}[i])
		h.same([]any{m.ScheduledAt, m.EnqueuedAt, m.State}, []any{h.in(time.Hour), h.Now(), semantics.Active})
	}
}

// A subscription forwards to a topic of its own, whose subscriptions select and change what they get (FWD-11).
func testTOPIC_5_RulesAndActionsOnTheWay(_ *testing.T, h *fixture) {
	const regional = "regional"
	north := semantics.Source{Path: semantics.SubscriptionPath(regional, "north")}
	h.createTopic()
	h.createTopicNamed(regional)
	h.createNamed(archive.Path)
	h.createSubscriptionWith(eu, []semantics.Rule{doing(onSQL("mark", "n > 1"), "SET hop = 'one'; SET n = n + 10")}, forwardsTo(regional))
	h.createSubscriptionWith(north, []semantics.Rule{
		onSQL("plain", "hop = 'one' AND RuleName = 'mark'"), doing(onSQL("again", "n = 13"), "SET hop = 'two'; REMOVE n"),
	}, forwardsTo(archive.Path))
	for n := range int64(4) {
		h.publish(counting(n, text(fmt.Sprint(n))))
	}
	h.forward()
	got := h.receive(archive, 9)
	h.same(messageIDs(got), []string{"2", "3", "3"})
	changed := got[0].Properties
	h.same(changed, properties{"n": semantics.Int64(12), "hop": semantics.String("one"), "RuleName": semantics.String("mark")})
	for i, number := range []int64{3, 4, 4} { // those of the first topic
		h.same([]any{got[i].EnqueuedSequenceNumber, got[i].Forwarded.Hops}, []any{number, 2})
	}
	h.same(h.madeBy(archive), []string{"again", "mark", "mark"})
}

func testFWD_5_LoopEnds(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.create(forwardsTo(archive.Path))
	h.updateNamed(archive, forwardsTo(orders.Path), "forwardTo")
	h.sendTexts(2)
	h.forward()
	h.same(h.countsOf(archive), semantics.Runtime{})
	h.same(h.counts(), semantics.Runtime{DeadLetter: 2}) // there, back, there, back: that is where it would leave
	for i, m := range h.peek(deadOrders) {
		h.same([]any{m.MessageID, m.DeadLetterReason, m.EnqueuedSequenceNumber, m.Forwarded.Hops, m.DeadLetterSource},
			[]any{fmt.Sprintf("m%d", i+1), semantics.ReasonTooManyHops, int64(i + 1), semantics.MaxForwardHops, ""})
		if d := m.DeadLetterErrorDescription; !strings.Contains(d, `"archive"`) || !strings.Contains(d, "4") {
			h.t.Errorf("the description is %q", d)
		}
	}
	forwarded, refused := h.broker.Forwarded()
	h.same([]int64{forwarded, refused}, []int64{8, 2})
}

// Of two subscriptions one leads back.
func testFWD_5_LoopThroughATopic(_ *testing.T, h *fixture) {
	h.createTopic()
	h.create(forwardsTo(news))
	h.createSubscription(eu, forwardsTo(orders.Path))
	h.createSubscription(us)
	h.send(text("a"))
	h.forward()
	h.wantIDs(us, "a", "a") // after one hop and after three
	h.wantReasons(deadOrders, semantics.ReasonTooManyHops)
}

func testFWD_5_ResubmittedBeginsAnew(_ *testing.T, h *fixture) {
	h.create()
	path := orders.Path
	for i := range semantics.MaxForwardHops + 2 { // orders -> q0 -> q1 -> ... q5
		h.createNamed(fmt.Sprintf("q%d", i))
		h.updateNamed(semantics.Source{Path: path}, forwardsTo(fmt.Sprintf("q%d", i)), "forwardTo")
		path = fmt.Sprintf("q%d", i)
	}
	h.sendTexts(1)
	h.forward()
	stuck := semantics.Source{Path: "q3"}
	h.wantReasons(deadOf(stuck), semantics.ReasonTooManyHops)
	_, _, err := h.broker.Resubmit(h.t.Context(), deadOf(stuck), semantics.ResubmitOptions{})
	h.ok(err)
	h.same(h.peek(stuck)[0].Forwarded, (*semantics.Forwarded)(nil))
	h.same(h.peek(stuck)[0].EnqueuedSequenceNumber, int64(2))
	h.forward()
	m := h.receiveOne(semantics.Source{Path: "q5"})
	h.same([]any{m.MessageID, m.Forwarded.Hops, m.EnqueuedSequenceNumber}, []any{"m1", 2, int64(2)})
}

// Of one transfer some go on and some do not.
func testFWD_5_SomeHaveGoneTooFar(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, holdsAtMost(1))
	h.create()
	h.createNamed(attic.Path, forwardsTo(orders.Path))
	for i := range 2 {
		h.sendToQueue(attic, text(fmt.Sprint("near", i)))
		transfer := h.begin(attic, orders.Path, 9)
		publications := carried(transfer)
		far := text(fmt.Sprint("far", i))
		far.Forwarded = &semantics.Forwarded{Hops: semantics.MaxForwardHops, EnqueuedSequenceNumber: 77}
		publications = append(publications, semantics.Publication{Message: far})
		h.same(h.arriveWith(transfer, publications), []semantics.Code{"", ""})
		h.end(transfer)
	}
	h.wantIDs(orders, "near0", "far0", "near1", "far1")
	h.forwardTo(archive.Path)
	h.forward()
	h.wantIDs(archive, "near0")
	h.wantIDs(deadOrders, "far0", "far1")
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "near1")
	h.same(h.counts(), semantics.Runtime{DeadLetter: 2, TransferDeadLetter: 1})
}

func testDLQ_10_TooFarInTheDeadLetterQueue(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.create(forwardsTo(archive.Path))
	h.updateNamed(archive, forwardsTo(orders.Path), "forwardTo")
	h.createNamed(attic.Path)
	h.update(forwardsDeadTo(attic.Path), "forwardDeadLetteredMessagesTo")
	h.sendTexts(1)
	h.forward()
	h.wantIDs(attic)
	h.wantIDs(deadOrders)
	h.wantIDs(undelivered(orders), "m1")
	h.wantReasons(undelivered(orders), semantics.ReasonTooManyHops)
}
