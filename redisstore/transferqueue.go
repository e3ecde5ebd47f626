package redisstore

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// forwardsAll is the status of a receive from a source that forwards its messages
// (lua/lib/transfer/refuse_forwarding.lua).
const forwardsAll = "FORWARDS_ALL"

// settles are the scripts that end or extend locks.
var settles = map[string]bool{
	"complete":    true,
	"abandon":     true,
	"release":     true,
	"defer":       true,
	"dead_letter": true,
	"renew_locks": true,
}

// runOn is run for a verb on a source. It creates a transfer dead-letter queue that does not exist, so that an empty
// one can be received from and waited on as well (DLQ-19).
func (s *Store) runOn(
	ctx context.Context, source semantics.Source, name string, keys keyNames, args ...any,
) (*reply, error) {
	if source.SubQueue == semantics.TransferDeadLetterQueue {
		r, err := s.run(ctx, "open_transfers", s.keys(source.Path), s.now(), flag(settles[name]))
		if err != nil {
			return nil, err
		}
		if r.status != "OK" {
			return nil, s.notFound(ctx, source.Path)
		}
	}
	return s.run(ctx, name, keys, args...)
}
