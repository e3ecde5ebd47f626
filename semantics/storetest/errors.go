package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var errorTests = []ruleTest{
	testERR_1_EveryFailureIsOfTheClosedSet,
	testERR_5_SyntaxBeforeExistence,
	testERR_5_ExistenceBeforeStatus,
	testERR_5_SizeBeforeStatus,
	testERR_5_StatusBeforeQuota,
	testERR_5_StatusBeforeLock,
	testERR_5_SizesInListOrder,
	testERR_6_EndedCallChangesNothing,
}

func testERR_1_EveryFailureIsOfTheClosedSet(t *testing.T, h *fixture) {
	closed := map[semantics.Code]bool{}
	for _, code := range semantics.Codes() {
		closed[code] = true
	}
	for verb, err := range h.everyVerb(orders, &semantics.Received{}) {
		if code := h.codeOf(err); !closed[code] {
			t.Errorf("%s: %q is not in the closed set", verb, code)
		}
		if semantics.AsError(err).Message == "" {
			t.Errorf("%s: %v has no text", verb, err)
		}
	}
}

func testERR_5_SyntaxBeforeExistence(t *testing.T, h *fixture) {
	missing, token := semantics.Source{Path: "missing"}, []semantics.LockToken{semantics.NewLockToken()}
	_, err := h.broker.Send(t.Context(), semantics.ToQueue("missing"), []*semantics.Message{lasting("a", 0)})
	h.wantCode(err, semantics.ArgumentOutOfRange)
	_, err = h.broker.Receive(t.Context(), semantics.Source{Path: "missing"}, broker.ReceiveOptions{})
	h.wantCode(err, semantics.ArgumentOutOfRange)
	_, err = h.broker.Peek(t.Context(), semantics.Source{Path: "missing"}, 0, 0, semantics.ShowAll)
	h.wantCode(err, semantics.ArgumentOutOfRange)
	_, err = h.broker.Complete(t.Context(), semantics.Source{Path: "missing"}, nil)
	h.wantCode(err, semantics.InvalidArgument)
	_, err = h.broker.Abandon(t.Context(), missing, token, semantics.AbandonOptions{Delay: ptr(-ms)})
	h.wantCode(err, semantics.ArgumentOutOfRange)
	_, err = h.broker.Defer(t.Context(), missing, token, map[string]semantics.Value{"": semantics.Null()})
	h.wantCode(err, semantics.InvalidArgument)
	_, err = h.broker.CancelScheduled(t.Context(), semantics.ToQueue("missing"), nil, nil)
	h.wantCode(err, semantics.InvalidArgument)
	_, err = h.broker.ReceiveDeferred(t.Context(), missing, []int64{0}, semantics.PeekLock)
	h.wantCode(err, semantics.ArgumentOutOfRange)
	_, err = h.broker.Purge(t.Context(), missing, broker.PurgeOptions{MaxMessages: -1})
	h.wantCode(err, semantics.ArgumentOutOfRange)
	_, err = h.broker.DeleteBySequence(t.Context(), missing, nil)
	h.wantCode(err, semantics.InvalidArgument)
	_, _, err = h.broker.Resubmit(t.Context(), missing, broker.ResubmitOptions{})
	h.wantCode(err, semantics.InvalidOperation)
	_, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "missing", semantics.Options{}, []string{"maxDeliveryCount"})
	h.wantCode(err, semantics.ArgumentOutOfRange)
}

func testERR_5_ExistenceBeforeStatus(t *testing.T, h *fixture) {
	// its limit is the queue's
	_, err := h.broker.Send(t.Context(), semantics.ToQueue("missing"), []*semantics.Message{sized(257 << 10)})
	h.wantCode(err, semantics.EntityNotFound)
}

func testERR_5_SizeBeforeStatus(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.Status = semantics.StatusSendDisabled })
	h.refusedSend(semantics.MessageSizeExceeded, sized(256<<10+1))
	h.refusedSend(semantics.MessageSizeExceeded, sized(128<<10), sized(128<<10+1))
	h.refusedSend(semantics.EntityDisabled, text("a"))
}

func testERR_5_StatusBeforeQuota(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageCount = 1 })
	h.sendTexts(1)
	h.refusedSend(semantics.EntityFull, text("a"))
	h.setStatus(semantics.StatusSendDisabled)
	h.refusedSend(semantics.EntityDisabled, text("a"))
}

func testERR_5_StatusBeforeLock(t *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.Status = semantics.StatusDisabled })
	// Settling is allowed by every status, so what fails is the lock.
	codes, err := h.broker.Complete(t.Context(), orders, []semantics.LockToken{semantics.NewLockToken()})
	h.wantCodes(codes, err, semantics.MessageLockLost)
	_, err = h.broker.Complete(t.Context(), semantics.Source{Path: "missing"}, []semantics.LockToken{semantics.NewLockToken()})
	h.wantCode(err, semantics.EntityNotFound)
}

func testERR_5_SizesInListOrder(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	err := h.refusedSend(semantics.MessageSizeExceeded, text("a"), sized(1025), sized(2000))
	h.same(err.Details[semantics.DetailIndex], "1") // the first invalid one
	// One message that is too large is reported differently from a batch whose sum is too large.
	many := make([]*semantics.Message, 300)
	for i := range many {
		many[i] = sized(1024)
	}
	err = h.refusedSend(semantics.MessageSizeExceeded, many...)
	h.same([]string{err.Details[semantics.DetailIndex], err.Details[semantics.DetailLimit]}, []string{"", "262144"})
	many[299] = sized(1025)
	err = h.refusedSend(semantics.MessageSizeExceeded, many...)
	h.same(err.Details[semantics.DetailIndex], "299")
}

func testERR_6_EndedCallChangesNothing(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	tokens := tokensOf(h.receiveOne(orders))
	h.send(later("later", h.in(time.Second)), text("deferred"), text("dead"))
	h.setAside(orders, h.takeNumbers(orders, 4)...)
	h.deadLetter(h.takeNumbers(orders, 5)...)
	h.Advance(ms)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func() error{
		"create": func() error {
			_, _, err := h.Store.CreateEntity(ended, semantics.QueueKind, "new", semantics.DefaultOptions())
			return err
		},
		"update": func() error {
			_, err := h.Store.UpdateEntity(ended, semantics.QueueKind, "orders", semantics.Options{MaxDeliveryCount: 1}, []string{"maxDeliveryCount"})
			return err
		},
		"delete": func() error { return h.Store.DeleteEntity(ended, semantics.QueueKind, "orders") },
		"send": func() error {
			_, err := h.Store.Send(ended, "orders", []*semantics.Message{text("a")})
			return err
		},
		"receive": func() error {
			_, err := h.Store.Receive(ended, orders, 1, semantics.RegisterNever)
			return err
		},
		"peek": func() error {
			_, err := h.Store.Peek(ended, orders, 0, 1, semantics.ShowAll)
			return err
		},
		"cancel":       func() error { return h.Store.CancelScheduled(ended, "orders", []int64{3}) },
		"cancel by id": func() error { _, err := h.Store.CancelScheduledByID(ended, "orders", []string{"later"}); return err },
		"receive by number": func() error {
			_, err := h.Store.ReceiveByNumber(ended, orders, semantics.Active, []int64{2})
			return err
		},
		"reactivate": func() error { return h.Store.Reactivate(ended, orders, []int64{4}) },
		"abandon": func() error {
			_, err := h.Store.Abandon(ended, orders, tokens, semantics.AbandonOptions{})
			return err
		},
		"defer": func() error {
			_, err := h.Store.Defer(ended, orders, tokens, nil)
			return err
		},
		"purge": func() error {
			_, err := h.Store.Purge(ended, orders, semantics.Purge{Show: semantics.ShowAvailable, Limit: 1})
			return err
		},
		"delete by number": func() error {
			_, err := h.Store.DeleteByNumber(ended, orders, []int64{2})
			return err
		},
		"resubmit": func() error {
			_, err := h.Store.Resubmit(ended, deadOrders, "orders", []semantics.Resubmission{{SequenceNumber: 5, MessageID: "m"}}, false)
			return err
		},
		"complete": func() error {
			_, err := h.Store.Complete(ended, orders, tokens)
			return err
		},
		"renew": func() error {
			_, err := h.Store.RenewLocks(ended, orders, tokens)
			return err
		},
	}
	for name, call := range calls {
		before := h.snapshot()
		if got := h.codeOf(call()); got != semantics.Cancelled {
			t.Errorf("%s: got %s, want %s", name, got, semantics.Cancelled)
		}
		h.same(h.snapshot(), before)
	}
}
