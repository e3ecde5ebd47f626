package storetest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var entityTests = []ruleTest{
	testENT_1_DeadLetterQueueFromTheStart,
	testENT_2_NamesClash,
	testENT_3_PathsAreChecked,
	testENT_3_BackslashIsSlash,
	testENT_4_CaseIsKeptAndIgnored,
	testENT_5_ReservedSegments,
	testENT_6_CreateOverPresentOneIsRefused,
	testENT_6_EnsureReportsDifferences,
	testENT_6_EnsureCreatesOnceUnderRace,
	testENT_8_DeleteTakesEverything,
	testENT_8_MissingQueue,
	testENT_9_RecreatedQueueIsEmpty,
	testENT_17_ListInPages,
}

func testENT_1_DeadLetterQueueFromTheStart(t *testing.T, h *fixture) {
	missing := func() {
		h.t.Helper()
		_, err := h.broker.Peek(t.Context(), deadOrders, 0, 1, semantics.ShowAll)
		h.wantCode(err, semantics.EntityNotFound)
		_, err = h.broker.Receive(t.Context(), deadOrders, broker.ReceiveOptions{MaxMessages: 1})
		h.wantCode(err, semantics.EntityNotFound)
	}
	creations := []func() error{
		func() error {
			_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil)
			return err
		},
		func() error {
			_, err := h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil)
			return err
		},
	}
	h.createNamed("other")
	otherDead := semantics.Source{Path: "other", SubQueue: semantics.DeadLetterQueue}
	for _, create := range creations {
		missing()
		h.ok(create())
		h.wantNumbers(h.peek(deadOrders))
		h.receiveNone(deadOrders)
		h.same(h.runtime(), semantics.Runtime{})
		h.deadLetterTexts("a")
		h.wantNumbers(h.peek(otherDead)) // each queue has its own
		h.receiveNone(otherDead)
		h.wantNumbers(h.receive(deadOrders, 2), 1)
		h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	}
	missing() // it goes with its queue
}

func testENT_2_NamesClash(t *testing.T, h *fixture) {
	h.create()
	_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "ORDERS", semantics.Options{}, nil)
	h.wantCode(err, semantics.EntityAlreadyExists)
	_, err = h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders/eu", semantics.Options{}, nil)
	h.ok(err) // a path below another one is free
}

func testENT_3_PathsAreChecked(t *testing.T, h *fixture) {
	create := func(name string) error {
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, name, semantics.Options{}, nil)
		return err
	}
	for _, good := range []string{"q", "0", "a.b-c_d", "Team/orders.eu/2", strings.Repeat("x", semantics.MaxPathLength)} {
		h.ok(create(good))
	}
	bad := []string{
		"", "/q", "q/", "a//b", "-q", "q.", "a b", "a@b", "a?b", "a#b", "a*b", "größe", "a:b", "a{b}",
		strings.Repeat("x", semantics.MaxPathLength+1),
	}
	for _, name := range bad {
		h.wantCode(create(name), semantics.InvalidArgument)
	}
}

func testENT_3_BackslashIsSlash(t *testing.T, h *fixture) {
	h.createNamed("team/orders")
	queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, `team\orders`)
	h.ok(err)
	h.same(queue.Name, "team/orders")
	_, err = h.broker.CreateEntity(t.Context(), semantics.QueueKind, `team\orders`, semantics.Options{}, nil)
	h.wantCode(err, semantics.EntityAlreadyExists)
}

func testENT_4_CaseIsKeptAndIgnored(t *testing.T, h *fixture) {
	_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "Team/Orders", semantics.Options{}, nil)
	h.ok(err)
	queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "tEAM/oRDERS")
	h.ok(err)
	h.same(queue.Name, "Team/Orders")

	upper, lower := semantics.Source{Path: "TEAM/ORDERS"}, semantics.Source{Path: "team/orders"}
	_, err = h.broker.Send(t.Context(), semantics.ToQueue(upper.Path), []*semantics.Message{text("a"), text("b")})
	h.ok(err)
	got := h.receive(lower, 2)
	h.wantNumbers(got, 1, 2)
	h.renew(upper, got[0])
	h.complete(upper, got[0])
	h.abandon(upper, got[1])
	h.wantNumbers(h.peek(upper), 2)
	queue, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "TEAM/orders", semantics.Options{MaxDeliveryCount: 3}, []string{"maxDeliveryCount"})
	h.ok(err)
	h.same(queue.Name, "Team/Orders")
	ensured, err := h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "team/ORDERS", semantics.Options{}, nil)
	h.ok(err)
	h.same([]any{ensured.Created, ensured.Entity.Name}, []any{false, "Team/Orders"})
	runtime, err := h.broker.Runtime(t.Context(), semantics.QueueKind, "team/ORDERS")
	h.ok(err)
	h.same(runtime.Active, int64(1))
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "TEAM/ORDERS"))
	_, err = h.broker.GetEntity(t.Context(), semantics.QueueKind, "Team/Orders")
	h.wantCode(err, semantics.EntityNotFound)
}

func testENT_5_ReservedSegments(t *testing.T, h *fixture) {
	for _, name := range []string{"$deadletterqueue", "q/$deadletterqueue", "q/$Transfer", "$management", "t/Subscriptions/s", "t/SUBSCRIPTIONS"} {
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, name, semantics.Options{}, nil)
		h.wantCode(err, semantics.InvalidArgument)
	}
}

func testENT_6_CreateOverPresentOneIsRefused(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.refused(semantics.EntityAlreadyExists, func() error {
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil)
		return err
	})
	h.refused(semantics.EntityAlreadyExists, func() error {
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{MaxDeliveryCount: 3}, []string{"maxDeliveryCount"})
		return err
	})
}

func testENT_6_EnsureReportsDifferences(t *testing.T, h *fixture) {
	asked := semantics.Options{MaxDeliveryCount: 3, LockDuration: 30 * time.Second}
	names := []string{"maxDeliveryCount", "lockDuration"}
	ensured, err := h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "orders", asked, names)
	h.ok(err)
	if !ensured.Created || len(ensured.Differences) != 0 || ensured.Entity.Options.MaxDeliveryCount != 3 {
		t.Errorf("first ensure returned %+v", ensured)
	}
	h.Advance(ms)
	before := h.snapshot()
	asked.MaxDeliveryCount, asked.UserMetadata = 4, "not asked for"
	ensured, err = h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "orders", asked, names)
	h.ok(err)
	h.same(ensured.Differences, []semantics.Difference{{Option: "maxDeliveryCount", Present: "3", Asked: "4"}})
	h.same([]any{ensured.Created, ensured.Entity.Options.MaxDeliveryCount}, []any{false, int64(3)})
	h.same(h.snapshot(), before)
}

func testENT_6_EnsureCreatesOnceUnderRace(t *testing.T, h *fixture) {
	h.races()
	var created atomic.Int32
	var work sync.WaitGroup
	for i := range 16 {
		work.Go(func() {
			name := []string{"orders", "Orders"}[i%2]
			ensured, err := h.broker.EnsureEntity(t.Context(), semantics.QueueKind, name, semantics.Options{}, nil)
			if err != nil {
				t.Error(err)
			}
			if ensured.Created {
				created.Add(1)
			}
		})
	}
	work.Wait()
	h.same(created.Load(), int32(1))
}

func testENT_8_DeleteTakesEverything(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	h.deadLetter(h.receiveOne(orders))
	locked := h.receiveOne(orders)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	for _, err := range h.everyVerb(orders, locked) {
		h.wantCode(err, semantics.EntityNotFound)
	}
	queues, _, err := h.broker.ListEntities(t.Context(), semantics.QueueKind, "", 0, "")
	h.ok(err)
	h.same(len(queues), 0)
}

// everyVerb calls every verb that needs a present queue.
func (h *fixture) everyVerb(source semantics.Source, held *semantics.Received) map[string]error {
	ctx, tokens, errs := h.t.Context(), tokensOf(held), map[string]error{}
	_, errs["get"] = h.broker.GetEntity(ctx, semantics.QueueKind, source.Path)
	_, errs["update"] = h.broker.UpdateEntity(ctx, semantics.QueueKind, source.Path, semantics.Options{MaxDeliveryCount: 1}, []string{"maxDeliveryCount"})
	_, errs["runtime"] = h.broker.Runtime(ctx, semantics.QueueKind, source.Path)
	_, errs["send"] = h.broker.Send(ctx, semantics.ToQueue(source.Path), []*semantics.Message{text("a")})
	for _, sub := range []semantics.SubQueue{semantics.MainQueue, semantics.DeadLetterQueue, semantics.TransferDeadLetterQueue} {
		s := semantics.Source{Path: source.Path, SubQueue: sub}
		name := " " + sub.String()
		_, errs["receive"+name] = h.broker.Receive(ctx, s, broker.ReceiveOptions{MaxMessages: 1})
		_, errs["wait"+name] = h.broker.Receive(ctx, s, broker.ReceiveOptions{MaxMessages: 1, MaxWait: patience})
		_, errs["peek"+name] = h.broker.Peek(ctx, s, 0, 1, semantics.ShowAll)
		_, errs["complete"+name] = h.broker.Complete(ctx, s, tokens)
		_, errs["abandon"+name] = h.broker.Abandon(ctx, s, tokens, semantics.AbandonOptions{})
		_, errs["defer"+name] = h.broker.Defer(ctx, s, tokens, nil)
		_, errs["receiveDeferred"+name] = h.broker.ReceiveDeferred(ctx, s, []int64{1}, semantics.PeekLock)
		_, errs["receiveBySequence"+name] = h.broker.ReceiveBySequence(ctx, s, []int64{1}, semantics.PeekLock)
		errs["reactivate"+name] = h.broker.Reactivate(ctx, s, []int64{1})
		_, errs["purge"+name] = h.broker.Purge(ctx, s, broker.PurgeOptions{})
		_, errs["deleteBySequence"+name] = h.broker.DeleteBySequence(ctx, s, []int64{1})
		_, errs["release"+name] = h.broker.Release(ctx, s, tokens)
		_, errs["renew"+name] = h.broker.RenewLocks(ctx, s, tokens)
	}
	dead := semantics.Source{Path: source.Path, SubQueue: semantics.DeadLetterQueue}
	_, errs["cancel"] = h.broker.CancelScheduled(ctx, semantics.ToQueue(source.Path), []int64{1}, nil)
	_, errs["cancelByID"] = h.broker.CancelScheduled(ctx, semantics.ToQueue(source.Path), nil, []string{"a"})
	_, _, errs["resubmit"] = h.broker.Resubmit(ctx, dead, broker.ResubmitOptions{})
	_, _, errs["resubmit named"] = h.broker.Resubmit(ctx, dead, broker.ResubmitOptions{Numbers: []int64{1}})
	_, errs["deadLetter"] = h.broker.DeadLetter(ctx, source, tokens, why("", ""))
	return errs
}

func testENT_8_MissingQueue(t *testing.T, h *fixture) {
	h.createNamed("other")
	h.wantCode(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"), semantics.EntityNotFound)
	for verb, err := range h.everyVerb(orders, &semantics.Received{LockToken: semantics.NewLockToken()}) {
		e := h.wantCode(err, semantics.EntityNotFound)
		if e.Details[semantics.DetailEntity] != "orders" {
			t.Errorf("%s: details name %q", verb, e.Details[semantics.DetailEntity])
		}
	}
}

func testENT_9_RecreatedQueueIsEmpty(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	h.deadLetter(h.receiveOne(orders))
	locked, deadLocked := h.receiveOne(orders), h.receiveOne(deadOrders)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	h.Advance(ms)
	queue := h.create()
	h.same(queue.CreatedAt, h.Now())
	h.same(h.runtime(), semantics.Runtime{})
	h.receiveNone(orders)
	h.receiveNone(deadOrders)
	h.lost(orders, locked)
	h.lost(deadOrders, deadLocked)
	h.same(h.send(text("new")), int64(1))
	h.lost(orders, locked)
	h.Advance(2 * lock) // nor does the end of the old locks do anything
	h.wantCounts(1, 0, 0)
	h.same(h.receiveOne(orders).DeliveryCount, 1)
}

func testENT_17_ListInPages(t *testing.T, h *fixture) {
	want := []string{"A", "a-b", "a.b", "a/b", "a0", "a_b", "aa", "B", "b/c", "zz"} // by folded name, byte by byte
	for _, i := range []int{3, 9, 0, 7, 5, 1, 8, 2, 6, 4} {
		h.createNamed(want[i])
	}
	for _, size := range []int{1, 3, 5, 9, 10, 11, 0} {
		var got []string
		token := ""
		for {
			page, next, err := h.broker.ListEntities(t.Context(), semantics.QueueKind, "", size, token)
			h.ok(err)
			if size > 0 && len(page) > size {
				t.Fatalf("page of %d holds %d queues", size, len(page))
			}
			for _, queue := range page {
				got = append(got, queue.Name)
			}
			if token = next; token == "" {
				break
			}
		}
		h.same(got, want)
	}
	all, _, err := h.broker.ListEntities(t.Context(), semantics.QueueKind, "", 0, "")
	h.ok(err)
	one, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "zz")
	h.ok(err)
	h.same(all[9], one)
	for _, size := range []int{-1, 101} {
		_, _, err := h.broker.ListEntities(t.Context(), semantics.QueueKind, "", size, "")
		h.wantCode(err, semantics.ArgumentOutOfRange)
	}
	_, _, err = h.broker.ListEntities(t.Context(), semantics.QueueKind, "", 1, "!")
	h.wantCode(err, semantics.InvalidArgument)
}
