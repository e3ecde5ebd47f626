package storetest

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// settlementWords are the verbs of a transaction, as the books of sessions call them.
var settlementWords = map[semantics.OperationVerb]string{
	semantics.OperationComplete: "complete", semantics.OperationAbandon: "abandon", semantics.OperationDefer: "defer",
	semantics.OperationDeadLetter: "dead-letter",
}

// member is an operation of a drawn transaction: what it is on each store, and what the model notes once it is done.
type member struct {
	on   func(s semantics.Store) semantics.Operation
	note func(result semantics.OperationResult)
}

// transact settles deliveries, cancels, sends and sets states in one transaction, now and then again under the request
// id of the last one.
func (m *model) transact(rt *rapid.T) {
	repeats := m.lastTransaction != nil && even(4).Draw(rt, "repeats") == 0
	if !repeats {
		m.lastTransaction = m.drawTransaction(rt)
		m.lastRequest = nil
		if even(3).Draw(rt, "has request") == 0 {
			m.lastRequest = &semantics.Once{RequestID: rapid.SampledFrom([]string{"r", "tx"}).Draw(rt, "request"), Seed: "seed"}
		}
	}
	members, once := m.lastTransaction, m.lastRequest
	type answer struct {
		Results []semantics.OperationResult
		Repeats *semantics.Repetition
	}
	got, ok := agree(rt, m, "transact", func(s semantics.Store) (answer, error) {
		operations := make([]semantics.Operation, len(members))
		shape := ""
		for i, member := range members {
			operations[i] = member.on(s)
			shape += fmt.Sprint(operations[i].Verb, len(operations[i].Messages), operations[i].State != nil, ";")
		}
		request := once
		if request != nil {
			copied := *once
			copied.Digest, request = shape, &copied
		}
		outcome := s.Transact(m.ctx, request, operations)
		return answer{outcome.Results, outcome.Repeats}, outcome.Err
	})
	if !ok {
		return
	}
	if got.Repeats != nil && !repeats && once == nil {
		rt.Fatal("a transaction without a request id was a repeat")
	}
	for i, member := range members {
		if got.Repeats == nil && member.note != nil {
			member.note(got.Results[i])
		}
	}
	m.otherChanged = true
}

func (m *model) drawTransaction(rt *rapid.T) []member {
	var members []member
	for range rapid.IntRange(0, 2).Draw(rt, "settlements") {
		if len(m.deliveries) > 0 {
			members = append(members, m.drawSettlement(rt))
		}
	}
	if even(3).Draw(rt, "cancels") == 0 {
		numbers := rapid.SliceOfN(rapid.Int64Range(1, 30), 1, 2).Draw(rt, "numbers")
		members = append(members, member{on: func(semantics.Store) semantics.Operation { return cancels(m.main.Path, numbers...) }})
	}
	if len(m.holds) > 0 && even(2).Draw(rt, "sets state") == 0 {
		members = append(members, m.drawStates(rt)...)
	}
	calls := few(rt, semantics.MaxOperations-len(members), "sends") - 1
	for i := range calls {
		messages, path := m.drawMessages(rt), m.main.Path
		if calls > 3 {
			messages = messages[:1]
		}
		if !m.IsApart && even(3).Draw(rt, "elsewhere") == 0 { // TX-7
			path = m.other.Path
		}
		members = append(members, member{on: func(semantics.Store) semantics.Operation { return sends(path, messages...) }})
		if i == 0 && even(4).Draw(rt, "shuffles") == 0 {
			slices.Reverse(members)
		}
	}
	if len(members) == 0 {
		messages := m.drawMessages(rt)
		members = []member{{on: func(semantics.Store) semantics.Operation { return sends(m.main.Path, messages...) }}}
	}
	return members
}

// drawSettlement ends locks of deliveries.
func (m *model) drawSettlement(rt *rapid.T) member {
	from, chosen := m.draw(rt)
	if even(3).Draw(rt, "several") > 0 {
		chosen = chosen[:1] // a lock that is lost fails all
	}
	verb := rapid.SampledFrom([]semantics.OperationVerb{
		semantics.OperationComplete, semantics.OperationComplete, semantics.OperationAbandon, semantics.OperationDefer, semantics.OperationDeadLetter,
	}).Draw(rt, "verb")
	like := semantics.Operation{Verb: verb}
	switch verb {
	case semantics.OperationDeadLetter:
		from.Source = m.main.Source
	case semantics.OperationAbandon:
		if rapid.Bool().Draw(rt, "has delay") {
			like.Abandon.Delay = ptr(units(0, 1, 2, 6).Draw(rt, "delay"))
		}
		like.Abandon.SkipOrder = m.options.RequiresSession && rapid.Bool().Draw(rt, "skip order")
	default:
	}
	changes := map[string]semantics.Value(nil)
	if verb != semantics.OperationComplete {
		changes = drawChanges(rt)
	}
	return member{
		on: func(s semantics.Store) semantics.Operation {
			o := like
			o.Source, o.Tokens, o.Properties = m.on(s, from), m.tokens(s, chosen), maps.Clone(changes)
			return o
		},
		note: func(semantics.OperationResult) {
			m.settled(rt, settlementWords[verb], from, chosen, make([]semantics.Code, len(chosen)))
		},
	}
}

// drawStates sets states of one or two sessions.
func (m *model) drawStates(rt *rapid.T) (members []member) {
	done := map[string]bool{}
	for range rapid.IntRange(1, 2).Draw(rt, "states") {
		h := m.drawHold(rt)
		if done[h.session] {
			continue
		}
		done[h.session] = true
		data, expected := m.drawState(rt, h)
		members = append(members, member{
			on: func(s semantics.Store) semantics.Operation {
				return semantics.Operation{Verb: semantics.OperationSetState, Source: m.on(s, m.under(h)), State: data, Version: expected}
			},
			note: func(result semantics.OperationResult) { m.stateWasSet(rt, h, data, expected, result.Version) },
		})
	}
	return members
}
