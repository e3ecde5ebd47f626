package memstore

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// SendEach implements semantics.Sender.
func (s *Store) SendEach(ctx context.Context, path string, calls [][]*semantics.Message) []semantics.SendOutcome {
	outcomes := make([]semantics.SendOutcome, len(calls))
	for i, messages := range calls {
		outcomes[i].Stored, outcomes[i].Err = s.Send(ctx, path, messages)
	}
	return outcomes
}
