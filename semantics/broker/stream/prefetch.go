package stream

import (
	"time"

	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// handOnPrefetched hands on what was fetched ahead, in its order, for as long as the subscription lives, and releases
// what the client does not want any more.
func (s *Subscription) handOnPrefetched() {
	look := time.NewTicker(account.LockLook)
	defer look.Stop()
	for {
		isOver, isDraining := s.life.Err() != nil, s.isDraining()
		now, back := s.account.TakeAhead(isDraining)
		if len(back.Tokens()) > 0 {
			s.giveBack(back)
		}
		switch {
		case len(now.Tokens()) > 0:
			s.handOver(now)
		case isOver:
			return
		default:
			s.pass(s.account.Fetched, isDraining, look.C)
		}
	}
}
