package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// runApart runs the tests of resubmission again as if no two entities were in one place, so that dead letters go to
// another queue by a transfer.
func runApart(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, test := range slices.Concat(resubmitTests, resubmitDuplicateTests, resubmitQueueTests, forwardDeadTests, undeliveredTests) {
		t.Run("DLQ_22_Apart/"+ruleName(test), func(t *testing.T) {
			t.Parallel()
			harness := open(t)
			if harness.IsApart {
				return // which Run has tried
			}
			try(t, test, harness.apart())
		})
	}
}

// apart is the same harness with entities that are all apart.
func (h Harness) apart() Harness {
	h.IsApart = true
	if reference := h.Reference; reference != nil {
		h.Reference = func(t *testing.T) Harness {
			t.Helper()
			return reference(t).apart()
		}
	}
	return h
}

// apart is a Store of which no two entities can be changed in one step.
type apart struct{ semantics.Store }

// Resubmit implements semantics.Remover.
func (s apart) Resubmit(ctx context.Context, source semantics.Source, target string,
	letters []semantics.Resubmission, bypassDuplicates bool,
) ([]semantics.Resubmitted, error) {
	if semantics.Fold(source.Path) != semantics.Fold(target) {
		return nil, semantics.ErrApart
	}
	return s.Store.Resubmit(ctx, source, target, letters, bypassDuplicates)
}

// resubmitInStore sends a dead letter again without what a Broker checks before. Where the entities are apart it does
// what a Broker does then.
func (h *fixture) resubmitInStore(source semantics.Source, target string, number int64) error {
	h.t.Helper()
	_, err := h.Store.Resubmit(h.t.Context(), source, target, []semantics.Resubmission{{SequenceNumber: number}}, false)
	if !h.IsApart || !errors.Is(err, semantics.ErrApart) {
		return err
	}
	to, err := h.Store.Destination(h.t.Context(), target)
	h.ok(err)
	if to.Incarnation == 0 {
		return semantics.NotFound(target)
	}
	return second(h.Store.BeginResubmission(h.t.Context(), source, to, []int64{number}, semantics.Resubmitting{}))
}
