package redisstore_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// Steps of the topic model up to the limits. How much there is of something is one draw, log-uniform, so most steps are
// small and quick, and a failure shrinks to as few as it takes; what differs among them follows from their number.

const (
	mostModelIDs    = 5000
	mostModelRules  = 3000
	mostCallBytes   = 256 << 10
	mostModelCopies = 30_000 // of a run; then batches are small, because each step compares and audits all there is
)

// many draws up to most in one of so many steps, else 1.
func (m *topicModel) many(most, oneIn int, label string) int {
	if rapid.IntRange(1, oneIn).Draw(m.T, "many "+label) < oneIn {
		return 1
	}
	return storetest.LogUniform(most).Draw(m.T, label)
}

// mostBatch is the limit in runs without lifetimes. In others what expires stays below what one call clears away, for
// how many calls more takes is not fixed.
func (m *topicModel) mostBatch() int {
	if m.lasts {
		return max(1, min(semantics.MaxBatchMessages, mostModelCopies-m.copied))
	}
	return max(1, min(60, 200-m.largest))
}

// batch draws a call with up to as many messages as a batch may have, with ids of which some come again.
func (m *topicModel) batch() []semantics.Publication {
	n := storetest.LogUniform(min(m.mostBatch(), max(100, m.many(semantics.MaxBatchMessages, 6, "messages of a batch")))).Draw(m.T, "messages")
	first := storetest.LogUniform(mostModelIDs).Draw(m.T, "first id")
	body := make([]byte, storetest.LogUniform(max(1, mostCallBytes/n)).Draw(m.T, "size"))
	to := rapid.SampledFrom([][]string{{"a"}, {"b", "c"}, {"a", "b", "c"}, {}}).Draw(m.T, "to")
	// so many of the copies one is a dead letter from the start
	buriesEach := storetest.LogUniform(1000).Draw(m.T, "buries each")
	call := make([]semantics.Publication, n)
	for i := range call {
		m.sent++
		message := &semantics.Message{
			MessageID: fmt.Sprint("m", (first+i)%mostModelIDs), Subject: fmt.Sprint(m.sent), SessionID: []string{"x", "y"}[i%2], Body: body,
		}
		copies := copiesOf(message, to...)
		for j := range copies {
			if (i*len(copies)+j)%buriesEach == 1 {
				copies[j].DeadLetter = &semantics.DeadLetterTexts{Reason: ptr(semantics.ReasonFilterFailed)}
			}
		}
		call[i] = semantics.Publication{Message: message, Copies: copies}
	}
	return call
}

func ptr[T any](v T) *T { return &v }

func (m *topicModel) publishMany(rt *rapid.T) {
	m.T = rt
	m.publishCalls("publish many", [][]semantics.Publication{m.batch()}, 0)
}

// publishOnce publishes under one of few request ids, so that most are repeats, of the same messages and of others
// (IDEM-1).
func (m *topicModel) publishOnce(rt *rapid.T) {
	m.T = rt
	call := m.batch()
	once := semantics.Once{
		RequestID: rapid.SampledFrom([]string{"r", "R", "r:1"}).Draw(rt, "request"), Digest: fmt.Sprint(len(call)), Seed: "seed",
	}
	m.both("publish once", func(_ int, s semantics.Store) (any, error) {
		routes, err := s.Routes(m.t.Context(), "news")
		if err != nil {
			return nil, err
		}
		outcome := s.PublishOnce(m.t.Context(), "news", routes.Version, once, routed(routes, [][]semantics.Publication{call})[0])
		return []any{outcome.Stored, outcome.Repeats}, outcome.Err
	})
}

// crowdIn makes up to as many subscriptions as a topic may have.
func (m *topicModel) crowdIn(rt *rapid.T) {
	m.T = rt
	if len(m.crowd) > 0 {
		return
	}
	n := m.many(semantics.MaxSubscriptionsPerTopic, 16, "subscriptions")
	options := semantics.DefaultOptions()
	m.both("subscribe many", func(_ int, s semantics.Store) (any, error) {
		for i := range n {
			if _, _, err := s.CreateSubscription(m.t.Context(), of(fmt.Sprintf("s%d", i)).Path, options, []semantics.Rule{everything}); err != nil {
				return i, err // the last few are too many
			}
		}
		return n, nil
	})
	for i := range min(n, semantics.MaxSubscriptionsPerTopic-3) {
		m.crowd = append(m.crowd, fmt.Sprintf("s%d", i))
	}
}

// publishToAll makes a copy for each of the crowd, of some messages.
func (m *topicModel) publishToAll(rt *rapid.T) {
	m.T = rt
	if len(m.crowd) == 0 || m.copied > mostModelCopies {
		return
	}
	n := storetest.LogUniform(max(1, min(m.mostBatch(), semantics.MaxCopies/len(m.crowd)))).Draw(rt, "messages")
	body := make([]byte, storetest.LogUniform(max(1, (1<<20)/n/len(m.crowd))).Draw(rt, "size"))
	call := make([]semantics.Publication, n)
	for i := range call {
		m.sent++
		message := &semantics.Message{MessageID: fmt.Sprint("all", m.sent), SessionID: "x", Body: body}
		call[i] = semantics.Publication{Message: message, Copies: copiesOf(message, m.crowd...)}
	}
	m.publishCalls("publish to all", [][]semantics.Publication{call}, 0)
}

// rules gives the rules that a new subscription begins with: one for everything and others of one kind. Three
// subscriptions together stay below the number of SQL filters that a topic may have, because messages for a
// subscription that was refused are nothing a Broker sends.
func (m *topicModel) rules() []semantics.Rule {
	rules := []semantics.Rule{everything}
	kind := rapid.IntRange(0, 2).Draw(m.T, "kind of rules")
	most := mostModelRules
	if kind == 1 {
		most = semantics.MaxSQLFiltersPerTopic / 4
	}
	for i := range m.many(most, 16, "rules") - 1 {
		rule := semantics.Rule{Name: fmt.Sprint("r", i)}
		switch kind {
		case 0:
			rule.Filter.None = true
		case 1:
			rule.Filter.SQL = &semantics.SQLText{Expression: fmt.Sprint("n = ", i)}
		default:
			rule.Filter.Correlation = &semantics.CorrelationFilter{Subject: ptr(fmt.Sprint(i))}
		}
		rules = append(rules, rule)
	}
	return rules
}

// source draws where to receive, among a crowd too.
func (m *topicModel) source() semantics.Source {
	if len(m.crowd) > 0 && rapid.IntRange(0, 3).Draw(m.T, "of the crowd") == 0 {
		return of(m.crowd[rapid.IntRange(0, len(m.crowd)-1).Draw(m.T, "which")])
	}
	return rapid.SampledFrom(m.sources).Draw(m.T, "source")
}

// numbers draws up to so many numbers of a group that follow one another, now and then with one of no message.
func (m *topicModel) numbers(source semantics.Source, show semantics.Show, most int) []int64 {
	// on both, for it is use of the entity
	all, _ := m.both("peek for numbers", func(_ int, s semantics.Store) (any, error) {
		rows, err := s.Peek(m.t.Context(), source, 1, most, show)
		var numbers []int64
		for _, row := range rows {
			numbers = append(numbers, row.SequenceNumber)
		}
		return numbers, err
	}).([]int64)
	if len(all) == 0 {
		return nil
	}
	n := min(m.many(most, 3, "numbers"), len(all))
	first := rapid.IntRange(0, len(all)-n).Draw(m.T, "first number")
	numbers := slices.Clone(all[first : first+n])
	if rapid.IntRange(0, 9).Draw(m.T, "has an unknown one") == 0 {
		numbers = append(numbers[:len(numbers)-1], 1<<40)
	}
	return numbers
}

func (m *topicModel) byNumber(rt *rapid.T) {
	m.T = rt
	source := m.source()
	show, state := semantics.ShowAvailable, semantics.Active
	verb := rapid.SampledFrom([]string{"receive", "receive deferred", "reactivate", "cancel"}).Draw(rt, "by number")
	switch verb {
	case "cancel":
		numbers := m.numbers(semantics.Source{Path: "news"}, semantics.ShowScheduled, 1000)
		if len(numbers) > 0 {
			m.both(verb, func(_ int, s semantics.Store) (any, error) {
				return nil, s.CancelScheduled(m.t.Context(), "news", numbers)
			})
		}
		return
	case "receive deferred", "reactivate":
		show, state = semantics.ShowDeferred, semantics.Deferred
	}
	numbers := m.numbers(source, show, broker.MaxDeferredNumbers)
	if len(numbers) == 0 {
		return
	}
	if verb == "reactivate" {
		m.both(verb, func(_ int, s semantics.Store) (any, error) { return nil, s.Reactivate(m.t.Context(), source, numbers) })
		return
	}
	m.take(verb, source, func(s semantics.Store) ([]*semantics.Received, error) {
		return s.ReceiveByNumber(m.t.Context(), source, state, numbers)
	})
}

// resubmitToTopic sends dead letters to the topic again, as the Broker does it: all three steps of a transfer (DLQ-22).
func (m *topicModel) resubmitToTopic(rt *rapid.T) {
	m.T = rt
	source := rapid.SampledFrom(m.sources[3:]).Draw(rt, "source")
	numbers := m.numbers(source, semantics.ShowAvailable, broker.MaxDeferredNumbers)
	if len(numbers) == 0 {
		return
	}
	to := rapid.SampledFrom([][]string{{"a"}, {"b", "c"}, {}}).Draw(rt, "to")
	how := semantics.Resubmitting{BypassDuplicates: rapid.Bool().Draw(rt, "bypass duplicates")}
	begin := func(s semantics.Store) (semantics.BegunResubmission, error) {
		destination, err := s.Destination(m.t.Context(), "news")
		if err != nil {
			return semantics.BegunResubmission{}, err
		}
		return s.BeginResubmission(m.t.Context(), source, destination, numbers, how)
	}
	// How many fit into one transfer depends on the number of copies: Redis says so first.
	onRedis, errOfRedis := begin(m.stores[1])
	if errOfRedis == nil && onRedis.Looked == 0 {
		m.Fatalf("begin to resubmit: looked at none of %d", len(numbers))
	}
	if errOfRedis == nil {
		numbers = numbers[:onRedis.Looked]
	}
	m.both("resubmit to the topic", func(i int, s semantics.Store) (any, error) {
		ctx := m.t.Context()
		begun, err := onRedis, errOfRedis
		if i == 0 {
			begun, err = begin(s)
		}
		if err != nil || len(begun.Messages) == 0 {
			return begun.Looked, err
		}
		routes, err := s.Routes(ctx, "news")
		if err != nil {
			return nil, err
		}
		publications := routed(routes, [][]semantics.Publication{sentAgain(begun.Transfer, to...)})[0]
		arrivals, err := s.Arrive(ctx, begun.Transfer, routes.Version, publications, true)
		if err != nil {
			return nil, err
		}
		fates := make([]semantics.Fate, len(arrivals))
		for i, a := range arrivals {
			fates[i].Stays = a.Refused != ""
		}
		return arrivals, s.EndTransfer(ctx, begun.Transfer, fates)
	})
}

// sentAgain gives dead letters as their sender sent them.
func sentAgain(transfer semantics.Transfer, to ...string) []semantics.Publication {
	publications := make([]semantics.Publication, len(transfer.Messages))
	for i, m := range transfer.Messages {
		message := m.Message
		message.Properties = maps.Clone(m.Properties)
		delete(message.Properties, semantics.PropertyDeadLetterReason)
		delete(message.Properties, semantics.PropertyDeadLetterDescription)
		message.ForgetForwarding()
		message.ScheduledAt = time.Time{}
		if message.TimeToLive != nil && *message.TimeToLive <= 0 {
			message.TimeToLive = nil
		}
		publications[i] = semantics.Publication{Message: &message, Copies: copiesOf(&message, to...)}
	}
	return publications
}

// rows gives all messages of a source, page by page.
func (m *topicModel) rows(s semantics.Store, source semantics.Source) (all []*semantics.Received, err error) {
	for from := int64(1); ; {
		found, err := s.Peek(m.t.Context(), source, from, broker.MaxPeekMessages, semantics.ShowAll)
		for _, f := range found {
			f.DeadLetterErrorDescription = "" // is free to differ
			delete(f.Properties, semantics.PropertyDeadLetterDescription)
		}
		if all = append(all, found...); err != nil || len(found) == 0 { // a short page may have reached its bytes
			return all, err
		}
		from = found[len(found)-1].SequenceNumber + 1
	}
}

// clearAway has what time has ended cleared away once there may be more of it than one call does: how many calls that
// takes is not fixed.
func (m *topicModel) clearAway() {
	if m.largest < 100 {
		return // then every verb gets to be the first to see what time has brought about
	}
	subscriptions := []string{"a", "b", "c"}
	for _, name := range append(subscriptions, m.crowd...) {
		m.both("counts", func(_ int, s semantics.Store) (any, error) {
			// locks that ended are given back in slices too, and what they held may have expired
			for range m.largest / 100 {
				if _, err := s.Runtime(m.t.Context(), semantics.SubscriptionKind, of(name).Path); err != nil {
					return nil, err
				}
			}
			return s.Runtime(m.t.Context(), semantics.SubscriptionKind, of(name).Path)
		})
	}
}

// touched are the sources whose messages are compared: of a crowd, whose members get the same, those that were received
// from, the first and the last.
func (m *topicModel) touched() []semantics.Source {
	touched := slices.Clone(m.sources)
	if len(m.crowd) > 0 {
		touched = append(touched, of(m.crowd[0]), of(m.crowd[len(m.crowd)-1]))
	}
	return append(touched, semantics.Source{Path: "news"})
}
