package storetest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// Few ids, so that they repeat.
var someIDs = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})

func (m *model) drawMessage(rt *rapid.T) *semantics.Message {
	message := text(someIDs.Draw(rt, "id"))
	if rapid.IntRange(1, 12).Draw(rt, "large") == 1 {
		message.Body = make([]byte, 1200)
	}
	if rapid.Bool().Draw(rt, "has ttl") {
		ttl := rapid.SampledFrom([]time.Duration{ms, unit, 2 * unit, 4 * unit, 8 * unit, semantics.Never}).Draw(rt, "ttl")
		message.TimeToLive = &ttl
	}
	if rapid.IntRange(1, 4).Draw(rt, "scheduled") == 1 {
		message.ScheduledAt = m.now.Add(rapid.SampledFrom([]time.Duration{-unit, 0, ms, unit, unit, 3 * unit, 8 * unit}).Draw(rt, "due in"))
	}
	if rapid.Bool().Draw(rt, "has properties") {
		message.Properties = drawProperties(rt)
	}
	return message
}

// drawProperties gives properties of which some together are more than a message may have, and of which two differ in case
// only.
func drawProperties(rt *rapid.T) map[string]semantics.Value {
	name := rapid.SampledFrom([]string{"p", "p", "q", "r", "P"}).Draw(rt, "name")
	value := semantics.Int64(rapid.Int64().Draw(rt, "value"))
	if rapid.IntRange(1, 12).Draw(rt, "large property") == 1 {
		value = semantics.Bytes(make([]byte, semantics.MaxPropertyValueSize-10))
	}
	return map[string]semantics.Value{name: value}
}

func (m *model) send(rt *rapid.T) {
	messages := make([]*semantics.Message, rapid.IntRange(1, 4).Draw(rt, "messages"))
	partition := rapid.SampledFrom([]string{"", "", "p", "q"}).Draw(rt, "partition")
	for i := range messages {
		message := m.drawMessage(rt)
		messages[i] = message
		if m.options.RequiresSession {
			m.drawSession(rt, message, partition)
			continue
		}
		switch rapid.IntRange(1, 8).Draw(rt, "key") {
		case 1:
			message.SessionID = "p"
		case 2, 3, 4:
			message.SessionID = partition
		default:
			message.PartitionKey = partition
		}
	}
	agree(rt, m, "send", func(s semantics.Store) ([]semantics.Stored, error) { return s.Send(m.ctx, m.main.Path, messages) })
}

// numbers draws numbers mostly of the rows that are meant, and some of others or of none. Some are named twice.
func (m *model) numbers(rt *rapid.T, rows []*semantics.Received, meant func(row *semantics.Received) bool) []int64 {
	var known []int64
	for _, row := range rows {
		if meant(row) {
			known = append(known, row.SequenceNumber)
		}
	}
	drawn := make([]int64, rapid.IntRange(1, 3).Draw(rt, "how many"))
	for i := range drawn {
		if len(known) > 0 && rapid.IntRange(1, 8).Draw(rt, "known") > 1 {
			drawn[i] = rapid.SampledFrom(known).Draw(rt, "number")
		} else {
			drawn[i] = rapid.Int64Range(1, m.last+2).Draw(rt, "any number")
		}
	}
	return drawn
}

func isScheduled(row *semantics.Received) bool { return row.State == semantics.Scheduled }

func (m *model) cancel(rt *rapid.T) {
	numbers := m.numbers(rt, m.rows, isScheduled)
	_, ok := agree(rt, m, "cancel", func(s semantics.Store) (any, error) {
		return nil, s.CancelScheduled(m.ctx, m.main.Path, numbers)
	})
	m.looked(ok)
}

func (m *model) cancelByID(rt *rapid.T) {
	ids := rapid.SliceOfN(someIDs, 1, 2).Draw(rt, "ids")
	_, ok := agree(rt, m, "cancel by id", func(s semantics.Store) (int, error) {
		return s.CancelScheduledByID(m.ctx, m.main.Path, ids)
	})
	m.looked(ok)
}
