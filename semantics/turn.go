package semantics

import "context"

// Turn is what the holder of a session does in one step.
type Turn struct {
	Session  LockToken
	Complete []LockToken // messages to complete, if any
	Receive  int         // how many messages to receive then, at most; 0: none
	Register Register    // as of Receive
}

// TurnOutcome is what became of a Turn.
type TurnOutcome struct {
	Codes   []Code // one for each message to complete, as of Complete
	Err     error  // why nothing was completed, and nothing received
	Batch   Batch  // as of Receive
	Failure error  // why nothing was received; the Codes stand
}

// TakeTurns makes turns with one Complete and one Receive each, for a Store that has no cheaper way.
func TakeTurns(ctx context.Context, s interface {
	Settler
	Receiver
}, path string, turns []Turn,
) []TurnOutcome {
	outcomes := make([]TurnOutcome, len(turns))
	for i, t := range turns {
		o, source := &outcomes[i], Source{Path: path, SessionLock: t.Session}
		if len(t.Complete) > 0 {
			o.Codes, o.Err = s.Complete(ctx, source, t.Complete)
		}
		if o.Err == nil && t.Receive > 0 {
			o.Batch, o.Failure = s.Receive(ctx, source, t.Receive, t.Register)
		}
	}
	return outcomes
}
