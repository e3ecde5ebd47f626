package broker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// A transaction takes 100 operations and lives for two minutes, and nothing beyond that. What is refused changes
// nothing: what was added before is committed.
func TestQUOTA_11_OperationsAndLifeOfTransactions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _, id := begun(t) // with one
		if _, err := b.Add(t.Context(), id, slices.Repeat([]semantics.Operation{sendOf("b")}, 99)); err != nil {
			t.Fatal(err)
		}
		_, err := b.Add(t.Context(), id, []semantics.Operation{sendOf("c")})
		wantReason(t, err, semantics.TransactionTooLarge)
		pass(2*time.Minute - time.Nanosecond)
		if result, err := commit(t, b, id); err != nil || len(result.Results) != 100 {
			t.Errorf("commit just in time: %+v, %v", result, err)
		}
		wantSent(t, b, 100)

		late := beginWith(t, b, "d")
		pass(2 * time.Minute)
		synctest.Wait()
		_, err = commit(t, b, late)
		wantReason(t, err, semantics.TransactionTimedOut)
		wantSent(t, b, 100)
	})
}
