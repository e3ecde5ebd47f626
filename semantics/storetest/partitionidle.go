package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

var partitionIdleTests = []ruleTest{
	testIDLE_1_PartitionsGoTogether,
	testIDLE_7_LooksAtPartitionsAreNoUse,
	testIDLE_8_UseOfOnePartitionKeepsAll,
	testIDLE_8_UseAtEveryStepOfARemoval,
	testIDLE_8_RemovalOfPartitionsCutOff,
	testIDLE_8_TwoRemovalsAtOnce,
	testIDLE_8_LateSuspension,
	testIDLE_8_LateResume,
	testIDLE_5_WaitNotedDuringARemoval,
	testIDLE_8_DeletedDuringARemoval,
	testPART_1_UpdatedDuringARemoval,
	testIDLE_8_MissingPartitionIsUse,
	testIDLE_9_DeadLettersOfAnyPartitionKeepAll,
}

// stepwise is a Store that calls before each step of a removal, and after it. An error ends the step, or loses its
// answer.
type stepwise struct {
	partitioned.Below
	before, after func(step string) error
}

// step runs a step of a removal.
func step[T any](s stepwise, name string, do func() (T, error)) (T, error) {
	var none T
	if s.before != nil {
		if err := s.before(name); err != nil {
			return none, err
		}
	}
	result, err := do()
	if s.after != nil && err == nil {
		if lost := s.after(name); lost != nil {
			return none, lost
		}
	}
	return result, err
}

type begun struct {
	removal int64
	wait    time.Duration
}

func (s stepwise) BeginRemoval(ctx context.Context, kind semantics.Kind, name string, incarnation int64) (int64, time.Duration, error) {
	is, err := step(s, "begin", func() (begun, error) {
		removal, wait, err := s.Below.BeginRemoval(ctx, kind, name, incarnation)
		return begun{removal, wait}, err
	})
	return is.removal, is.wait, err
}

func (s stepwise) CancelRemoval(ctx context.Context, name string, incarnation, removal int64) error {
	return s.plain("cancel", func() error { return s.Below.CancelRemoval(ctx, name, incarnation, removal) })
}

func (s stepwise) Suspend(ctx context.Context, path string, removal int64, span time.Duration, keeps bool) (time.Duration, error) {
	name := fmt.Sprint("suspend ", semantics.PartitionIn(path))
	if removal == 0 {
		name = fmt.Sprint("look ", semantics.PartitionIn(path))
	}
	return step(s, name, func() (time.Duration, error) { return s.Below.Suspend(ctx, path, removal, span, keeps) })
}

func (s stepwise) Resume(ctx context.Context, path string, removal int64) error {
	return s.plain("resume", func() error { return s.Below.Resume(ctx, path, removal) })
}

func (s stepwise) NoteDeletion(ctx context.Context, name string, incarnation int64) error {
	return s.plain("note", func() error { return s.Below.NoteDeletion(ctx, name, incarnation) })
}

func (s stepwise) CompleteRemoval(ctx context.Context, kind semantics.Kind, name string, incarnation, removal int64) (bool, error) {
	return step(s, "complete", func() (bool, error) { return s.Below.CompleteRemoval(ctx, kind, name, incarnation, removal) })
}

func (s stepwise) DeleteForGood(ctx context.Context, kind semantics.Kind, path string) error {
	return s.plain(fmt.Sprint("delete ", semantics.PartitionIn(path)), func() error { return s.Below.DeleteForGood(ctx, kind, path) })
}

func (s stepwise) plain(name string, do func() error) error {
	_, err := step(s, name, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// stepsOfRemoval are those of a removal of a queue with three partitions that completes.
var stepsOfRemoval = stepsOf(3)

// stepsOf returns the steps of a removal that completes. Those of several partitions are in any order.
func stepsOf(partitions int) (steps []string) {
	each := func(step string) {
		for p := range partitions {
			steps = append(steps, fmt.Sprint(step, " ", p))
		}
	}
	each("look")
	steps = append(steps, "begin")
	each("suspend")
	steps = append(steps, "note", "complete")
	each("delete")
	return steps
}

// idlePartitions creates orders with three partitions, each with a message, and lets its span end. It returns a key of each
// partition.
func (h *fixture) idlePartitions(changes ...change) (below partitioned.Below, keys []string) {
	h.t.Helper()
	below, _ = h.spreadOver(3, append(changes, temporary)...)
	for p := range 3 {
		keys = append(keys, h.ofPartition(p))
		h.ok(h.sendBy(h.Store, "old", keys[p]))
	}
	h.Advance(span)
	return below, keys
}

// removeBy lets a sidecar with this store delete orders if it is idle.
func (h *fixture) removeBy(below partitioned.Below) (time.Duration, error) {
	return partitioned.New(below).RemoveUnused(h.t.Context(), "orders")
}

// wantCut checks that a removal was cut off. Which partition it names first is not fixed.
func (h *fixture) wantCut(err error) {
	h.t.Helper()
	if semantics.CodeOf(err) != semantics.StoreUnavailable {
		h.t.Fatalf("got error %v, want %s", err, semantics.StoreUnavailable)
	}
}

// goesAfter expects that orders stays for so long, and is gone with all its partitions a minute later.
func (h *fixture) goesAfter(d time.Duration) {
	h.t.Helper()
	h.ordersStay(d)
	h.Advance(time.Minute)
	h.sweep()
	h.nothingLeft()
}

// nothingLeft checks that orders is gone with all its messages, and can be used again.
func (h *fixture) nothingLeft() {
	h.t.Helper()
	h.wantCode(h.get(semantics.QueueKind, orders.Path), semantics.EntityNotFound)
	h.ensure(h.Store, 3)
	h.wantCounts(0, 0, 0)
	h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, orders.Path))
}

func testIDLE_1_PartitionsGoTogether(_ *testing.T, h *fixture) {
	var steps []string
	below, _ := h.idlePartitions()
	wait, err := h.removeAtOnce(stepwise{Below: below, before: func(step string) error {
		steps = append(steps, step)
		return nil
	}})
	h.ok(err)
	h.same(wait, time.Duration(0))
	h.nothingLeft()
	slices.Sort(steps)
	h.same(steps, slices.Sorted(slices.Values(stepsOfRemoval))) // so the tests below see all
}

// A look at the counts finds a suspended partition, and resumes it, but it does not count as use.
func testIDLE_7_LooksAtPartitionsAreNoUse(_ *testing.T, h *fixture) {
	below, _ := h.idlePartitions()
	stops := stepwise{Below: below, before: func(step string) error {
		if step == "note" {
			return errFailing
		}
		return nil
	}}
	h.wantCut(second(h.removeBy(stops)))
	h.wantCounts(3, 0, 0)
	h.same(len(h.peekBelow(below)), 3)
	wait, err := h.removeBy(below)
	h.ok(err)
	h.same(wait, time.Duration(0))
	h.nothingLeft()
}

// peekBelow returns the partitions that can be used.
func (h *fixture) peekBelow(below partitioned.Below) (present []string) {
	h.t.Helper()
	for p := range 3 {
		path := h.Store.(*partitioned.Store).Path("orders", p)
		if _, err := below.GetEntity(h.t.Context(), semantics.QueueKind, path); err == nil {
			present = append(present, path)
		}
	}
	return present
}

func testIDLE_8_UseOfOnePartitionKeepsAll(_ *testing.T, h *fixture) {
	_, keys := h.idlePartitions()
	for _, key := range append(keys, keys...) {
		h.ok(h.sendBy(h.Store, "new", key))
		h.ordersStay(span - time.Second)
	}
	h.ordersGo(time.Second)
	h.nothingLeft()
}

// A message that was acknowledged is there, whichever step of a removal comes before or behind its send, and through
// whichever sidecar. A removal that completed refuses it.
func testIDLE_8_UseAtEveryStepOfARemoval(t *testing.T, h *fixture) {
	for _, at := range stepsOfRemoval {
		for p := range 3 {
			for _, isAfter := range []bool{false, true} {
				t.Log(at, p, isAfter)
				below, keys := h.idlePartitions()
				stale := h.stale(below)
				h.Advance(span)
				var sent error
				isSent := false
				use := func(step string) error {
					if step == at && !isSent {
						isSent = true
						sent = h.sendBy(stale, "new", keys[p])
					}
					return nil
				}
				by := stepwise{Below: below, before: use}
				if isAfter {
					by.before, by.after = nil, use
				}
				wait, err := h.removeAtOnce(by)
				h.ok(err)
				h.same(isSent, true)
				if sent != nil {
					h.wantCode(sent, semantics.EntityNotFound)
					h.same(wait, time.Duration(0))
					h.nothingLeft()
					continue
				}
				if wait == 0 {
					t.Fatalf("removed at %s although %s was sent", at, keys[p])
				}
				h.wantCounts(4, 0, 0)
				h.goesAfter(span)
			}
		}
	}
}

// removeAtOnce is removeBy, one partition after the other.
func (h *fixture) removeAtOnce(by stepwise) (time.Duration, error) { return h.removeBy(by.inTurn()) }

// inTurn is the same Store, which calls before and after a step never twice at the same time.
func (s stepwise) inTurn() stepwise {
	turn := make(chan struct{}, 1)
	inTurn := func(hook func(string) error) func(string) error {
		return func(step string) error {
			turn <- struct{}{}
			defer func() { <-turn }()
			if hook == nil {
				return nil
			}
			return hook(step)
		}
	}
	s.before, s.after = inTurn(s.before), inTurn(s.after)
	return s
}

// Wherever a removal is cut off, before a step or with its answer lost, no message is lost that is sent then, and the
// next sweep completes it otherwise.
func testIDLE_8_RemovalOfPartitionsCutOff(t *testing.T, h *fixture) {
	for _, at := range stepsOfRemoval {
		for _, isLost := range []bool{false, true} {
			for _, isUsed := range []bool{false, true} {
				t.Log(at, isLost, isUsed)
				below, keys := h.idlePartitions()
				stale := h.stale(below)
				h.Advance(span)
				isCut := false
				cut := func(step string) error {
					isCut = isCut || step == at
					if isCut { // and nothing behind it
						return errFailing
					}
					return nil
				}
				by := stepwise{Below: below, before: cut}
				if isLost {
					lost := func(step string) error {
						if step == at {
							isCut = true
							return errFailing
						}
						return nil
					}
					by.after, by.before = lost, func(string) error {
						if isCut {
							return errFailing
						}
						return nil
					}
				}
				_, err := h.removeAtOnce(by)
				h.wantCut(err)
				h.goesOnAfterCut(stale, keys, isUsed)
			}
		}
	}
}

// goesOnAfterCut checks what a sidecar finds after a removal was cut off.
func (h *fixture) goesOnAfterCut(stale *partitioned.Store, keys []string, isUsed bool) {
	h.t.Helper()
	if isUsed {
		var codes []semantics.Code
		for _, key := range keys {
			codes = append(codes, semantics.CodeOf(h.sendBy(stale, "new", key)))
		}
		if codes[0] == "" {
			h.same(codes, []semantics.Code{"", "", ""})
			h.wantCounts(6, 0, 0)
			h.ordersStay(span)
		} else { // the record is gone
			h.same(codes, []semantics.Code{semantics.EntityNotFound, semantics.EntityNotFound, semantics.EntityNotFound})
		}
	}
	h.Advance(time.Minute)
	h.sweep()
	h.nothingLeft()
}

func testIDLE_8_TwoRemovalsAtOnce(t *testing.T, h *fixture) {
	for _, at := range stepsOfRemoval {
		t.Log(at)
		below, _ := h.idlePartitions()
		isDone := false
		_, err := h.removeAtOnce(stepwise{Below: below, before: func(step string) error {
			if step == at && !isDone {
				isDone = true
				_, err := h.removeBy(below)
				h.ok(err)
			}
			return nil
		}})
		h.ok(err)
		h.same(isDone, true)
		h.Advance(time.Minute)
		h.sweep()
		h.nothingLeft()
	}
}

// A sidecar that is late to suspend the partitions, after a later removal did, does not let a use be missed by that one.
func testIDLE_8_LateSuspension(t *testing.T, h *fixture) {
	below, keys := h.idlePartitions()
	record, err := below.GetEntity(t.Context(), semantics.QueueKind, orders.Path)
	h.ok(err)
	early, _, err := below.BeginRemoval(t.Context(), semantics.QueueKind, orders.Path, record.Incarnation)
	h.ok(err)
	isDone := false
	_, err = h.removeAtOnce(stepwise{Below: below, before: func(step string) error {
		if step == "complete" && !isDone {
			isDone = true
			for p := range 3 {
				path := h.Store.(*partitioned.Store).Path(orders.Path, p)
				_, _ = below.Suspend(t.Context(), path, early, span, false) // which may be refused
			}
			h.ok(h.sendBy(h.Store, "new", keys[1]))
		}
		return nil
	}})
	h.ok(err)
	h.same(isDone, true)
	h.wantCounts(4, 0, 0)
	h.goesAfter(span)
}

// A sidecar that is late to resume a partition does not end the suspension by a later removal, which completes.
func testIDLE_8_LateResume(t *testing.T, h *fixture) {
	below, keys := h.idlePartitions()
	early := stepwise{Below: below, before: func(step string) error { // which suspends partition 1 only
		if slices.Contains([]string{"suspend 0", "suspend 2", "cancel", "resume"}, step) {
			return errFailing
		}
		return nil
	}}
	h.wantCut(second(h.removeAtOnce(early)))
	isDone := false
	late := stepwise{Below: below, before: func(step string) error {
		if step != "resume" || isDone {
			return nil
		}
		isDone = true
		h.Advance(2 * span)
		_, err := h.removeAtOnce(stepwise{Below: below, before: func(step string) error {
			if step == "note" {
				return errFailing
			}
			return nil
		}})
		h.wantCut(err)
		return nil
	}}
	h.ok(h.sendBy(partitioned.New(late), "new", keys[1]))
	h.same(isDone, true)
	h.wantCounts(4, 0, 0)
	h.goesAfter(span)
}

// A wait that is noted while all partitions are suspended keeps the queue.
func testIDLE_5_WaitNotedDuringARemoval(t *testing.T, h *fixture) {
	for _, at := range stepsOfRemoval[:slices.Index(stepsOfRemoval, "delete 0")] {
		t.Log(at)
		below, _ := h.idlePartitions()
		wait, err := h.removeAtOnce(stepwise{Below: below, before: func(step string) error {
			if step == at {
				return below.NoteUse(t.Context(), []semantics.Use{{Path: "orders"}})
			}
			return nil
		}})
		h.ok(err)
		if wait == 0 {
			t.Errorf("removed at %s although a sidecar waits", at)
			continue
		}
		h.wantCounts(3, 0, 0)
		h.goesAfter(span)
	}
}

// A deletion by a client, and a creation behind it, count whatever a removal has done by then.
func testIDLE_8_DeletedDuringARemoval(t *testing.T, h *fixture) {
	for _, at := range stepsOfRemoval {
		t.Log(at)
		below, keys := h.idlePartitions()
		isDone, code := false, semantics.Code("")
		_, err := h.removeAtOnce(stepwise{Below: below, before: func(step string) error {
			if step == at && !isDone {
				isDone = true
				code = semantics.CodeOf(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
				h.ensure(h.Store, 3)
				h.ok(h.sendBy(h.Store, "new", keys[1]))
			}
			return nil
		}})
		h.ok(err)
		if code != "" {
			h.same(code, semantics.EntityNotFound)
		}
		h.wantCounts(1, 0, 0)
		h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	}
}

// An update that was acknowledged counts in every partition from then on, also in one that a removal has suspended which
// is cut off.
func testPART_1_UpdatedDuringARemoval(t *testing.T, h *fixture) {
	for _, at := range stepsOfRemoval[:slices.Index(stepsOfRemoval, "complete")+1] {
		t.Log(at)
		below, _ := h.idlePartitions()
		isCut := false
		_, err := h.removeAtOnce(stepwise{Below: below, before: func(step string) error {
			if isCut = isCut || step == at; isCut {
				return errFailing
			}
			return nil
		}})
		h.wantCut(err)
		wanted := semantics.DefaultOptions()
		wanted.Status = semantics.StatusReceiveDisabled
		peer := partitioned.New(below)
		_, err = peer.UpdateEntity(t.Context(), semantics.QueueKind, orders.Path, wanted, []string{"status"})
		h.ok(err)
		h.wantCounts(3, 0, 0) // which resumes what is suspended
		for p := range 3 {
			source := semantics.Source{Path: h.Store.(*partitioned.Store).Path("orders", p)}
			batch, err := below.Receive(t.Context(), source, 1, semantics.RegisterNever)
			if semantics.CodeOf(err) != semantics.EntityDisabled {
				t.Errorf("partition %d: received %d messages, %v", p, len(batch.Messages), err)
			}
		}
		h.Advance(span + time.Minute)
		h.sweep()
		h.nothingLeft()
	}
}

// A partition that is missing is created, which counts as use: another sidecar may be about to use it.
func testIDLE_8_MissingPartitionIsUse(_ *testing.T, h *fixture) {
	below, _ := h.idlePartitions()
	h.ok(below.DeleteEntity(h.t.Context(), semantics.QueueKind, h.Store.(*partitioned.Store).Path("orders", 1)))
	h.sweep()
	h.same(len(h.peekBelow(below)), 3)
	h.ordersGo(span)
	h.nothingLeft()
}

func testIDLE_9_DeadLettersOfAnyPartitionKeepAll(_ *testing.T, h *fixture) {
	_, keys := h.idlePartitions(keepsDeadLetters)
	h.deadLetter(h.receive(orders, 9)...)
	h.ordersStay(3 * span)
	for range keys {
		h.complete(deadOrders, h.receiveOne(deadOrders))
		h.ordersStay(span)
	}
	h.Advance(time.Minute)
	h.sweep()
	h.nothingLeft()
}
