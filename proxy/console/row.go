package console

import (
	"math"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// row is an entity as the pages get it. What is zero is left out.
type row struct {
	Path      string `json:"path"`
	Kind      string `json:"kind"`
	Status    string `json:"status,omitempty"` // unless it is active
	Sessions  bool   `json:"sessions,omitempty"`
	ForwardTo string `json:"forwardTo,omitempty"`
	DeadTo    string `json:"deadTo,omitempty"`

	IsRead       bool  `json:"read"` // false: it has not been counted yet
	Available    int64 `json:"available,omitempty"`
	Delayed      int64 `json:"delayed,omitempty"`
	Locked       int64 `json:"locked,omitempty"`
	Deferred     int64 `json:"deferred,omitempty"`
	Expired      int64 `json:"expired,omitempty"`
	Scheduled    int64 `json:"scheduled,omitempty"`
	Dead         int64 `json:"dead,omitempty"`
	Transfer     int64 `json:"transfer,omitempty"`
	TransferDead int64 `json:"transferDead,omitempty"`

	SessionCount  int64 `json:"sessionCount,omitempty"`
	ReadySessions int64 `json:"readySessions,omitempty"`
	HeldSessions  int64 `json:"heldSessions,omitempty"`
	Blocked       int64 `json:"blockedSessions,omitempty"`

	Size     int64 `json:"size,omitempty"`
	MaxSize  int64 `json:"maxSize,omitempty"`
	Oldest   int64 `json:"oldest,omitempty"`  // when the oldest message was enqueued, ms since 1970
	Waiting  int64 `json:"waiting,omitempty"` // since when what a receiver gets next has been there, as above
	Accessed int64 `json:"accessed,omitempty"`

	rates
	Warnings []warning `json:"warnings,omitempty"`

	// Recent are the last minutes, oldest first: seconds since 1970, then what arrived, left and became a dead letter
	// in a second. Only in the first event of a stream.
	Recent [][4]float64 `json:"recent,omitempty"`
}

// rates are messages in a second, between two counts.
type rates struct {
	In   float64 `json:"in,omitempty"`   // arrived
	Out  float64 `json:"out,omitempty"`  // left other than as dead letters
	Rise float64 `json:"rise,omitempty"` // dead letters more than before; negative: fewer
}

// ratesBetween returns the rates between two counts of an entity. A scheduled message arrives when it is activated,
// which assigns a second sequence number. Those that are scheduled and activated between the same two counts cannot be
// distinguished from messages that arrived and left.
func ratesBetween(before, now *semantics.Runtime, seconds float64) rates {
	if seconds <= 0 || now.LastSequence < before.LastSequence || !now.CreatedAt.Equal(before.CreatedAt) {
		return rates{} // another entity of this name
	}
	assigned := now.LastSequence - before.LastSequence
	scheduled := now.Scheduled - before.Scheduled
	rise := now.DeadLetter - before.DeadLetter
	arrived := max(assigned-max(scheduled, 0), 0)
	held := (now.Active + now.Transfer) - (before.Active + before.Transfer)
	left := max(arrived-held-max(rise, 0), 0)
	return rates{
		In: perSecond(arrived, seconds), Out: perSecond(left, seconds), Rise: perSecond(rise, seconds),
	}
}

func perSecond(n int64, seconds float64) float64 { return math.Round(float64(n)/seconds*100) / 100 }

// newRow returns what the pages get of an entity that has not been counted.
func newRow(entity semantics.Entity) row {
	o := entity.Options
	r := row{
		Path: entity.Name, Kind: entity.Kind.String(), Sessions: o.RequiresSession, ForwardTo: o.ForwardTo,
		DeadTo: o.ForwardDeadLetteredMessagesTo, MaxSize: o.MaxBytes(),
	}
	if topic, name, ok := semantics.SplitSubscription(entity.Name); ok {
		r.Path = topic + "/subscriptions/" + name // as the API and the command line have it
	}
	if o.Status != semantics.StatusActive {
		r.Status = o.Status.String()
	}
	return r
}

// count fills in the counts.
func (r *row) count(n *semantics.Runtime) {
	r.IsRead = true
	r.Available, r.Delayed, r.Locked = n.Available-n.Delayed, n.Delayed, n.Locked
	r.Deferred, r.Expired, r.Scheduled = n.Deferred, n.ExpiredPending, n.Scheduled
	r.Dead, r.Transfer, r.TransferDead = n.DeadLetter, n.Transfer, n.TransferDeadLetter
	r.SessionCount, r.ReadySessions, r.HeldSessions = n.Sessions, n.ReadySessions, n.LockedSessions
	r.Blocked = n.BlockedSessions
	r.Size, r.Oldest, r.Waiting = n.SizeInBytes, millis(n.OldestEnqueuedAt), millis(n.AvailableSince)
	r.Accessed = millis(n.AccessedAt)
}

// millis returns an instant in milliseconds since 1970; 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
