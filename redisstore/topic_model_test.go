package redisstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// topicModel is the topic news in the executable specification and in Redis, which must not differ.
type topicModel struct {
	*rapid.T
	t       *testing.T
	clock   *storetest.Clock
	stores  [2]semantics.Store
	auditor *audit.Auditor
	audit   func() error
	sources []semantics.Source
	crowd   []string // further subscriptions, without a bound
	copied  int      // copies published
	largest int      // most messages that one subscription ever got
	lasts   bool     // nothing has a lifetime
	locks   map[semantics.Source][][2]semantics.LockToken
	spread  int64 // partitions of the topic
	sent    int
	steps   int
}

// TestTopicModel carries out random calls on both and compares all that a client can see after each. `-rapid.checks=N`
// runs more.
func TestTopicModel(t *testing.T) {
	t.Parallel()
	raw := redistest.Client(t, redistest.URL(t))
	rapid.Check(t, func(rt *rapid.T) {
		m := openTopicModel(t, rt, raw)
		m.play(rt, func() error {
			return errors.Join(m.auditor.HoldRequests(t.Context(), "news"), m.auditor.Audit(t.Context(), "news"))
		})
	})
}

// The same holds of a topic with several partitions: which partition a call goes to does not depend on the store.
func TestPART_8_TopicModelOverPartitions(t *testing.T) {
	t.Parallel()
	raw := redistest.Client(t, redistest.URL(t))
	rapid.Check(t, func(rt *rapid.T) {
		m := openTopicModel(t, rt, raw)
		m.spread = rapid.SampledFrom([]int64{2, 5}).Draw(rt, "partitions")
		for i, s := range m.stores {
			m.stores[i] = partitioned.New(s.(partitioned.Below))
		}
		var paths []string // of what the store below has, as long as there is such a topic
		m.play(rt, func() error {
			if subject := m.stores[1].(*partitioned.Store); subject.Definition("news") != "" {
				paths = []string{subject.Definition("news")}
				for p := range int(m.spread) {
					paths = append(paths, subject.Path("news", p))
				}
			}
			var faults []error
			for _, path := range paths {
				faults = append(faults, m.auditor.Audit(t.Context(), path))
			}
			return errors.Join(faults...)
		})
	})
}

// play runs one run of the model. audit looks into what Redis keeps.
func (m *topicModel) play(rt *rapid.T, audit func() error) {
	m.audit = audit
	m.sources = []semantics.Source{of("a"), of("b"), of("c"), deadOf("a"), deadOf("b"), deadOf("c")}
	m.create()
	rt.Repeat(map[string]func(*rapid.T){
		"": m.checkNow, "publish": m.publish, "publish again": m.publish, "publish more": m.publish, "receive": m.receive,
		"receive again": m.receive, "settle": m.settle, "settle again": m.settle, "advance": m.advance, "activate": m.activate,
		"cancel": m.cancel, "update": m.update, "rule": m.rule, "make anew": m.makeAnew, "resubmit": m.resubmit, "purge": m.purge, "transact": m.transact,
		"check": m.check, "publish many": m.publishMany, "publish once": m.publishOnce, "crowd in": m.crowdIn,
		"publish to all": m.publishToAll, "by number": m.byNumber, "resubmit to the topic": m.resubmitToTopic,
	})
	m.checkAll(rt)
	m.both("delete", func(_ int, s semantics.Store) (any, error) {
		return nil, s.DeleteEntity(m.t.Context(), semantics.TopicKind, "news")
	})
	if err := m.audit(); err != nil {
		rt.Fatal(err)
	}
}

// openTopicModel opens both stores, in a namespace of their own, for one run of a model.
func openTopicModel(t *testing.T, rt *rapid.T, raw redis.UniversalClient) *topicModel {
	t.Helper()
	clock, namespace := storetest.NewClock(), redistest.NamespaceUntil(rt, redistest.URL(t))
	subject, err := redisstore.Open(redisstore.Options{
		URL: redistest.URL(t), Namespace: namespace, Now: clock.Now, ReadTimeout: redistest.Patience,
	})
	if err != nil {
		rt.Fatal(err)
	}
	rt.Cleanup(func() { _ = subject.Close() })
	ledger := redistest.NewLedger(clock.Now)
	return &topicModel{
		T: rt, t: t, clock: clock, stores: [2]semantics.Store{memstore.New(memstore.WithClock(clock.Now)), ledger.Keep(subject)},
		auditor: audit.New(raw, namespace).With(ledger),
		locks:   map[semantics.Source][][2]semantics.LockToken{},
	}
}

// comparing lets an empty list equal an absent one, and does not look at bodies byte by byte.
var comparing = cmp.Options{
	cmpopts.EquateEmpty(), cmp.Comparer(func(a, b semantics.Value) bool { return a == b }),
	cmpopts.IgnoreFields(semantics.Received{}, "Encoded", "Own"), // which the store in memory does not have
	cmpopts.IgnoreFields(semantics.Entity{}, "Incarnation"),      // random
	cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal)),
}

// both makes a call on both stores, whose results must be the same.
func (m *topicModel) both(what string, call func(i int, s semantics.Store) (any, error)) any {
	m.Helper()
	var results [2]any
	var refusals [2]string
	for i, s := range m.stores {
		result, err := call(i, s)
		results[i], refusals[i] = result, storetest.Refusal(err)
		if errors.Is(err, semantics.ErrRoutesChanged) {
			refusals[i] = "routes changed"
		}
	}
	if refusals[0] != refusals[1] {
		m.Fatalf("%s: got %q, want %q", what, refusals[1], refusals[0])
	}
	if reflect.DeepEqual(results[0], results[1]) {
		return results[1] // as nearly always, and much faster to find out
	}
	if diff := cmp.Diff(results[0], results[1], comparing); diff != "" {
		m.Fatalf("%s (-want +got):\n%s", what, diff)
	}
	return results[1]
}

func (m *topicModel) create() {
	m.lasts = rapid.Bool().Draw(m.T, "lasts")
	options := semantics.DefaultOptions()
	options.RequiresDuplicateDetection = rapid.Bool().Draw(m.T, "detects")
	options.DuplicateDetectionHistoryTimeWindow = time.Minute
	options.DuplicateHistoryMaxEntries = rapid.SampledFrom([]int64{20, 1000, 1_000_000}).Draw(m.T, "max history")
	options.FailIfUnmatched = rapid.Bool().Draw(m.T, "fails unmatched")
	options.MaxSizeInMegabytes, options.MaxMessageSizeInKilobytes = 1, 1024
	options.DefaultMessageTimeToLive, options.Partitions = m.drawLife("topic lives"), m.spread
	m.both("create", func(_ int, s semantics.Store) (any, error) {
		entity, _, err := s.CreateEntity(m.t.Context(), semantics.TopicKind, "news", options)
		return entity, err
	})
	for _, source := range m.sources[:3] {
		m.subscribe(source)
	}
}

func (m *topicModel) drawLife(label string) time.Duration {
	if m.lasts {
		return semantics.Never
	}
	return rapid.SampledFrom([]time.Duration{semantics.Never, semantics.Never, 5 * time.Second, 20 * time.Second}).Draw(m.T, label)
}

func (m *topicModel) subscribe(source semantics.Source) {
	options := semantics.DefaultOptions()
	options.LockDuration = 10 * time.Second
	options.RequiresSession = source == of("c") && rapid.Bool().Draw(m.T, "sessions")
	options.DefaultMessageTimeToLive = m.drawLife("lives")
	options.DeadLetteringOnMessageExpiration = rapid.Bool().Draw(m.T, "keeps expired")
	options.MaxDeliveryCount = 2
	options.MaxMessageCount = rapid.Int64Range(0, 4).Draw(m.T, "most")
	options.Overflow = rapid.SampledFrom([]semantics.Overflow{
		semantics.RejectOverflow, semantics.DeadLetterOverflow, semantics.DropOldestOverflow,
	}).Draw(m.T, "overflow")
	rules := m.rules()
	m.both("subscribe", func(_ int, s semantics.Store) (any, error) {
		entity, created, err := s.CreateSubscription(m.t.Context(), source.Path, options, rules)
		return []any{entity, created}, err
	})
}

// message makes one; large ones fill the topic after a few.
func (m *topicModel) message() *semantics.Message {
	m.sent++
	message := &semantics.Message{
		MessageID: fmt.Sprint(rapid.IntRange(1, 9).Draw(m.T, "id")), Subject: fmt.Sprint(m.sent),
		SessionID: rapid.SampledFrom([]string{"x", "y"}).Draw(m.T, "session"),
	}
	switch rapid.IntRange(0, 10).Draw(m.T, "large") {
	case 0:
		message.Body = make([]byte, storetest.LogUniform(1<<20).Draw(m.T, "size"))
	case 1, 2, 3: // copies share it though the message is alone
		message.Body = bytes.Repeat([]byte{byte(m.sent)}, 600)
	}
	if life := m.drawLife("message lives"); life != semantics.Never {
		message.TimeToLive = &life
	}
	return message
}

func (m *topicModel) copies(message *semantics.Message) []semantics.Copy {
	var copies []semantics.Copy
	for range rapid.IntRange(0, 4).Draw(m.T, "copies") {
		one := semantics.Copy{Subscription: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.T, "to"), Message: message}
		switch rapid.IntRange(0, 5).Draw(m.T, "form") {
		case 0:
			other := *message
			other.Subject += "'"
			one.Message = &other
		case 1:
			reason, description := semantics.ReasonFilterFailed, "of some kind"
			one.DeadLetter = &semantics.DeadLetterTexts{Reason: &reason, Description: &description}
		}
		copies = append(copies, one)
	}
	return copies
}

func (m *topicModel) publish(rt *rapid.T) {
	m.T = rt
	calls := make([][]semantics.Publication, rapid.IntRange(1, 3).Draw(rt, "calls"))
	for i := range calls {
		for range rapid.IntRange(1, 3).Draw(rt, "messages") {
			message := m.message()
			p := semantics.Publication{Message: message, Copies: m.copies(message)}
			if rapid.IntRange(0, 4).Draw(rt, "later") == 0 {
				message.ScheduledAt = m.clock.Now().Add(time.Duration(rapid.IntRange(-1, 10).Draw(rt, "after")) * time.Second)
			}
			calls[i] = append(calls[i], p)
		}
	}
	stale := int64(0)
	if rapid.IntRange(0, 9).Draw(rt, "stale") == 0 {
		stale = 1
	}
	m.publishCalls("publish", calls, stale)
}

var deadSize = regexp.MustCompile(`\d+ bytes are dead letters|deadlettersizeinbytes:\d+`)

// withoutDeadSize leaves out of a refusal how much the dead letters take: those of the same script do not count yet.
func withoutDeadSize(refusal string) string { return deadSize.ReplaceAllString(refusal, "") }

// publishCalls publishes by the routes that there are, or by some that are over.
func (m *topicModel) publishCalls(what string, calls [][]semantics.Publication, stale int64) {
	for _, call := range calls {
		for _, p := range call {
			m.copied += len(p.Copies)
		}
	}
	m.both(what, func(_ int, s semantics.Store) (any, error) {
		routes, err := s.Routes(m.t.Context(), "news")
		if err != nil {
			return nil, err
		}
		var results []string
		m.largest += len(calls[0])
		for _, o := range s.Publish(m.t.Context(), "news", routes.Version-stale, routed(routes, calls)) {
			results = append(results, fmt.Sprint(o.Stored, withoutDeadSize(storetest.Refusal(o.Err)), errors.Is(o.Err, semantics.ErrRoutesChanged)))
		}
		return results, nil
	})
}

// routed returns calls whose copies name the subscriptions as the routes do.
func routed(routes semantics.Routes, calls [][]semantics.Publication) [][]semantics.Publication {
	named := make([][]semantics.Publication, len(calls))
	for i, call := range calls {
		named[i] = slices.Clone(call)
		for j := range call {
			named[i][j].Copies = routedCopies(routes, call[j].Copies)
		}
	}
	return named
}

func routedCopies(routes semantics.Routes, copies []semantics.Copy) []semantics.Copy {
	copies = slices.Clone(copies)
	for i := range copies {
		at := slices.IndexFunc(routes.Subscriptions, func(r semantics.Route) bool {
			return semantics.WholePath(r.Subscription) == copies[i].Subscription
		})
		copies[i].Subscription = routes.Subscriptions[at].Subscription
	}
	return copies
}

func (m *topicModel) receive(rt *rapid.T) {
	m.T = rt
	source, limit := m.source(), rapid.IntRange(1, 4).Draw(rt, "limit")
	if rapid.IntRange(0, 5).Draw(rt, "many") == 0 {
		limit = storetest.LogUniform(semantics.MaxReceiveMessages).Draw(rt, "many messages")
	}
	m.take("receive", source, func(s semantics.Store) ([]*semantics.Received, error) {
		for {
			batch, err := s.Receive(m.t.Context(), source, limit, semantics.RegisterNever)
			if err != nil || len(batch.Messages) > 0 || batch.RecheckAfter > 0 {
				return batch.Messages, err
			}
		}
	})
}

// take compares what both stores hand out and keeps the tokens.
func (m *topicModel) take(what string, source semantics.Source, call func(s semantics.Store) ([]*semantics.Received, error)) {
	var tokens [2][]semantics.LockToken
	m.both(what, func(i int, s semantics.Store) (any, error) {
		messages, err := call(s)
		for _, received := range messages {
			tokens[i] = append(tokens[i], received.LockToken)
			received.LockToken, received.DeadLetterErrorDescription = semantics.LockToken{}, ""
			delete(received.Properties, semantics.PropertyDeadLetterDescription)
		}
		return messages, err
	})
	for j := range tokens[0] {
		m.locks[source] = append(m.locks[source], [2]semantics.LockToken{tokens[0][j], tokens[1][j]})
	}
}

func (m *topicModel) settle(rt *rapid.T) {
	m.T = rt
	source := m.source()
	held := len(m.locks[source])
	if held == 0 {
		return
	}
	n := min(m.many(semantics.MaxReceiveMessages, 4, "locks"), held)
	at := rapid.IntRange(0, held-n).Draw(rt, "lock")
	locks := slices.Clone(m.locks[source][at : at+n])
	m.locks[source] = slices.Delete(m.locks[source], at, at+n)
	verb := rapid.SampledFrom([]string{"complete", "abandon", "defer", "change", "dead-letter"}).Draw(rt, "verb")
	if verb == "dead-letter" && source.SubQueue == semantics.DeadLetterQueue {
		verb = "release"
	}
	m.both(verb, func(i int, s semantics.Store) (any, error) {
		ctx, tokens := m.t.Context(), make([]semantics.LockToken, n)
		for j, lock := range locks {
			tokens[j] = lock[i]
		}
		switch verb {
		case "complete":
			return s.Complete(ctx, source, tokens)
		case "abandon":
			delay := 3 * time.Second
			return s.Abandon(ctx, source, tokens, semantics.AbandonOptions{Delay: &delay})
		case "defer":
			return s.Defer(ctx, source, tokens, nil)
		case "change":
			return s.Abandon(ctx, source, tokens, semantics.AbandonOptions{
				Properties: map[string]semantics.Value{"p": semantics.String(fmt.Sprint(m.sent))},
			})
		case "dead-letter":
			return s.DeadLetter(ctx, source, tokens, semantics.DeadLetterTexts{}, nil)
		default:
			return s.Release(ctx, source, tokens)
		}
	})
}

// transact publishes and settles in one transaction.
func (m *topicModel) transact(rt *rapid.T) {
	m.T = rt
	var operations [2][]semantics.Operation
	add := func(one semantics.Operation) {
		for i := range operations {
			operations[i] = append(operations[i], one)
		}
	}
	for range rapid.IntRange(1, 3).Draw(rt, "calls") {
		o := semantics.Operation{Verb: semantics.OperationSend, Source: semantics.Source{Path: "news"}, IsTopic: true}
		for range rapid.IntRange(1, 3).Draw(rt, "messages") {
			message := m.message()
			if rapid.IntRange(0, 4).Draw(rt, "later") == 0 {
				message.ScheduledAt = m.clock.Now().Add(time.Duration(rapid.IntRange(-1, 10).Draw(rt, "after")) * time.Second)
			}
			o.Messages = append(o.Messages, message)
		}
		add(o)
	}
	source := m.source()
	if held := len(m.locks[source]); held > 0 && rapid.Bool().Draw(rt, "settles") {
		at := rapid.IntRange(0, held-1).Draw(rt, "lock")
		lock := m.locks[source][at]
		m.locks[source] = slices.Delete(m.locks[source], at, at+1)
		o := semantics.Operation{Source: source, Verb: rapid.SampledFrom([]semantics.OperationVerb{
			semantics.OperationComplete, semantics.OperationAbandon, semantics.OperationDefer, semantics.OperationDeadLetter,
		}).Draw(rt, "verb")}
		if source.SubQueue == semantics.DeadLetterQueue {
			o.Verb = semantics.OperationComplete
		}
		add(o)
		for i := range operations {
			operations[i][len(operations[i])-1].Tokens = []semantics.LockToken{lock[i]}
		}
	}
	m.both("transact", func(i int, s semantics.Store) (any, error) {
		outcome := s.Transact(m.t.Context(), nil, operations[i])
		return fmt.Sprint(outcome.Results, withoutDeadSize(storetest.Refusal(outcome.Err))), nil
	})
}

func (m *topicModel) advance(rt *rapid.T) {
	m.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 500, 1000, 5000, 10_000, 60_000}).Draw(rt, "ms")) * time.Millisecond)
	m.clearAway()
}

func (m *topicModel) activate(rt *rapid.T) {
	m.T = rt
	limit := rapid.IntRange(1, 3).Draw(rt, "limit")
	var copies [][]semantics.Copy
	for range limit {
		copies = append(copies, m.copies(&semantics.Message{}))
	}
	m.both("activate", func(_ int, s semantics.Store) (any, error) {
		routes, err := s.Routes(m.t.Context(), "news")
		if err != nil {
			return nil, err
		}
		due, err := s.Due(m.t.Context(), "news", limit)
		if err != nil {
			return nil, err
		}
		var activations []semantics.Activation
		for i, d := range due {
			a := semantics.Activation{
				SequenceNumber: d.SequenceNumber, EnqueuedAt: d.EnqueuedAt, Publication: semantics.Publication{Message: &d.Message},
			}
			for _, c := range routedCopies(routes, copies[i]) {
				c.Message = &d.Message
				a.Copies = append(a.Copies, c)
			}
			activations = append(activations, a)
		}
		return due, s.Activate(m.t.Context(), "news", routes.Version, activations)
	})
}

func (m *topicModel) cancel(rt *rapid.T) {
	m.T = rt
	id := fmt.Sprint(rapid.IntRange(1, 9).Draw(rt, "id"))
	m.both("cancel", func(_ int, s semantics.Store) (any, error) {
		return s.CancelScheduledByID(m.t.Context(), "news", []string{id})
	})
}

func (m *topicModel) update(rt *rapid.T) {
	m.T = rt
	options := semantics.DefaultOptions()
	options.MaxMessageCount = rapid.Int64Range(0, 4).Draw(rt, "most")
	options.Overflow = rapid.SampledFrom([]semantics.Overflow{semantics.RejectOverflow, semantics.DeadLetterOverflow, semantics.DropOldestOverflow}).
		Draw(rt, "overflow")
	options.DeadLetteringOnFilterEvaluationExceptions = rapid.Bool().Draw(rt, "keeps failures")
	path := rapid.SampledFrom(m.sources[:3]).Draw(rt, "source").Path
	m.both("update", func(_ int, s semantics.Store) (any, error) {
		return s.UpdateEntity(m.t.Context(), semantics.SubscriptionKind, path, options,
			[]string{"maxMessageCount", "overflow", "deadLetteringOnFilterEvaluationExceptions"})
	})
}

func (m *topicModel) rule(rt *rapid.T) {
	m.T = rt
	path := rapid.SampledFrom(m.sources[:3]).Draw(rt, "source").Path
	rule := semantics.Rule{Name: rapid.SampledFrom([]string{"$Default", "one", "ONE", "two"}).Draw(rt, "name")}
	rule.Filter.SQL = &semantics.SQLText{Expression: "n = 1"}
	if rapid.Bool().Draw(rt, "delete") {
		m.both("delete rule", func(_ int, s semantics.Store) (any, error) {
			return nil, s.DeleteRule(m.t.Context(), path, rule.Name)
		})
		return
	}
	if rapid.Bool().Draw(rt, "replace") {
		if rapid.Bool().Draw(rt, "other kind") {
			rule.Filter = semantics.RuleFilter{All: true}
		}
		m.both("replace rule", func(_ int, s semantics.Store) (any, error) { return s.ReplaceRule(m.t.Context(), path, rule) })
		return
	}
	m.both("create rule", func(_ int, s semantics.Store) (any, error) { return s.CreateRule(m.t.Context(), path, rule) })
}

func (m *topicModel) makeAnew(rt *rapid.T) {
	m.T = rt
	if rapid.IntRange(0, 3).Draw(rt, "seldom") > 0 {
		return
	}
	source := rapid.SampledFrom(m.sources[:3]).Draw(rt, "source")
	m.both("delete", func(_ int, s semantics.Store) (any, error) {
		return nil, s.DeleteEntity(m.t.Context(), semantics.SubscriptionKind, source.Path)
	})
	m.subscribe(source)
}

func (m *topicModel) resubmit(rt *rapid.T) {
	m.T = rt
	source := rapid.SampledFrom(m.sources[3:]).Draw(rt, "source")
	m.both("resubmit", func(_ int, s semantics.Store) (any, error) {
		found, err := s.Peek(m.t.Context(), source, 1, 2, semantics.ShowAvailable)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		var letters []semantics.Resubmission
		for _, f := range found {
			letters = append(letters, semantics.Resubmission{
				SequenceNumber: f.SequenceNumber, MessageID: f.MessageID + "0", NewID: true, MoreBytes: 1, SessionID: f.SessionID,
			})
		}
		return s.Resubmit(m.t.Context(), source, source.Path, letters, false)
	})
}

func (m *topicModel) purge(rt *rapid.T) {
	m.T = rt
	source := rapid.SampledFrom(m.sources).Draw(rt, "source")
	show := rapid.SampledFrom([]semantics.Show{semantics.ShowAvailable, semantics.ShowDeferred}).Draw(rt, "show")
	m.both("purge", func(_ int, s semantics.Store) (any, error) {
		step, deleted := semantics.Purge{Show: show, Limit: 2}, 0
		for {
			purged, err := s.Purge(m.t.Context(), source, step)
			deleted += purged.Deleted
			if err != nil || !purged.More {
				return deleted, err
			}
			step.Before, step.After = purged.Before, purged.Last
		}
	})
}

// check compares all that can be seen.
func (m *topicModel) check(rt *rapid.T) {
	m.T = rt
	m.clearAway()
	ctx := m.t.Context()
	for _, source := range m.touched() {
		m.both("peek at "+source.String(), func(_ int, s semantics.Store) (any, error) { return m.rows(s, source) })
	}
	for _, source := range m.sources[:3] {
		m.both("counts of "+source.Path, func(_ int, s semantics.Store) (any, error) {
			return s.Runtime(ctx, semantics.SubscriptionKind, source.Path)
		})
		m.both("rules", func(_ int, s semantics.Store) (any, error) {
			var all []semantics.Rule
			for after := ""; ; {
				rules, more, err := s.ListRules(ctx, source.Path, after, semantics.MaxPageSize)
				if all = append(all, rules...); err != nil || !more {
					return all, err
				}
				after = rules[len(rules)-1].Name
			}
		})
		m.both("entity", func(_ int, s semantics.Store) (any, error) {
			return s.GetEntity(ctx, semantics.SubscriptionKind, source.Path)
		})
	}
	m.both("counts of the topic", func(_ int, s semantics.Store) (any, error) { return s.Runtime(ctx, semantics.TopicKind, "news") })
	m.both("topic", func(_ int, s semantics.Store) (any, error) { return s.GetEntity(ctx, semantics.TopicKind, "news") })
	m.both("routes", func(_ int, s semantics.Store) (any, error) {
		routes, err := s.Routes(ctx, "news")
		routes.Version = 0 // begins at random, and so do incarnations
		for i := range routes.Subscriptions {
			route := &routes.Subscriptions[i]
			route.Subscription, route.Incarnation = semantics.WholePath(route.Subscription), 0
		}
		return routes, err
	})
}

// checkNow looks at everything now and then, which takes longer than the steps do.
func (m *topicModel) checkNow(rt *rapid.T) {
	if m.steps++; m.steps%8 == 0 {
		m.checkAll(rt)
	}
}

// checkAll also looks into what Redis keeps.
func (m *topicModel) checkAll(rt *rapid.T) {
	m.check(rt)
	if err := m.audit(); err != nil {
		m.Fatal(err)
	}
}
