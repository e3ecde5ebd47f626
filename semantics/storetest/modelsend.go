package storetest

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Few ids, so that they repeat.
var someIDs = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})

func (m *model) drawMessage(rt *rapid.T) *semantics.Message {
	message := text(someIDs.Draw(rt, "id"))
	if rapid.IntRange(1, 12).Draw(rt, "large") == 1 {
		message.Body = make([]byte, LogUniform(mostModelBody).Draw(rt, "size"))
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

// Bounds of a run. What it has at a time stays far below what one answer may have: stores need not cut that at the same
// place.
const (
	mostModelBody    = 100 << 10
	mostModelBatch   = 60
	mostModelReceive = semantics.MaxReceiveMessages
)

// LogUniform draws 1 to most, each power of two as often as the others.
func LogUniform(most int) *rapid.Generator[int] {
	return rapid.Custom(func(t *rapid.T) int {
		low := 1 << rapid.IntRange(0, bits.Len(uint(most))-1).Draw(t, "power")
		return rapid.IntRange(low, min(2*low-1, most)).Draw(t, "of it")
	})
}

// few draws mostly 1 to 4, and now and then up to most.
func few(rt *rapid.T, most int, label string) int {
	if rapid.IntRange(1, 12).Draw(rt, "many "+label) == 1 {
		return LogUniform(most).Draw(rt, label)
	}
	return rapid.IntRange(1, 4).Draw(rt, label)
}

// drawProperties returns properties of which some together are more than a message may have, and of which two differ in
// case only.
func drawProperties(rt *rapid.T) map[string]semantics.Value {
	name := rapid.SampledFrom([]string{"p", "p", "q", "r", "P"}).Draw(rt, "name")
	value := semantics.Int64(rapid.Int64().Draw(rt, "value"))
	if rapid.IntRange(1, 12).Draw(rt, "large property") == 1 {
		value = semantics.Bytes(make([]byte, semantics.MaxPropertyValueSize-10))
	}
	return map[string]semantics.Value{name: value}
}

func (m *model) send(rt *rapid.T) {
	messages := m.drawMessages(rt)
	agree(rt, m, "send", func(s semantics.Store) ([]semantics.Stored, error) { return s.Send(m.ctx, m.main.Path, messages) })
}

// sendOnce sends under one of few request ids, so that most are repeats, of the same messages and of others (IDEM-1).
func (m *model) sendOnce(rt *rapid.T) {
	messages := m.drawMessages(rt)
	once := semantics.Once{
		RequestID: rapid.SampledFrom([]string{"r", "R", "r:1"}).Draw(rt, "request"),
		Digest:    rapid.SampledFrom([]string{"d", "d", "d", "e"}).Draw(rt, "digest"), Seed: "seed",
	}
	type answer struct {
		Stored  []semantics.Stored
		Repeats *semantics.Repetition
	}
	agree(rt, m, "send once", func(s semantics.Store) (answer, error) {
		// a repeat is answered for as many messages as it has
		outcome := s.SendOnce(m.ctx, m.main.Path, once, messages[:1])
		return answer{outcome.Stored, outcome.Repeats}, outcome.Err
	})
}

// drawPlain draws a message of which a store may keep several together: it has no options.
func drawPlain(rt *rapid.T) *semantics.Message {
	message := text(someIDs.Draw(rt, "id"))
	if rapid.IntRange(1, 8).Draw(rt, "large") == 1 {
		message.Body = make([]byte, LogUniform(mostModelBody).Draw(rt, "size"))
	}
	return message
}

func (m *model) drawMessages(rt *rapid.T) []*semantics.Message {
	messages := make([]*semantics.Message, few(rt, mostModelBatch, "messages"))
	if !m.options.RequiresSession && rapid.Bool().Draw(rt, "without options") {
		for i := range messages {
			messages[i] = drawPlain(rt)
		}
		return messages
	}
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
	return messages
}

// numbers draws numbers mostly of the rows that are meant, and some of others or of none. Some are named twice. How
// many is one draw, now and then log-uniform up to most; of more than a few only the first is drawn, and others follow
// from it.
func (m *model) numbers(rt *rapid.T, rows []*semantics.Received, most int, meant func(row *semantics.Received) bool) []int64 {
	var known []int64
	for _, row := range rows {
		if meant(row) {
			known = append(known, row.SequenceNumber)
		}
	}
	drawn := make([]int64, few(rt, most, "numbers"))
	isMany := len(drawn) > 4
	for i := range drawn {
		switch {
		case isMany && i > 0 && len(known) > 0:
			drawn[i] = known[(i-1)%len(known)] // again from the first when there are fewer
		case isMany && i > 0:
			drawn[i] = 1 + (drawn[0]+int64(i))%(m.last+2)
		case len(known) > 0 && rapid.IntRange(1, 8).Draw(rt, "known") > 1:
			drawn[i] = rapid.SampledFrom(known).Draw(rt, "number")
		default:
			drawn[i] = rapid.Int64Range(1, m.last+2).Draw(rt, "any number")
		}
	}
	return drawn
}

func isScheduled(row *semantics.Received) bool { return row.State == semantics.Scheduled }

func (m *model) cancel(rt *rapid.T) {
	numbers := m.numbers(rt, m.rows, broker.MaxCancelNumbers, isScheduled)
	_, ok := agree(rt, m, "cancel", func(s semantics.Store) (any, error) {
		return nil, s.CancelScheduled(m.ctx, m.main.Path, numbers)
	})
	m.looked(ok)
}

func (m *model) cancelByID(rt *rapid.T) {
	ids := rapid.SliceOfN(someIDs, 1, 2).Draw(rt, "ids")
	for i := range few(rt, broker.MaxCancelNumbers, "ids") - 4 { // of nothing, or of what is named already
		ids = append(ids, fmt.Sprintf("%c%s", 'a'+i%26, strings.Repeat("0", i/26%20)))
	}
	_, ok := agree(rt, m, "cancel by id", func(s semantics.Store) (int, error) {
		return s.CancelScheduledByID(m.ctx, m.main.Path, ids)
	})
	m.looked(ok)
}
