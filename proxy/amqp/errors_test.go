package amqp

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// TestERR_1_EveryReasonHasACondition checks that no reason became an argument error by being forgotten.
func TestERR_1_EveryReasonHasACondition(t *testing.T) {
	t.Parallel()
	arguments := map[semantics.Code]bool{
		semantics.InvalidArgument: true, semantics.ArgumentOutOfRange: true, semantics.PartitionKeyMismatch: true,
		semantics.FilterInvalid: true, semantics.ActionInvalid: true, semantics.ForwardDestinationInvalid: true,
		semantics.PropertyImmutable: true, semantics.PreconditionFailed: true, semantics.RouteNotFound: true,
		semantics.TransactionTooLarge: true, semantics.TransactionTimedOut: true, semantics.TransactionNotFound: true,
		semantics.NoMatchingSubscription: true,
	}
	for _, code := range semantics.Codes() {
		_, isMapped := outcomes[code]
		if isMapped == arguments[code] {
			t.Errorf("%s: has a condition %v, is an argument error %v", code, isMapped, arguments[code])
		}
		e := semantics.Errorf(code, "x")
		if o := outcomeOf(e); o.condition == "" || o.status < 400 {
			t.Errorf("%s: %+v", code, o)
		}
		unknown := e.With(semantics.DetailOutcome, semantics.OutcomeUnknown)
		if o := outcomeOf(unknown); o.condition != timedOut {
			t.Errorf("%s with an unknown outcome: %+v", code, o)
		}
	}
}
