package broker

import (
	"context"
	"errors"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// resubmitter is one Resubmit under way.
type resubmitter struct {
	broker  *Broker
	source  semantics.Source
	target  string
	options ResubmitOptions
	most    int
	results []ResubmitResult
	isApart bool // source and target are in different places, so the letters go by transfers
	// by partition, the first number that this call created in the queue of the dead letters
	created map[int]int64
}

// all goes through the dead letters by number and moves those that match, page by page. Resubmitted messages may be
// dead-lettered again; to end, all stops at the first number that this call created, in each partition.
func (r *resubmitter) all(ctx context.Context) ([]ResubmitResult, bool, error) {
	from := int64(1)
	for {
		page, err := r.broker.store.Peek(
			ctx, r.source, from, resubmitStep, semantics.ShowAvailable|semantics.ShowDeferred,
		)
		if err != nil {
			return r.stop(err)
		}
		if len(page) == 0 {
			return r.results, false, nil
		}
		last := page[len(page)-1]
		from = last.SequenceNumber + 1
		if r.isCreated(last) { // as all that follow in its partition
			_, p := semantics.PartitionOf(last.SequenceNumber)
			from = semantics.InPartition(1, p+1)
		}
		page = slices.DeleteFunc(page, r.isCreated)
		var chosen []*semantics.Received
		for _, m := range page {
			matches := m.Unreadable == nil // it stays for a version that can read it
			if matches && r.options.Matches != nil {
				if matches, err = r.options.Matches(m); err != nil {
					return r.stop(err)
				}
			}
			if matches {
				chosen = append(chosen, m)
			}
		}
		full := len(r.results)+len(chosen) > r.most
		if full {
			chosen = chosen[:r.most-len(r.results)]
		}
		if err := r.move(ctx, chosen); err != nil {
			return r.stop(err)
		}
		if full {
			return r.results, true, nil
		}
	}
}

// named moves the dead letters with the given numbers, in the order given.
func (r *resubmitter) named(ctx context.Context) ([]ResubmitResult, bool, error) {
	var letters []*semantics.Received
	for i, number := range r.options.Numbers {
		found, err := r.broker.store.Peek(ctx, r.source, number, 1, semantics.ShowAvailable|semantics.ShowDeferred)
		if err != nil {
			return r.stop(err)
		}
		if len(found) == 0 || found[0].SequenceNumber != number {
			found = []*semantics.Received{{SequenceNumber: number}} // the store answers that there is none
		}
		letters = append(letters, found[0])
		if len(letters) == resubmitStep || i == len(r.options.Numbers)-1 {
			if err := r.move(ctx, letters); err != nil {
				return r.stop(err)
			}
			letters = nil
		}
	}
	return r.results, false, nil
}

// stop returns what was done, and the error only when that is nothing.
func (r *resubmitter) stop(err error) ([]ResubmitResult, bool, error) {
	if len(r.results) > 0 {
		return r.results, true, nil
	}
	return nil, false, err
}

func (r *resubmitter) move(ctx context.Context, letters []*semantics.Received) error {
	if len(letters) == 0 {
		return nil
	}
	// it was named
	if i := slices.IndexFunc(letters, func(m *semantics.Received) bool { return m.Unreadable != nil }); i >= 0 {
		if err := r.move(ctx, letters[:i]); err != nil {
			return err
		}
		r.results = append(r.results, ResubmitResult{
			SequenceNumber: letters[i].SequenceNumber,
			Resubmitted:    semantics.Resubmitted{Code: semantics.CodeOf(letters[i].Unreadable)},
		})
		return r.move(ctx, letters[i+1:])
	}
	if r.options.TargetIsTopic || r.isApart {
		return r.moveByTransfer(ctx, letters)
	}
	items := make([]semantics.Resubmission, len(letters))
	for i, m := range letters {
		items[i] = r.options.resubmission(m)
	}
	moved, err := r.broker.store.Resubmit(ctx, r.source, r.target, items, r.options.BypassDuplicates)
	if errors.Is(err, semantics.ErrApart) {
		r.isApart = true
		return r.moveByTransfer(ctx, letters)
	}
	if err != nil {
		return err
	}
	for i, m := range moved {
		r.results = append(r.results, ResubmitResult{SequenceNumber: letters[i].SequenceNumber, Resubmitted: m})
		r.moved(m)
	}
	return nil
}

// moved notes a letter that the target took.
func (r *resubmitter) moved(m semantics.Resubmitted) {
	if m.Code != "" {
		return
	}
	r.broker.charge(1)
	_, p := semantics.PartitionOf(m.SequenceNumber)
	isHere := semantics.Fold(r.target) == semantics.Fold(r.source.Path)
	if first := r.created[p]; isHere && !m.Deduplicated && m.SequenceNumber != 0 &&
		(first == 0 || m.SequenceNumber < first) {
		r.created[p] = m.SequenceNumber
	}
}

// isCreated reports whether this call created a message, or a later one of its partition.
func (r *resubmitter) isCreated(m *semantics.Received) bool {
	_, p := semantics.PartitionOf(m.SequenceNumber)
	first, is := r.created[p]
	return is && m.SequenceNumber >= first
}

// resubmission returns how the store sends a dead letter again.
func (o *ResubmitOptions) resubmission(m *semantics.Received) semantics.Resubmission {
	item := semantics.Resubmission{
		SequenceNumber: m.SequenceNumber, MessageID: m.MessageID, PartitionKey: m.Partition(), SessionID: m.SessionID,
		WasForwarded: m.Forwarded != nil, MoreBytes: -m.ForwardingSize(),
	}
	if m.TimeToLive != nil && *m.TimeToLive > 0 { // else it was sent again with its end kept, when that was past
		item.TimeToLive = m.TimeToLive
	}
	if o.KeepExpiry {
		item.ExpiresAt = m.ExpiresAt
	}
	if o.NewMessageIDs {
		item.MessageID, item.NewID = semantics.NewRandomUUID().String(), true
		item.MoreBytes += int64(len(item.MessageID) - len(m.MessageID))
	}
	return item
}
