package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// Forwarding from and to queues with several partitions (FWD-1, PART-5).
var partitionForwardTests = []ruleTest{
	testPART_5_ForwardsFromEachPartition,
	testPART_5_ForwardsToThePartitionOfTheKey,
	testPART_5_ForwardsAlongAChain,
	testPART_5_ForwarderDiesAfterAnyStep,
	testPART_5_SidecarThatKnowsNothingContinues,
	testPART_5_DeadLettersAreForwarded,
	testPART_5_CirclesEnd,
	testPART_5_RefusedByOnePartition,
	testPART_5_RetryWaitsForOnePartition,
	testPART_5_DestinationRecreatedUnderWay,
	testPART_5_DestinationDeletedUnderWay,
	testPART_5_DestinationMissesAPartition,
	testPART_5_UpdateOfForwarding,
	testPART_7_ForwardsToTheOthers,
}

// sweepPartitions has everything forwarded that is to be, as sidecars do in the background: below is the store that
// knows nothing of partitions.
func (h *fixture) sweepPartitions(below semantics.Store) {
	h.t.Helper()
	for range semantics.MaxForwardHops + 2 {
		h.ok(h.Sweep(h.t.Context(), below, h.broker))
	}
}

// sendKeyed sends messages with the keys k0 to k4 to a queue, one at a time, and returns their ids by key.
func (h *fixture) sendKeyed(queue semantics.Source, n int) map[string][]string {
	h.t.Helper()
	ids := map[string][]string{}
	for i := range n {
		key := fmt.Sprint("k", i%5)
		id := fmt.Sprintf("%s-%d", key, i)
		h.sendToQueue(queue, keyed(id, key))
		ids[key] = append(ids[key], id)
	}
	return ids
}

// wantByKey checks which messages a source has of each key, in order, and that those of one key are in one partition.
func (h *fixture) wantByKey(source semantics.Source, want map[string][]string) []*semantics.Received {
	h.t.Helper()
	rows, got, of := h.peekFrom(source, 1, broker.MaxPeekMessages), map[string][]string{}, map[string]int{}
	for _, m := range rows {
		if p, is := of[m.PartitionKey]; is && p != partitionOf(m) {
			h.t.Errorf("%s is in partition %d and %d", m.PartitionKey, p, partitionOf(m))
		}
		of[m.PartitionKey] = partitionOf(m)
		got[m.PartitionKey] = append(got[m.PartitionKey], m.MessageID)
	}
	h.same(got, want)
	return rows
}

// wantHidden checks that no text of a message names a partition.
func (h *fixture) wantHidden(rows ...*semantics.Received) {
	h.t.Helper()
	for _, m := range rows {
		texts := []string{m.DeadLetterReason, m.DeadLetterErrorDescription, m.DeadLetterSource}
		for _, value := range m.Properties {
			texts = append(texts, fmt.Sprint(value))
		}
		for _, said := range texts {
			if strings.Contains(said, "#") {
				h.t.Errorf("message %s names a partition: %q", m.MessageID, said)
			}
		}
	}
}

func testPART_5_ForwardsFromEachPartition(_ *testing.T, h *fixture) {
	below := h.below()
	h.createNamed(archive.Path)
	h.spread(4, forwardsTo(archive.Path))
	want := h.sendKeyed(orders, 20)
	numbers := map[string]int64{}
	for _, m := range h.peekFrom(orders, 1, 100) {
		numbers[m.MessageID] = m.SequenceNumber
	}
	h.refused(semantics.InvalidOperation, func() error {
		return second(h.broker.Receive(h.t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1}))
	})
	h.sweepPartitions(below)
	h.same(h.counts(), semantics.Runtime{})
	for _, m := range h.wantByKey(archive, want) {
		h.same(m.EnqueuedSequenceNumber, numbers[m.MessageID])
		h.same(m.Forwarded.Hops, 1)
	}
}

func testPART_5_ForwardsToThePartitionOfTheKey(t *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(4))
	h.create(forwardsTo(archive.Path))
	want := h.sendKeyed(orders, 20)
	h.sendTexts(12) // without a key, by their ids
	for i := range 12 {
		want[""] = append(want[""], fmt.Sprint("m", i+1))
	}
	h.sweepPartitions(below)
	h.same(h.counts(), semantics.Runtime{})
	h.same(h.countsOf(archive).Active, int64(32))
	of, keyless := map[string]int{}, map[int]bool{}
	for _, m := range h.peekFrom(archive, 1, 100) {
		if m.PartitionKey == "" {
			keyless[partitionOf(m)] = true
		}
		of[m.PartitionKey] = partitionOf(m)
	}
	if len(keyless) < 2 {
		t.Errorf("12 messages without a key are in partitions %v", keyless)
	}
	for key, p := range of {
		if key != "" {
			sent, err := h.broker.Send(t.Context(), semantics.ToQueue(archive.Path), []*semantics.Message{keyed("direct", key)})
			h.ok(err)
			_, direct := semantics.PartitionOf(sent[0].SequenceNumber)
			h.same(direct, p)
		}
	}
}

// The order of each key holds along a chain of queues with other numbers of partitions, and each message is in one
// place.
func testPART_5_ForwardsAlongAChain(_ *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed("out", partitions(2))
	h.createNamed("mid", partitions(5), forwardsTo("out"))
	h.createNamed("plain", forwardsTo("mid"))
	h.createNamed("orders", partitions(3), forwardsTo("plain"))
	want := h.sendKeyed(orders, 40)
	h.sweepPartitions(below)
	rows := h.wantByKey(semantics.Source{Path: "out"}, want)
	for _, m := range rows {
		h.same(m.Forwarded.Hops, 3)
	}
	for _, path := range []string{"orders", "plain", "mid"} {
		h.same(h.countsOf(semantics.Source{Path: path}), semantics.Runtime{})
	}
}

// dyingBelow is a Store below partitions whose steps of transfers fail from one on, which may have run.
type dyingBelow struct {
	partitioned.Below
	left  int // steps until it fails
	after bool
}

func (d *dyingBelow) step(do func() error) error {
	if d.left--; d.left < 0 {
		return errFailing
	}
	err := do()
	if d.left == 0 && d.after {
		return errFailing
	}
	return err
}

func (d *dyingBelow) BeginTransfer(ctx context.Context, source semantics.Source, to semantics.Destination, limit int) (t semantics.Transfer, err error) {
	return t, d.step(func() error { t, err = d.Below.BeginTransfer(ctx, source, to, limit); return err })
}

func (d *dyingBelow) BeginResubmission(ctx context.Context, source semantics.Source, to semantics.Destination, numbers []int64, how semantics.Resubmitting) (b semantics.BegunResubmission, err error) {
	return b, d.step(func() error { b, err = d.Below.BeginResubmission(ctx, source, to, numbers, how); return err })
}

func (d *dyingBelow) Arrive(ctx context.Context, transfer semantics.Transfer, version int64, messages []semantics.Publication, isLast bool) (a []semantics.Arrival, err error) {
	return a, d.step(func() error { a, err = d.Below.Arrive(ctx, transfer, version, messages, isLast); return err })
}

func (d *dyingBelow) EndTransfer(ctx context.Context, transfer semantics.Transfer, fates []semantics.Fate) error {
	return d.step(func() error { return d.Below.EndTransfer(ctx, transfer, fates) })
}

// Whatever step of a transfer to several partitions a sidecar has done last, with or without an answer, another one
// brings each message to its destination once.
func testPART_5_ForwarderDiesAfterAnyStep(_ *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(3))
	h.create(partitions(2), forwardsTo(archive.Path))
	h.forwardsWithStops(below, archive)
}

// forwardsWithStops forwards from orders by sidecars that stop after any step, and by others after them. Each of some
// entities must get each message once.
func (h *fixture) forwardsWithStops(below partitioned.Below, to ...semantics.Source) {
	h.t.Helper()
	h.untilItLives(7, func(steps int, after bool) (died bool) {
		want := h.sendKeyed(orders, 15)
		mortal := h.newBroker(partitioned.New(&dyingBelow{Below: below, left: steps, after: after}))
		if err := mortal.Forward(h.t.Context(), orders); err != nil {
			h.wantCode(err, semantics.StoreUnavailable)
			died = true
		}
		h.forwardBy(h.peer())
		h.same(h.counts(), semantics.Runtime{})
		for _, source := range to {
			h.wantByKey(source, want)
			h.complete(source, h.receive(source, 100)...)
		}
		return died
	})
}

// untilItLives runs something with a sidecar that stops after one step, after two, and so on, until it goes on to the
// end.
func (h *fixture) untilItLives(least int, run func(steps int, after bool) (died bool)) {
	h.t.Helper()
	for steps, died := 1, true; died; steps++ {
		died = false
		for _, after := range []bool{false, true} {
			if run(steps, after) {
				died = true
			}
		}
		if !died && steps < least {
			h.t.Fatalf("it was over after %d steps: this proves little", steps)
		}
	}
}

// A transfer that is under way to a queue that the sidecar has never used, and that the source does not name any more.
func testPART_5_SidecarThatKnowsNothingContinues(_ *testing.T, h *fixture) {
	h.overPartitions()
	h.createNamed(archive.Path, partitions(3))
	h.create(forwardsTo(archive.Path))
	want := h.sendKeyed(orders, 10)
	h.begin(orders, archive.Path, 100)
	h.forwardTo("")
	h.ok(h.peer().Forward(h.t.Context(), orders))
	h.wantByKey(archive, want)
	h.same(h.counts(), semantics.Runtime{})
}

func testPART_5_DeadLettersAreForwarded(_ *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(2))
	h.create(partitions(3), forwardsDeadTo(archive.Path))
	want := h.sendKeyed(orders, 15)
	h.deadLetter(h.receive(orders, 100)...)
	h.same(h.counts(), semantics.Runtime{DeadLetter: 15})
	h.sweepPartitions(below)
	h.same(h.counts(), semantics.Runtime{})
	rows := h.wantByKey(archive, want)
	for _, m := range rows {
		h.same([]any{m.DeadLetterSource, m.DeadLetterReason}, []any{"orders", "poison"})
	}
	h.wantHidden(rows...)
}

func testPART_5_CirclesEnd(_ *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(2))
	h.create(partitions(3), forwardsTo(archive.Path))
	h.updateNamed(archive, forwardsTo(orders.Path), "forwardTo")
	h.send(keyed("a", "k"))
	h.sweepPartitions(below)
	h.same(h.counts(), semantics.Runtime{DeadLetter: 1})
	rows := h.peek(deadOrders)
	h.wantReasons(deadOrders, semantics.ReasonTooManyHops)
	h.wantHidden(rows...)
	if says := rows[0].DeadLetterErrorDescription; !strings.Contains(says, `from "orders" to "archive"`) {
		h.t.Errorf("the description is %q", says)
	}
}

// fillShare returns a key of archive whose partition is full, and one of another partition.
func (h *fixture) fillShare(share int) (full, other string) {
	h.t.Helper()
	sent, err := h.broker.Send(h.t.Context(), semantics.ToQueue(archive.Path), slices.Repeat([]*semantics.Message{keyed("old", "k0")}, share))
	h.ok(err)
	_, p := semantics.PartitionOf(sent[0].SequenceNumber)
	for i := 1; ; i++ {
		key := fmt.Sprint("k", i)
		sent, err := h.broker.Send(h.t.Context(), semantics.ToQueue(archive.Path), []*semantics.Message{keyed("other", key)})
		if err != nil {
			h.wantCode(err, semantics.EntityFull)
			continue
		}
		if _, q := semantics.PartitionOf(sent[0].SequenceNumber); q != p {
			return "k0", key
		}
	}
}

func testPART_5_RefusedByOnePartition(_ *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(2), holdsAtMost(10))
	h.create(partitions(2), forwardsTo(archive.Path))
	full, other := h.fillShare(5)
	h.send(keyed("no", full))
	h.send(keyed("yes", other))
	h.sweepPartitions(below)
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "no")
	h.wantHidden(h.peek(undelivered(orders))...)
	h.same(slices.Contains(messageIDs(h.peek(archive)), "yes"), true)
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 1})
}

func testPART_5_RetryWaitsForOnePartition(_ *testing.T, h *fixture) {
	h.overPartitions()
	h.createNamed(archive.Path, partitions(2), holdsAtMost(10))
	h.create(forwardsTo(archive.Path))
	full, other := h.fillShare(5)
	h.complete(archive, h.receive(archive, 100)...)
	h.sendToQueue(archive, slices.Repeat([]*semantics.Message{keyed("old", full)}, 5)...)
	for i := range 3 {
		h.send(keyed(fmt.Sprint("full", i), full))
		h.send(keyed(fmt.Sprint("other", i), other))
	}
	patient := h.newBroker(h.Store, broker.WithForwardRetry(time.Minute))
	for range 3 {
		if err := patient.Forward(h.t.Context(), orders); err == nil || strings.Contains(err.Error(), "#") {
			h.t.Fatalf("got %v, want to wait", err)
		}
		h.same(h.counts(), semantics.Runtime{Transfer: 6})
	}
	h.complete(archive, h.receive(archive, 100)...) // what other has got too
	h.ok(patient.Forward(h.t.Context(), orders))
	h.wantByKey(archive, map[string][]string{full: {"full0", "full1", "full2"}})
	h.same(h.counts(), semantics.Runtime{})

	h.sendToQueue(archive, slices.Repeat([]*semantics.Message{keyed("old", full)}, 2)...)
	h.send(keyed("no", full))
	h.Advance(time.Second)
	if err := patient.Forward(h.t.Context(), orders); err == nil {
		h.t.Fatal("it did not wait")
	}
	h.Advance(time.Minute)
	h.ok(patient.Forward(h.t.Context(), orders))
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "no")
}

// What had arrived in some partitions went with the queue, and must not arrive in the next one too: as with one
// partition, where it is cannot be known (FWD-8).
func testPART_5_DestinationRecreatedUnderWay(t *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(3))
	h.create(forwardsTo(archive.Path))
	h.sendKeyed(orders, 10)
	dying := &dyingBelow{Below: below, left: 2}
	h.wantCode(h.newBroker(partitioned.New(dying)).Forward(t.Context(), orders), semantics.StoreUnavailable)
	h.deleteQueue(archive)
	h.createNamed(archive.Path, partitions(2))
	h.forwardBy(h.peer())
	h.same(h.countsOf(archive).Active, int64(0))
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 10})
	h.wantHidden(h.peek(undelivered(orders))...)
	h.send(keyed("new", "k0"))
	h.forward()
	h.wantIDs(archive, "new")
}

func testPART_5_DestinationDeletedUnderWay(_ *testing.T, h *fixture) {
	h.overPartitions()
	h.createNamed(archive.Path, partitions(3))
	h.create(partitions(2), forwardsTo(archive.Path))
	h.sendKeyed(orders, 10)
	h.begin(orders, archive.Path, 100)
	h.deleteQueue(archive)
	h.forward()
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 10})
	h.wantReasons(undelivered(orders), slices.Repeat([]string{semantics.ReasonDestinationNotFound}, 10)...)
}

// A creation that ended halfway, or a server that forgot a partition: the forwarder creates what is missing.
func testPART_5_DestinationMissesAPartition(_ *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(3))
	h.create(forwardsTo(archive.Path))
	want := h.sendKeyed(orders, 10)
	for p := range 3 {
		path := h.Store.(*partitioned.Store).Path(archive.Path, p)
		h.ok(below.DeleteEntity(h.t.Context(), semantics.QueueKind, path))
	}
	h.forward()
	h.wantByKey(archive, want)
	h.same(h.counts(), semantics.Runtime{})
}

func testPART_5_UpdateOfForwarding(_ *testing.T, h *fixture) {
	below := h.below()
	h.spread(3)
	h.createNamed(archive.Path, partitions(2))
	want := h.sendKeyed(orders, 15)
	h.sweepPartitions(below)
	h.wantByKey(orders, want)
	h.ok(second(h.broker.UpdateEntity(h.t.Context(), semantics.QueueKind, "orders", semantics.Options{ForwardTo: "archive"}, []string{"forwardTo"})))
	h.sweepPartitions(below)
	h.wantByKey(archive, want)
	h.ok(second(h.broker.UpdateEntity(h.t.Context(), semantics.QueueKind, "orders", semantics.Options{}, []string{"forwardTo"})))
	h.send(text("stays"))
	h.sweepPartitions(below)
	h.wantIDs(orders, "stays")
	for _, to := range []string{"orders", "ORDERS", "missing"} {
		_, err := h.broker.UpdateEntity(h.t.Context(), semantics.QueueKind, "orders", semantics.Options{ForwardTo: to}, []string{"forwardTo"})
		h.wantCode(err, semantics.ForwardDestinationInvalid)
	}
}

// awayFromArrivals is a Store that cannot reach one entity to let something arrive there.
type awayFromArrivals struct {
	partitioned.Below
	path string
}

// Server lets each entity have a server of its own.
func (*awayFromArrivals) Server(_ context.Context, path string) any { return path }

func (a *awayFromArrivals) Arrive(ctx context.Context, transfer semantics.Transfer, version int64, messages []semantics.Publication, isLast bool) ([]semantics.Arrival, error) {
	if semantics.Fold(transfer.To.Path) == semantics.Fold(a.path) {
		return nil, semantics.Errorf(semantics.StoreUnavailable, "away")
	}
	return a.Below.Arrive(ctx, transfer, version, messages, isLast)
}

// While one partition cannot be reached, what is on its way to the others arrives, and nothing twice later.
func testPART_7_ForwardsToTheOthers(_ *testing.T, h *fixture) {
	below := &awayFromArrivals{Below: h.below()}
	h.Store = partitioned.New(below)
	h.broker = h.newBroker(h.Store)
	h.createNamed(archive.Path, partitions(3))
	h.create(forwardsTo(archive.Path))
	want := h.sendKeyed(orders, 20)
	below.path = h.Store.(*partitioned.Store).Path(archive.Path, 1)
	err := h.wantCode(h.broker.Forward(h.t.Context(), orders), semantics.StoreUnavailable)
	h.same(err.Details[semantics.DetailPartition], "1")
	if n := h.countsOf(archive).Active; n == 0 || n == 20 {
		h.t.Errorf("%d of 20 messages arrived in two of three partitions", n)
	}
	below.path = ""
	h.forward()
	h.wantByKey(archive, want)
	h.same(h.counts(), semantics.Runtime{})
}
