package broker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Dead letters go to a queue, or back to where they were, in one step (Remover.Resubmit). A topic makes copies of them
// by its rules, and may be in another place, as a queue may be in a cluster. There they go by a transfer, as what is
// forwarded does: set aside at their source, stored at the target, removed at the source. A sidecar that finds such a
// transfer under way continues it, so each letter arrives once, whichever sidecar crashes when.

// finishPending finishes the transfers that other calls have begun from the source, one in each of its partitions:
// their letters are hidden as long as these are under way.
func (r *resubmitter) finishPending(ctx context.Context) error {
	for range semantics.MaxPartitions {
		var found bool
		err := r.broker.store.Unbroken(ctx, func(ctx context.Context) (err error) {
			found, err = r.finishOne(ctx)
			return err
		})
		if err != nil || !found {
			return err
		}
	}
	return nil
}

// finishOne finishes a transfer that another call has begun from the source, and reports whether there was one.
func (r *resubmitter) finishOne(ctx context.Context) (found bool, err error) {
	transfer, err := r.broker.store.BeginTransfer(ctx, r.source, semantics.Destination{}, 1)
	switch {
	case errors.Is(err, semantics.ErrForwardingChanged),
		semantics.CodeOf(err) == semantics.EntityNotFound: // there is none
		return false, nil
	case err != nil:
		return false, err
	}
	return true, r.finishOther(ctx, transfer)
}

// finishOther finishes a transfer of the source that another call has begun.
func (r *resubmitter) finishOther(ctx context.Context, transfer semantics.Transfer) error {
	entity, err := r.broker.getSource(ctx, r.source.Path)
	if err != nil {
		return err
	}
	err = r.broker.finishTransfer(ctx, entity.Name, transfer)
	if errors.Is(err, semantics.ErrOvertaken) { // the next look finds what is under way by now
		return nil
	}
	return heldUp(err)
}

// heldUp is the failure of a call whose transfer must wait, although it does not wait for a destination that refuses:
// Redis has forgotten a part of that.
func heldUp(err error) error {
	if errors.Is(err, semantics.ErrNotYet) {
		return &semantics.Error{Code: semantics.StoreUnavailable, Message: err.Error(), Err: err}
	}
	return err
}

// moveByTransfer sends dead letters to a topic or to a queue in another place, and notes what became of each.
func (r *resubmitter) moveByTransfer(ctx context.Context, letters []*semantics.Received) error {
	numbers := make([]int64, len(letters))
	for i, m := range letters {
		numbers[i] = m.SequenceNumber
	}
	for len(numbers) > 0 {
		var looked int
		err := r.broker.store.Unbroken(ctx, func(ctx context.Context) (err error) {
			looked, err = r.transfer(ctx, numbers)
			return err
		})
		if err != nil {
			return err
		}
		numbers = numbers[looked:]
	}
	return nil
}

// transfer sends the first of some letters by one transfer and returns how many that were: 0 if it had to finish the
// transfer of another call instead.
func (r *resubmitter) transfer(ctx context.Context, numbers []int64) (looked int, err error) {
	b := r.broker
	to, err := b.store.Destination(ctx, r.target)
	if err != nil {
		return 0, err
	}
	if (to.Kind == semantics.TopicKind) != r.options.TargetIsTopic || to.Incarnation == 0 {
		return 0, semantics.NotFound(r.target)
	}
	limit := min(len(numbers), transferSize)
	if r.options.TargetIsTopic {
		limit, err = b.transferLimit(ctx, to.Path, limit)
	} else {
		err = r.checkTarget(ctx)
	}
	if err != nil {
		return 0, err
	}
	numbers = numbers[:limit]
	how := semantics.Resubmitting{
		NewMessageIDs: r.options.NewMessageIDs, KeepExpiry: r.options.KeepExpiry,
		BypassDuplicates: r.options.BypassDuplicates,
	}
	begun, err := b.store.BeginResubmission(ctx, r.source, to, numbers, how)
	switch {
	case err != nil:
		return 0, err
	case !begun.IsNew:
		return 0, r.finishOther(ctx, begun.Transfer)
	}
	arrived := map[int64]semantics.Arrival{} // of those that were set aside
	if len(begun.Messages) > 0 {
		arrivals, err := b.finishResubmission(ctx, begun.Transfer)
		if errors.Is(err, semantics.ErrOvertaken) {
			message := "another call finished this resubmit; list the dead letters to see what is left"
			err = &semantics.Error{Code: semantics.StoreUnavailable, Message: message, Err: err}
		}
		if err != nil { // the next caller continues it
			return 0, semantics.AsError(heldUp(err)).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
		}
		for i, m := range begun.Messages {
			arrived[m.SequenceNumber] = arrivals[i]
		}
	}
	for _, number := range numbers[:begun.Looked] {
		result := ResubmitResult{SequenceNumber: number}
		arrival, isAside := arrived[number]
		if delete(arrived, number); !isAside {
			arrival.Refused = semantics.MessageNotFound
		}
		result.Resubmitted = semantics.Resubmitted{Stored: arrival.Stored, Code: arrival.Refused}
		r.results = append(r.results, result)
		r.moved(result.Resubmitted)
	}
	return begun.Looked, nil
}

// checkTarget returns ENTITY_DISABLED if the target queue cannot be sent to.
func (r *resubmitter) checkTarget(ctx context.Context) error {
	target, err := r.broker.getSource(ctx, r.target)
	if err != nil {
		return err
	}
	if status := target.Options.Status; !status.CanSend() {
		return semantics.Disabled(r.target, status.String())
	}
	return nil
}

// finishResubmission runs the steps that are left of a transfer of resubmitted dead letters, and returns what became of
// each. One that is refused stays where it was.
func (b *Broker) finishResubmission(ctx context.Context, transfer semantics.Transfer) ([]semantics.Arrival, error) {
	if i := slices.IndexFunc(transfer.Messages, lacksKey); i >= 0 {
		// A sidecar with the key may have brought it there already. To leave it here would double it.
		return nil, keyMissing(transfer.Source, transfer.Messages[i])
	}
	all := make([]semantics.Arrival, len(transfer.Messages))
	var going []semantics.Publication
	var places []int // of those that go, among all
	for i, m := range transfer.Messages {
		if all[i].Refused = semantics.CodeOf(m.Unreadable); m.Unreadable == nil {
			going, places = append(going, sentAgain(m, transfer, i)), append(places, i)
		}
	}
	if len(going) < len(transfer.Messages) {
		transfer.Carried = places
	}
	arrivals, err := b.arrive(ctx, transfer, going)
	if err != nil {
		return nil, err
	}
	for i, a := range arrivals {
		all[places[i]] = a
	}
	fates := make([]semantics.Fate, len(all))
	for i, a := range all {
		fates[i].Stays = a.Refused != ""
	}
	return all, b.store.EndTransfer(ctx, transfer, fates)
}

// sentAgain returns a dead letter as its sender sent it (MSG-17).
func sentAgain(m *semantics.Received, transfer semantics.Transfer, place int) semantics.Publication {
	message := m.Message
	message.Properties = maps.Clone(m.Own)
	message.ForgetForwarding()
	message.ScheduledAt = time.Time{}
	if message.TimeToLive != nil &&
		*message.TimeToLive <= 0 { // it was sent again with its end kept, when that was past
		message.TimeToLive = nil
	}
	p := semantics.Publication{Message: &message}
	if transfer.Resubmits.KeepExpiry {
		p.ExpiresAt = m.ExpiresAt
	}
	if transfer.Resubmits.NewMessageIDs {
		// The same, whichever sidecar continues it.
		message.MessageID = semantics.IDFrom(strings.ToLower(transfer.Seed), place)
	}
	return p
}
