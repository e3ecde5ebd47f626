package console

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// warning is something about an entity that an operator should look at. The pages have a sentence for each.
type warning string

// The warnings.
const (
	noReceiver      warning = "noReceiver"      // messages are available, and none has left for a while
	deadLettersRise warning = "deadLettersRise" // there are more dead letters than some minutes ago
	nearQuota       warning = "nearQuota"       // its size is near the maximum
	transfersFail   warning = "transfersFail"   // messages could not be forwarded
	notCounted      warning = "notCounted"      // counting it fails, so its counts are old
)

// When an entity has a warning.
const (
	receiverPatience = time.Minute
	deadLetterSpan   = 15 * time.Minute
	quotaShare       = 0.8
)

// warningsOf returns what is to be said of an entity. active is when something last left it, or when it was first
// counted.
func warningsOf(r *row, n *semantics.Runtime, history *ring, active, now time.Time) (all []warning) {
	waits := n.AvailableSince
	if r.Available > 0 && r.ForwardTo == "" && !waits.IsZero() && now.Sub(waits) > receiverPatience &&
		now.Sub(active) > receiverPatience && n.Locked == 0 && n.LockedSessions == 0 {
		all = append(all, noReceiver)
	}
	if history.deadBefore(now.Add(-deadLetterSpan)) < n.DeadLetter {
		all = append(all, deadLettersRise)
	}
	if r.MaxSize > 0 && float64(n.SizeInBytes) >= quotaShare*float64(r.MaxSize) {
		all = append(all, nearQuota)
	}
	if n.TransferDeadLetter > 0 {
		all = append(all, transfersFail)
	}
	return all
}

// deadBefore returns the fewest dead letters since a time, or of all if it is before the history.
func (r *ring) deadBefore(since time.Time) int64 {
	least := int64(-1)
	for _, s := range r.samples {
		if n := int64(s.dead); s.at >= since.Unix() && (least < 0 || n < least) {
			least = n
		}
	}
	return max(least, 0)
}
