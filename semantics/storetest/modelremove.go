package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// mostModelLetters is the most dead letters of one step of a resubmission.
const mostModelLetters = 100

// purge removes the first messages of one group of main.
func (m *model) purge(rt *rapid.T) {
	show := rapid.SampledFrom([]semantics.Show{semantics.ShowAvailable, semantics.ShowDeferred, semantics.ShowScheduled}).Draw(rt, "group")
	m.purgeStepwise(rt, m.drawMain(rt), show, rapid.IntRange(1, 3).Draw(rt, "most"))
}

// purgeDead removes all dead letters of one group: which of them come first is not fixed.
func (m *model) purgeDead(rt *rapid.T) {
	show := rapid.SampledFrom([]semantics.Show{semantics.ShowAvailable, semantics.ShowDeferred}).Draw(rt, "group")
	m.purgeStepwise(rt, m.dead, show, broker.MaxPurgeMessages)
}

// purgeStepwise goes on until most messages are removed or none is left. How many steps that takes is not fixed.
func (m *model) purgeStepwise(rt *rapid.T, from origin, show semantics.Show, most int) {
	purge := semantics.Purge{Show: show}
	if rapid.IntRange(1, 3).Draw(rt, "has before") == 1 {
		purge.Before = m.now.Add(-rapid.SampledFrom([]time.Duration{-unit, 0, ms, unit, 2 * unit}).Draw(rt, "before"))
	}
	step := rapid.IntRange(1, 3).Draw(rt, "step")
	type done struct {
		Deleted int
		Before  time.Time
	}
	_, ok := agree(rt, m, "purge", func(s semantics.Store) (done, error) {
		total, next := done{}, purge
		for range 10_000 {
			next.Limit = min(step, most-total.Deleted)
			got, err := s.Purge(m.ctx, m.on(s, from), next)
			if err != nil {
				return total, err
			}
			total.Deleted += got.Deleted
			total.Before, next.Before, next.After = got.Before, got.Before, got.Last
			if got.Deleted > next.Limit {
				rt.Fatalf("purge removed %d messages, at most %d were asked for", got.Deleted, next.Limit)
			}
			if !got.More || total.Deleted == most {
				return total, nil
			}
		}
		rt.Fatalf("purge never ends")
		return total, nil
	})
	if show == semantics.ShowDeferred {
		clear(m.deferred)
	}
	m.looked(ok)
}

func (m *model) deleteByNumber(rt *rapid.T) {
	from, rows := m.drawSide(rt)
	numbers := m.numbers(rt, rows, broker.MaxDeferredNumbers, func(*semantics.Received) bool { return true })
	_, ok := agree(rt, m, "delete by number", func(s semantics.Store) ([]semantics.Code, error) {
		return s.DeleteByNumber(m.ctx, m.on(s, from), numbers)
	})
	m.noLongerDeferred(ok, numbers...)
	m.looked(ok)
}

func (m *model) resubmit(rt *rapid.T) { m.resubmitTo(rt, m.main.Path) }

func (m *model) resubmitElsewhere(rt *rapid.T) {
	m.compareCounts(rt, m.other.Path) // whether a resubmission is a look at another target is not fixed
	if m.IsApart || rapid.Bool().Draw(rt, "by a transfer") {
		m.resubmitByTransfer(rt, m.other.Path)
	} else {
		m.resubmitTo(rt, m.other.Path)
	}
	m.otherChanged = true
}

// resubmitByTransfer is resubmitTo where no step changes both queues.
func (m *model) resubmitByTransfer(rt *rapid.T, target string) {
	how := semantics.Resubmitting{
		KeepExpiry:       rapid.IntRange(1, 3).Draw(rt, "keep expiry") == 1,
		BypassDuplicates: rapid.Bool().Draw(rt, "bypass duplicates"),
	}
	if rows, ok := m.comparePages(rt, m.dead, semantics.ShowAll); ok {
		m.deadRows, m.moved = rows, false
	}
	numbers := m.numbers(rt, m.deadRows, mostModelLetters, func(*semantics.Received) bool { return true })
	if len(numbers) == 0 {
		return
	}
	_, ok := agree(rt, m, "resubmit by a transfer", func(s semantics.Store) ([]semantics.Arrival, error) {
		to, err := s.Destination(m.ctx, target)
		if err != nil || to.Incarnation == 0 {
			return nil, err
		}
		begun, err := s.BeginResubmission(m.ctx, m.on(s, m.dead), to, numbers, how)
		if err != nil || !begun.IsNew || len(begun.Messages) == 0 {
			return nil, err
		}
		publications, fates := again(begun.Transfer), make([]semantics.Fate, len(begun.Messages))
		for i, row := range begun.Messages {
			if how.KeepExpiry {
				publications[i].ExpiresAt = row.ExpiresAt
			}
			if row.TimeToLive != nil && *row.TimeToLive <= 0 {
				publications[i].Message.TimeToLive = nil
			}
		}
		arrivals, err := s.Arrive(m.ctx, begun.Transfer, 0, publications, true)
		if err != nil {
			return nil, err
		}
		for i, a := range arrivals {
			fates[i].Stays = a.Refused != ""
		}
		return arrivals, s.EndTransfer(m.ctx, begun.Transfer, fates)
	})
	m.looked(ok)
}

func (m *model) resubmitTo(rt *rapid.T, target string) {
	keep := rapid.IntRange(1, 3).Draw(rt, "keep expiry") == 1
	fresh := rapid.IntRange(1, 3).Draw(rt, "new ids") == 1
	bypass := rapid.Bool().Draw(rt, "bypass duplicates")
	// As Broker does it, which looks at the dead letters first.
	if rows, ok := m.comparePages(rt, m.dead, semantics.ShowAll); ok {
		m.deadRows, m.moved = rows, false
	}
	var letters []semantics.Resubmission
	for _, number := range m.numbers(rt, m.deadRows, mostModelLetters, func(*semantics.Received) bool { return true }) {
		letter := semantics.Resubmission{SequenceNumber: number, MessageID: "unknown"}
		for _, row := range m.deadRows {
			if row.SequenceNumber != number {
				continue
			}
			letter.MessageID, letter.PartitionKey, letter.TimeToLive = row.MessageID, row.Partition(), row.TimeToLive
			letter.SessionID = row.SessionID
			if row.TimeToLive != nil && *row.TimeToLive <= 0 {
				letter.TimeToLive = nil
			}
			if keep {
				letter.ExpiresAt = row.ExpiresAt
			}
			if fresh {
				letter.MessageID, letter.NewID = fmt.Sprintf("new-%d", len(m.ids)), true
				letter.MoreBytes = int64(len(letter.MessageID) - len(row.MessageID))
			}
		}
		letters = append(letters, letter)
	}
	_, ok := agree(rt, m, "resubmit", func(s semantics.Store) ([]semantics.Resubmitted, error) {
		return s.Resubmit(m.ctx, m.on(s, m.dead), target, letters, bypass)
	})
	m.looked(ok)
}
