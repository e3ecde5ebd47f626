package account_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// Failures do not pile up for a client that does not read.
func TestRECV_13_OneFailureWaitsForTheClient(t *testing.T) {
	t.Parallel()
	life, stop := context.WithCancelCause(t.Context())
	a := account.New(life, stop, account.Settings{BySession: true}, 1, time.Minute)
	for range 2 {
		a.Fail(semantics.AsError(semantics.Errorf(semantics.StoreUnavailable, "away")))
		a.Fail(semantics.AsError(semantics.Errorf(semantics.StoreUnavailable, "still away")))
		if e, has := a.NextEvent(); !has || e.Failure == nil {
			t.Errorf("got %+v, want a failure", e)
		}
		if e, has := a.NextEvent(); has {
			t.Errorf("got %+v as well", e)
		}
	}
}
