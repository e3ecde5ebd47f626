package stream_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Settled by a call, as another process of the same application may do: the credit is free, at once in this sidecar.
func TestLOCK_8_SettledByACall(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1", "2", "3")
		p := s.subscribe("orders", nil)
		p.wants("1")
		_, err := s.Complete(t.Context(), semantics.Source{Path: "orders"}, []semantics.LockToken{p.unsettled["1"]})
		s.ok(err)
		p.wants("2")
		other := broker.New(s.store)
		defer other.Close()
		_, err = other.Complete(t.Context(), semantics.Source{Path: "orders"}, []semantics.LockToken{p.unsettled["2"]})
		s.ok(err)
		p.wants("")
		s.pass(testLock/3 + time.Second)
		p.wants("lost:2 3")
		if codes := p.settle(s.Complete, "1"); codes != string(semantics.MessageLockLost) {
			t.Errorf("got %q", codes)
		}
	})
}

// A message is not called lost because a renewal comes just after the completion.
func TestLOCK_9_NotLostWhileItIsSettled(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1", "2")
		p := s.subscribe("orders", credits(2))
		p.wants("1 2")
		s.pass(testLock/3 - time.Second)
		hold := s.store.stop("Complete")
		settled := make(chan string)
		go func() { settled <- p.settle(s.Complete, "1") }()
		s.pass(2 * time.Second) // in which locks are renewed
		if s.store.count("RenewLocks") == 0 {
			t.Error("nothing was renewed")
		}
		p.wants("")
		close(hold)
		if codes := <-settled; codes != "" {
			t.Errorf("got %q", codes)
		}
		p.wants("")
	})
}

// The same when the renewal was under way first.
func TestLOCK_9_NotLostWhenSettledInTheMiddle(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", nil)
		p.wants("1")
		renewing := s.store.stopBefore("RenewLocks")
		<-renewing // it has chosen what to renew
		hold := s.store.stop("Complete")
		settled := make(chan string)
		go func() { settled <- p.settle(s.Complete, "1") }()
		synctest.Wait()
		renewing <- struct{}{}
		p.wants("")
		close(hold)
		if codes := <-settled; codes != "" {
			t.Errorf("got %q", codes)
		}
		p.wants("")
	})
}

// While a settlement takes its time the lock is renewed, so that one that fails can be tried again.
func TestLOCK_9_RenewedWhileItIsSettled(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", nil)
		p.wants("1")
		_, err := p.Settle(t.Context(), []semantics.LockToken{p.unsettled["1"]},
			func(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error) {
				s.pass(2 * testLock)
				return nil, errAway
			})
		wantCode(t, "settle", err, semantics.StoreUnavailable)
		p.wants("")
		p.complete("1")
	})
}

// A settlement that failed does not hide that the lock ends later.
func TestLOCK_9_LostAfterAFailedSettlement(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", autoRenew(0))
		p.wants("1")
		s.store.fail(errOutage)
		_, err := p.Complete(t.Context(), []semantics.LockToken{p.unsettled["1"]})
		wantCode(t, "settle", err, semantics.StoreUnavailable)
		s.store.fail(nil)
		s.pass(testLock + time.Second)
		if got := p.takes(); !strings.Contains(got, "lost:1 1") {
			t.Errorf("got %q", got)
		}
	})
}

// A message that was received by a call can be settled on the stream of its source.
func TestLOCK_8_SettlesWhatACallReceived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", credits(0))
		d, err := s.Receive(t.Context(), semantics.Source{Path: "orders"}, broker.ReceiveOptions{MaxMessages: 1})
		s.ok(err)
		p.unsettled["1"] = d.Messages[0].LockToken
		p.complete("1")
	})
}
