package delivery_test

import (
	"context"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// settles returns the same codes for every settlement.
type settles []semantics.Code

// Complete implements delivery.Settler.
func (s settles) Complete(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error) {
	return s, nil
}

// Release implements delivery.Settler.
func (s settles) Release(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error) {
	return s, nil
}

// Messages that were handed out and could not be removed, because the server of their partition does not answer, come
// again. That is a failure, also if those of another partition were removed; a lock that has ended is not.
func TestRECV_7_ARemovalThatFailsInOnePartition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codes []semantics.Code
		want  semantics.Code
	}{
		{[]semantics.Code{"", semantics.StoreUnavailable}, semantics.StoreUnavailable},
		{[]semantics.Code{"", ""}, ""},
		{[]semantics.Code{"", semantics.MessageLockLost}, ""},
	} {
		d := delivery.New(
			t.Context(), semantics.Source{Path: "orders"}, semantics.ReceiveAndDelete,
			[]*semantics.Received{{}, {}}, settles(c.codes), delivery.NewRemovals(),
		)
		var ended error
		d.OnEnd(func(_ semantics.Settlement, err error) { ended = err })
		err := d.Delivered(t.Context())
		if semantics.CodeOf(err) != c.want || semantics.CodeOf(ended) != c.want {
			t.Errorf("%q: %v and %v, want %q", c.codes, err, ended, c.want)
		}
	}
}
