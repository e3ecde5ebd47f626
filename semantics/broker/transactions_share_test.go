package broker

import (
	"strconv"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// beginAll begins transactions of a client until it may have no more, and returns them.
func beginAll(t *testing.T, b *Broker, client string) (ids []string) {
	t.Helper()
	for {
		id, err := b.Begin(client)
		if err != nil {
			wantShareRefused(t, err, "transactions", len(ids)+1)
			return ids
		}
		ids = append(ids, id)
	}
}

// wantShareRefused checks that a refusal names what the client would have, and the bound that this is above.
func wantShareRefused(t *testing.T, err error, field string, actual int) {
	t.Helper()
	e := semantics.AsError(err)
	limit, malformed := strconv.Atoi(e.Details[semantics.DetailLimit])
	if e.Code != semantics.Throttled || e.RetryAfter <= 0 || e.Details[semantics.DetailField] != field ||
		e.Details[semantics.DetailActual] != strconv.Itoa(actual) || malformed != nil || limit >= actual {
		t.Errorf("refused with %v, %v, want THROTTLED of %s, of which it would have %d", err, e.Details, field, actual)
	}
}

func wantNoCallers(t *testing.T, b *Broker) {
	t.Helper()
	if clients := b.transactions.clients; len(clients) != 0 {
		t.Errorf("%d clients have a share, want none", len(clients))
	}
}

// A client may have as many open transactions as stay free, so those that come later find some too, and all of them
// together never have more than the sidecar keeps.
func TestTX_9_AClientHasItsShareOfTransactions(t *testing.T) {
	t.Parallel()
	b, _, _ := begun(t) // one more of "app"
	all := 1
	var last []string
	for i, want := range []int{MaxTransactions/2 - 1, MaxTransactions / 4, MaxTransactions / 8} {
		last = beginAll(t, b, strconv.Itoa(i))
		if got := len(last); got < want-1 || got > want {
			t.Errorf("client %d has %d open transactions, want about %d", i, got, want)
		}
		all += len(last)
	}
	for i := 3; all < MaxTransactions-1; i++ {
		ids := beginAll(t, b, strconv.Itoa(i))
		if len(ids) == 0 {
			t.Fatalf("client %d has none, although %d are free", i, MaxTransactions-all)
		}
		all += len(ids)
	}
	if _, err := commit(t, b, last[0]); err != nil {
		t.Error(err)
	}
	if err := b.Rollback(t.Context(), last[1]); err != nil {
		t.Error(err)
	}
	if _, err := b.Begin("late"); err != nil { // what has ended is not open
		t.Error(err)
	}
}

// A client that has its share begins again when it has ended some.
func TestTX_9_WhatEndsIsFree(t *testing.T) {
	t.Parallel()
	b, _, first := begun(t)
	for _, id := range append(beginAll(t, b, "other"), first) {
		if err := b.Rollback(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	wantNoCallers(t, b)
	if got := len(beginAll(t, b, "other")); got != MaxTransactions/2 {
		t.Errorf("the only client has %d transactions, want %d", got, MaxTransactions/2)
	}
}

// The bytes of operations are shared in the same way. They count for the client that began the transaction.
func TestTX_9_AClientHasItsShareOfBytes(t *testing.T) {
	t.Parallel()
	b, _, first := begun(t)
	large := sendOf("")
	large.Messages[0].Body = make([]byte, 3<<20) // one transaction may have 4 MiB
	kept := sizeOf([]semantics.Operation{sendOf("a")})
	var ids []string
	for {
		id, err := b.Begin("app")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		size := sizeOf([]semantics.Operation{large})
		if _, err := b.Add(t.Context(), id, []semantics.Operation{large}); err != nil {
			wantShareRefused(t, err, "operations", int(kept+size))
			break
		}
		kept += size
	}
	if kept < MaxBufferedBytes/2-4<<20 || kept > MaxBufferedBytes/2 {
		t.Errorf("the only client keeps %d bytes, want about half of %d", kept, MaxBufferedBytes)
	}
	other, err := b.Begin("other")
	if err == nil {
		_, err = b.Add(t.Context(), other, []semantics.Operation{large})
	}
	if err != nil {
		t.Errorf("another client: %v", err)
	}
	for _, id := range append(ids, first, other) {
		if err := b.Rollback(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	wantNoCallers(t, b)
	if left := b.transactions.bytes; left != 0 {
		t.Errorf("%d bytes are left", left)
	}
}
