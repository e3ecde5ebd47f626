package storetest

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// Pair are two stores that a model test compares, both empty and on the same clock.
type Pair struct {
	Reference semantics.Store // says what is right
	Subject   semantics.Store
	Advance   func(time.Duration) // moves the clock of both
}

// RunModel carries out random calls and time steps on two stores and fails when a client could tell them apart. Lock
// tokens are random; those of one delivery count as the same. It also checks CNT-4 after each step. openPair is called once; every run uses a queue of its own.
func RunModel(t *testing.T, openPair func(t *testing.T) Pair) {
	t.Helper()
	pair, runs := openPair(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		m := &model{Pair: pair, ctx: t.Context(), main: semantics.Source{Path: fmt.Sprintf("model-%d", runs)}}
		m.dead = semantics.Source{Path: m.main.Path, SubQueue: semantics.DeadLetterQueue}
		m.create(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":                     m.check,
			"advance":              m.advance,
			"send":                 m.send,
			"receive":              m.receive,
			"receive again":        m.receive, // twice as often as the rest
			"receive dead letters": m.receiveDead,
			"complete":             m.settler(semantics.Settler.Complete),
			"abandon": m.settler(func(s semantics.Settler, ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
				return s.Abandon(ctx, source, tokens, nil, nil)
			}),
			"release":     m.settler(semantics.Settler.Release),
			"dead-letter": m.deadLetter,
			"renew":       m.renew,
			"peek":        m.peek,
			"update":      m.update,
		})
		both(rt, m, "delete", func(s semantics.Store) (any, error) { return nil, s.DeleteQueue(m.ctx, m.main.Path) })
	})
}

type model struct {
	Pair
	ctx        context.Context
	main, dead semantics.Source
	deliveries []delivery // the last ones, most of them over
	moved      bool       // the clock moved and nothing has looked at the queue since
}

// delivery is one hand-out of one message by both stores.
type delivery struct {
	source             semantics.Source
	reference, subject semantics.LockToken
}

const keptDeliveries = 24

// both makes the same call on both stores and compares the codes, and the answers when got is not nil.
func both[T any](rt *rapid.T, m *model, what string, call func(s semantics.Store) (T, error)) (reference, subject T, ok bool) {
	rt.Helper()
	reference, wantErr := call(m.Reference)
	subject, gotErr := call(m.Subject)
	if want, got := semantics.CodeOf(wantErr), semantics.CodeOf(gotErr); want != got {
		rt.Fatalf("%s: got error %v, want %v", what, gotErr, wantErr)
	}
	return reference, subject, wantErr == nil
}

func same(rt *rapid.T, what string, want, got any) {
	rt.Helper()
	if reflect.DeepEqual(want, got) {
		return // as nearly always, and much faster to find out
	}
	if diff := gocmp.Diff(want, got, comparing); diff != "" {
		rt.Fatalf("%s differs (-reference +subject):\n%s", what, diff)
	}
}

// Steps of time and lifetimes are multiples of the same unit, so that exact boundaries are met often.
const unit = 500 * ms

func (m *model) drawOptions(rt *rapid.T) semantics.QueueOptions {
	o := semantics.DefaultQueueOptions()
	o.LockDuration = rapid.SampledFrom([]time.Duration{2 * unit, 3 * unit, 5 * unit}).Draw(rt, "lock duration")
	o.MaxDeliveryCount = rapid.Int64Range(1, 3).Draw(rt, "max delivery count")
	o.DefaultMessageTimeToLive = rapid.SampledFrom([]time.Duration{semantics.Never, 4 * unit}).Draw(rt, "default ttl")
	o.DeadLetteringOnMessageExpiration = rapid.Bool().Draw(rt, "dead-letter expired")
	o.MaxMessageCount = rapid.SampledFrom([]int64{0, 6}).Draw(rt, "max count")
	o.Status = rapid.SampledFrom([]semantics.Status{0, 0, 0, 0, 0, 1, 2, 3}).Draw(rt, "status")
	return o
}

func (m *model) create(rt *rapid.T) {
	options := m.drawOptions(rt)
	options.Status = semantics.StatusActive
	reference, subject, _ := both(rt, m, "create", func(s semantics.Store) (semantics.Queue, error) {
		queue, created, err := s.CreateQueue(m.ctx, m.main.Path, options)
		if !created {
			rt.Fatalf("queue %s was not created", m.main.Path)
		}
		return queue, err
	})
	same(rt, "created queue", reference, subject)
}

func (m *model) update(rt *rapid.T) {
	options := m.drawOptions(rt)
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"lockDuration", "maxDeliveryCount", "defaultMessageTimeToLive", "deadLetteringOnMessageExpiration", "maxMessageCount", "status",
	}), 1, 2, rapid.ID).Draw(rt, "options")
	both(rt, m, "update", func(s semantics.Store) (semantics.Queue, error) {
		return s.UpdateQueue(m.ctx, m.main.Path, options, names)
	})
}

func (m *model) advance(rt *rapid.T) {
	m.Advance(rapid.SampledFrom([]time.Duration{ms, unit - ms, unit, unit + ms, 2 * unit, 5 * unit}).Draw(rt, "step"))
	m.moved = true
}

func (m *model) send(rt *rapid.T) {
	m.look(rt) // expired messages take room until somebody looks, and who looks when is not fixed
	messages := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) *semantics.Message {
		message := text(rapid.StringMatching(`[a-z]{1,8}`).Draw(rt, "id"))
		if rapid.Bool().Draw(rt, "has ttl") {
			ttl := rapid.SampledFrom([]time.Duration{ms, unit, 2 * unit, 4 * unit, 8 * unit}).Draw(rt, "ttl")
			message.TimeToLive = &ttl
		}
		if rapid.Bool().Draw(rt, "has properties") {
			message.Properties = map[string]semantics.Value{"p": semantics.Int64(rapid.Int64().Draw(rt, "p"))}
		}
		return message
	}), 1, 3).Draw(rt, "messages")
	reference, subject, _ := both(rt, m, "send", func(s semantics.Store) ([]semantics.Stored, error) { return s.Send(m.ctx, m.main.Path, messages) })
	same(rt, "first number", reference, subject)
}

func (m *model) receive(rt *rapid.T) {
	m.take(rt, m.main, rapid.IntRange(1, 4).Draw(rt, "limit"))
}

// receiveDead takes all dead letters: which of those that one look moved comes first is fixed only where instants
// differ, so the order is checked by instant and the content without order.
func (m *model) receiveDead(rt *rapid.T) {
	m.look(rt)
	m.take(rt, m.dead, semantics.MaxReceiveMessages)
}

func (m *model) take(rt *rapid.T, source semantics.Source, limit int) {
	reference, subject, ok := both(rt, m, "receive", func(s semantics.Store) ([]*semantics.Received, error) {
		for {
			batch, err := s.Receive(m.ctx, source, limit, semantics.RegisterNever)
			if err != nil || len(batch.Messages) > 0 || batch.RecheckAfter > 0 {
				return batch.Messages, err
			}
		}
	})
	if !ok {
		return
	}
	m.moved = false
	if source == m.dead {
		for _, messages := range [][]*semantics.Received{reference, subject} {
			if !slices.IsSortedFunc(messages, func(a, b *semantics.Received) int { return a.DeadLetteredAt.Compare(b.DeadLetteredAt) }) {
				rt.Fatalf("dead letters are not in order of arrival: %v", numbersOf(messages))
			}
			slices.SortFunc(messages, func(a, b *semantics.Received) int { return cmp.Compare(a.SequenceNumber, b.SequenceNumber) })
		}
	}
	same(rt, "received", plain(reference), plain(subject))
	for i := range reference {
		m.deliveries = append(m.deliveries, delivery{source, reference[i].LockToken, subject[i].LockToken})
	}
	m.deliveries = m.deliveries[max(0, len(m.deliveries)-keptDeliveries):]
}

// plain leaves out what stores may choose: tokens, and the wording of descriptions that they write themselves.
func plain(messages []*semantics.Received) []semantics.Received {
	rows := make([]semantics.Received, len(messages))
	for i, message := range messages {
		row := *message
		if !row.LockToken.IsZero() {
			row.LockToken = semantics.LockToken{1}
		}
		if row.DeadLetterReason != byHand && row.DeadLetterReason != "" {
			row.SetDeadLetter(semantics.DeadLetterTexts{Reason: &row.DeadLetterReason, Description: new(string)}, row.DeadLetteredAt)
		}
		rows[i] = row
	}
	return rows
}

// draw chooses some deliveries of one source: live ones, old ones, the same one twice, or one of the other source.
func (m *model) draw(rt *rapid.T) (source semantics.Source, chosen []delivery) {
	if len(m.deliveries) == 0 {
		rt.Skip("nothing was delivered yet")
	}
	chosen = rapid.SliceOfN(rapid.SampledFrom(m.deliveries), 1, 3).Draw(rt, "deliveries")
	return chosen[0].source, chosen
}

func (m *model) tokens(s semantics.Store, chosen []delivery) []semantics.LockToken {
	tokens := make([]semantics.LockToken, len(chosen))
	for i, d := range chosen {
		tokens[i] = d.reference
		if s == m.Subject {
			tokens[i] = d.subject
		}
	}
	return tokens
}

type settleVerb = func(s semantics.Settler, ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error)

func (m *model) settler(verb settleVerb) func(*rapid.T) {
	return func(rt *rapid.T) {
		source, chosen := m.draw(rt)
		m.settle(rt, source, chosen, verb)
	}
}

const byHand = "by hand"

var byHandTexts = semantics.DeadLetterTexts{Reason: ptr(byHand), Description: ptr("description")}

func ptr[T any](v T) *T { return &v }

func (m *model) deadLetter(rt *rapid.T) {
	_, chosen := m.draw(rt)
	m.settle(rt, m.main, chosen, func(s semantics.Settler, ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.DeadLetter(ctx, source, tokens, byHandTexts, nil)
	})
}

func (m *model) settle(rt *rapid.T, source semantics.Source, chosen []delivery, verb settleVerb) {
	reference, subject, _ := both(rt, m, "settle", func(s semantics.Store) ([]semantics.Code, error) {
		return verb(s, m.ctx, source, m.tokens(s, chosen))
	})
	same(rt, "outcomes", reference, subject)
}

func (m *model) renew(rt *rapid.T) {
	source, chosen := m.draw(rt)
	reference, subject, _ := both(rt, m, "renew", func(s semantics.Store) ([]semantics.Renewal, error) {
		return s.RenewLocks(m.ctx, source, m.tokens(s, chosen))
	})
	if source == m.dead {
		for i := range reference { // whether lifetimes that no longer count are reported is not fixed
			reference[i].ExpiredInHand, subject[i].ExpiredInHand = false, false
		}
	}
	same(rt, "renewals", reference, subject)
}

func (m *model) peek(rt *rapid.T) {
	m.comparePeek(rt, m.main, rapid.Int64Range(0, 12).Draw(rt, "from"), rapid.IntRange(1, 5).Draw(rt, "limit"))
	m.moved = false
}

func (m *model) comparePeek(rt *rapid.T, source semantics.Source, from int64, limit int) {
	reference, subject, _ := both(rt, m, "peek", func(s semantics.Store) ([]*semantics.Received, error) {
		return s.Peek(m.ctx, source, from, limit, semantics.ShowAll)
	})
	if source == m.dead {
		for _, row := range slices.Concat(reference, subject) {
			row.Expired = false // as with renewals
		}
	}
	same(rt, "peeked", plain(reference), plain(subject))
}

// check compares all that can be seen without taking anything. After a time step it leaves the look to the next call,
// so that every verb gets to be the first to see what time has brought about.
func (m *model) check(rt *rapid.T) {
	if m.moved {
		return
	}
	m.compareQueue(rt)
	m.compareCounts(rt)
	m.comparePeek(rt, m.main, 0, semantics.MaxPeekMessages)
	m.comparePeek(rt, m.dead, 0, semantics.MaxPeekMessages)
}

// look makes both stores carry out what time has brought about.
func (m *model) look(rt *rapid.T) {
	if m.moved {
		m.compareCounts(rt)
		m.moved = false
	}
}

func (m *model) compareQueue(rt *rapid.T) {
	reference, subject, _ := both(rt, m, "get", func(s semantics.Store) (semantics.Queue, error) {
		queue, err := s.GetQueue(m.ctx, m.main.Path)
		if queue.AccessedAt.Before(queue.UpdatedAt) {
			queue.AccessedAt = queue.UpdatedAt // whether an update counts as access is not fixed
		}
		return queue, err
	})
	same(rt, "queue", reference, subject)
}

func (m *model) compareCounts(rt *rapid.T) {
	reference, subject, _ := both(rt, m, "runtime", func(s semantics.Store) (semantics.Runtime, error) {
		for range 100 { // a store may clear away what has expired in slices
			r, err := s.QueueRuntime(m.ctx, m.main.Path)
			if err != nil {
				return r, err
			}
			checkSum(rt, r)
			if r.ExpiredPending == 0 {
				return r, nil
			}
		}
		rt.Fatalf("what has expired is never cleared away")
		return semantics.Runtime{}, nil
	})
	same(rt, "counts", reference, subject)
}
