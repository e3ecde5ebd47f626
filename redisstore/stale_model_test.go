package redisstore_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// staleModel is a name under which a queue or a topic with a subscription is created with any number of partitions,
// changes, and is deleted. Two sidecars use it in turn. Each knows of what the other has done only what its own calls
// have met, so what it remembers is old in every way that there is. What is there is known exactly.
type staleModel struct {
	*rapid.T
	t       *testing.T
	clock   *storetest.Clock
	below   [2]*redisstore.Store
	brokers [2]*broker.Broker
	auditor *audit.Auditor

	kind         semantics.Kind // of what is there, or was last
	partitions   int64          // 0: nothing is there
	isSubscribed bool           // a topic has its subscription
	free, dead   map[string]bool
	held         map[string]*semantics.Received
	lost         []semantics.LockToken // of locks that have ended, or of what is gone
	numbers      []int64               // that any message had
	sent         int
}

const (
	staleName = "things"
	staleLock = 5 * time.Minute
)

// Whatever a sidecar remembers of an entity, each call has the result that it has for one that remembers nothing.
// `-rapid.checks=N` runs more.
func TestPART_1_StaleSidecarsModel(t *testing.T) {
	t.Parallel()
	raw := redistest.Client(t, redistest.URL(t))
	rapid.Check(t, func(rt *rapid.T) {
		clock, namespace := storetest.NewClock(), redistest.NamespaceUntil(rt, redistest.URL(t))
		m := &staleModel{T: rt, t: t, clock: clock, auditor: audit.New(raw, namespace), kind: semantics.QueueKind}
		for i := range m.below {
			below, err := redisstore.Open(redisstore.Options{
				URL: redistest.URL(t), Namespace: namespace, Now: clock.Now, ReadTimeout: redistest.Patience,
			})
			m.must("open", err)
			rt.Cleanup(func() { _ = below.Close() })
			m.below[i], m.brokers[i] = below, brokerOver(partitioned.New(below))
			rt.Cleanup(m.brokers[i].Close)
		}
		m.empty()
		act := func(do func(b *broker.Broker)) func(*rapid.T) {
			return func(rt *rapid.T) {
				m.T = rt
				do(m.brokers[rapid.IntRange(0, 1).Draw(rt, "sidecar")])
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": act(m.create), "create again": act(m.create), "delete": act(m.delete), "update": act(m.update),
			"send": act(m.send), "send again": act(m.send), "receive": act(m.receive), "receive again": act(m.receive),
			"settle": act(m.settle), "settle what is lost": act(m.settleLost), "peek": act(m.peek), "count": act(m.count),
			"purge": act(m.purge), "delete by number": act(m.deleteByNumber), "resubmit": act(m.resubmit),
			"advance": func(rt *rapid.T) {
				m.T = rt
				m.advance(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Minute, 6 * time.Minute}).Draw(rt, "by"))
			},
			"look": func(rt *rapid.T) {
				m.T = rt
				m.look()
			},
		})
		m.T = rt
		m.endWell()
	})
}

func (m *staleModel) must(what string, err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("%s: %v", what, err)
	}
}

// isThere reports whether there is something to receive from. If not, it checks that a call has found nothing.
func (m *staleModel) isThere(what string, err error) bool {
	m.Helper()
	if m.partitions > 0 && (m.kind == semantics.QueueKind || m.isSubscribed) {
		m.must(what, err)
		return true
	}
	if semantics.CodeOf(err) != semantics.EntityNotFound {
		m.Fatalf("%s: %v, and nothing is there", what, err)
	}
	return false
}

func (m *staleModel) source() semantics.Source {
	if m.kind == semantics.TopicKind {
		return semantics.Source{Path: semantics.SubscriptionPath(staleName, "eu")}
	}
	return semantics.Source{Path: staleName}
}

func (m *staleModel) deadSource() semantics.Source {
	source := m.source()
	source.SubQueue = semantics.DeadLetterQueue
	return source
}

// sourceKind is that of what messages are received from.
func (m *staleModel) sourceKind() semantics.Kind {
	if m.kind == semantics.TopicKind {
		return semantics.SubscriptionKind
	}
	return m.kind
}

// empty forgets what a source had that is gone.
func (m *staleModel) empty() {
	for _, received := range m.held {
		m.lost = append(m.lost, received.LockToken)
	}
	m.free, m.dead, m.held = map[string]bool{}, map[string]bool{}, map[string]*semantics.Received{}
}

func (m *staleModel) create(b *broker.Broker) {
	ctx := m.t.Context()
	if m.partitions == 0 {
		m.kind = rapid.SampledFrom([]semantics.Kind{semantics.QueueKind, semantics.TopicKind}).Draw(m.T, "kind")
		options := semantics.Options{Partitions: rapid.SampledFrom([]int64{1, 2, 3, 5}).Draw(m.T, "partitions"), LockDuration: staleLock}
		names := []string{"partitions"}
		if m.kind == semantics.QueueKind {
			names = append(names, "lockDuration")
		}
		_, err := b.CreateEntity(ctx, m.kind, staleName, options, names)
		m.must("create", err)
		m.partitions = options.Partitions
	}
	if m.kind == semantics.QueueKind {
		return
	}
	_, err := b.CreateEntity(ctx, semantics.SubscriptionKind, m.source().Path, semantics.Options{LockDuration: staleLock}, []string{"lockDuration"})
	if m.isSubscribed && semantics.CodeOf(err) == semantics.EntityAlreadyExists {
		return
	}
	m.must("subscribe", err)
	m.isSubscribed = true
}

// delete deletes all, or only the subscription.
func (m *staleModel) delete(b *broker.Broker) {
	kind, path := m.kind, staleName
	if kind == semantics.TopicKind && rapid.Bool().Draw(m.T, "only the subscription") {
		kind, path = semantics.SubscriptionKind, m.source().Path
	}
	err := b.DeleteEntity(m.t.Context(), kind, path)
	if m.partitions == 0 || kind == semantics.SubscriptionKind && !m.isSubscribed {
		m.isThere("delete", err)
		return
	}
	m.must("delete", err)
	m.isSubscribed = false
	if kind != semantics.SubscriptionKind {
		m.partitions = 0
	}
	m.empty()
}

// update changes options of what messages are received from. What it has in all partitions, the audit compares.
func (m *staleModel) update(b *broker.Broker) {
	options := semantics.Options{
		Durability:       rapid.SampledFrom([]semantics.EntityDurability{semantics.AsSidecar, semantics.AtMemory}).Draw(m.T, "level"),
		MaxDeliveryCount: int64(rapid.IntRange(1000, 2000).Draw(m.T, "deliveries")),
	}
	names := []string{"durability", "maxDeliveryCount"}
	entity, err := b.UpdateEntity(m.t.Context(), m.sourceKind(), m.source().Path, options, names)
	if m.isThere("update", err) && (entity.Options.Durability != options.Durability || entity.Options.MaxDeliveryCount != options.MaxDeliveryCount) {
		m.Fatalf("updated to %+v, want %+v", entity.Options, options)
	}
	m.audit()
}

func (m *staleModel) send(b *broker.Broker) {
	target := semantics.ToQueue(staleName)
	if m.kind == semantics.TopicKind {
		target = semantics.ToTopic(staleName)
	}
	key := rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(m.T, "key")
	messages := make([]*semantics.Message, rapid.IntRange(1, 5).Draw(m.T, "messages"))
	for i := range messages {
		m.sent++
		messages[i] = &semantics.Message{MessageID: fmt.Sprint("m", m.sent), PartitionKey: key}
	}
	_, err := b.Send(m.t.Context(), target, messages)
	if m.partitions == 0 {
		m.isThere("send", err)
		return
	}
	m.must("send", err)
	for _, message := range messages {
		if m.kind == semantics.QueueKind || m.isSubscribed {
			m.free[message.MessageID] = true
		}
	}
}

func (m *staleModel) receive(b *broker.Broker) {
	limit := rapid.IntRange(1, 30).Draw(m.T, "limit")
	got, err := b.Receive(m.t.Context(), m.source(), broker.ReceiveOptions{MaxMessages: limit})
	if !m.isThere("receive", err) {
		return
	}
	if len(got.Messages) == 0 && len(m.free) > 0 || len(got.Messages) > limit {
		m.Fatalf("received %d messages of %d", len(got.Messages), len(m.free))
	}
	for _, received := range got.Messages {
		if !m.free[received.MessageID] {
			m.Fatalf("received %s, which is not there", received.MessageID)
		}
		delete(m.free, received.MessageID)
		m.held[received.MessageID], m.numbers = received, append(m.numbers, received.SequenceNumber)
	}
}

// settle settles some of what is held, whichever sidecar received it.
func (m *staleModel) settle(b *broker.Broker) {
	verb := rapid.SampledFrom([]string{"complete", "abandon", "dead-letter"}).Draw(m.T, "verb")
	ids := slices.Sorted(maps.Keys(m.held))
	ids = ids[:min(len(ids), rapid.IntRange(1, 4).Draw(m.T, "locks"))]
	if len(ids) == 0 {
		return
	}
	var tokens []semantics.LockToken
	for _, id := range ids {
		tokens = append(tokens, m.held[id].LockToken)
	}
	codes, err := m.settleBy(b, verb, tokens)
	m.must(verb, err)
	for i, id := range ids {
		if codes[i] != "" {
			m.Fatalf("%s of %s: %s", verb, id, codes[i])
		}
		delete(m.held, id)
		m.lost = append(m.lost, tokens[i])
		m.free[id], m.dead[id] = verb == "abandon", verb == "dead-letter"
	}
	keep := func(_ string, is bool) bool { return !is }
	maps.DeleteFunc(m.free, keep)
	maps.DeleteFunc(m.dead, keep)
}

func (m *staleModel) settleBy(b *broker.Broker, verb string, tokens []semantics.LockToken) ([]semantics.Code, error) {
	switch ctx := m.t.Context(); verb {
	case "abandon":
		return b.Abandon(ctx, m.source(), tokens, semantics.AbandonOptions{})
	case "dead-letter":
		return b.DeadLetter(ctx, m.source(), tokens, broker.DeadLetterOptions{})
	default:
		return b.Complete(ctx, m.source(), tokens)
	}
}

// settleLost settles nothing: the locks have ended, or are of an entity that is gone.
func (m *staleModel) settleLost(b *broker.Broker) {
	if len(m.lost) == 0 {
		return
	}
	first := rapid.IntRange(0, len(m.lost)-1).Draw(m.T, "first")
	tokens := m.lost[first:min(first+4, len(m.lost))]
	codes, err := m.settleBy(b, rapid.SampledFrom([]string{"complete", "abandon", "dead-letter"}).Draw(m.T, "verb"), tokens)
	if !m.isThere("settle", err) {
		return
	}
	for _, code := range codes {
		if code != semantics.MessageLockLost {
			m.Fatalf("settling by a lock that has ended: %q", code)
		}
	}
}

// rows returns all messages of a source, by pages.
func (m *staleModel) rows(b *broker.Broker, source semantics.Source, page int) (all []*semantics.Received, err error) {
	for from := int64(1); ; {
		some, err := b.Peek(m.t.Context(), source, from, page, semantics.ShowAll)
		if err != nil || len(some) == 0 {
			return all, err
		}
		all, from = append(all, some...), some[len(some)-1].SequenceNumber+1
	}
}

func (m *staleModel) peek(b *broker.Broker) {
	page := rapid.SampledFrom([]int{1, 3, 250}).Draw(m.T, "page")
	rows, err := m.rows(b, m.source(), page)
	if m.isThere("peek", err) {
		m.wantRows("messages", rows, slices.Collect(maps.Keys(m.free)), slices.Collect(maps.Keys(m.held)))
	}
	rows, err = m.rows(b, m.deadSource(), page)
	if m.isThere("peek at dead letters", err) {
		m.wantRows("dead letters", rows, slices.Collect(maps.Keys(m.dead)))
	}
	// A position that this sidecar may not know.
	if len(m.numbers) > 0 {
		from := rapid.SampledFrom(m.numbers).Draw(m.T, "from")
		some, err := b.Peek(m.t.Context(), m.source(), from, 250, semantics.ShowAll)
		if m.isThere("peek from a number", err) {
			all, err := m.rows(b, m.source(), 250)
			m.must("peek", err)
			all = slices.DeleteFunc(all, func(r *semantics.Received) bool { return r.SequenceNumber < from })
			if len(some) != len(all) {
				m.Fatalf("%d messages from number %d on, want %d", len(some), from, len(all))
			}
		}
	}
}

func (m *staleModel) wantRows(what string, rows []*semantics.Received, want ...[]string) {
	m.Helper()
	var ids []string
	for _, row := range rows {
		ids = append(ids, row.MessageID)
	}
	slices.Sort(ids)
	if all := slices.Sorted(slices.Values(slices.Concat(want...))); !slices.Equal(ids, all) {
		m.Fatalf("%s %v, want %v", what, ids, all)
	}
}

func (m *staleModel) count(b *broker.Broker) {
	counts, err := b.Runtime(m.t.Context(), m.sourceKind(), m.source().Path)
	if !m.isThere("count", err) {
		return
	}
	got, want := []int64{counts.Available, counts.Locked, counts.DeadLetter}, []int64{int64(len(m.free)), int64(len(m.held)), int64(len(m.dead))}
	if !slices.Equal(got, want) {
		m.Fatalf("counts %v, want %v", got, want)
	}
}

func (m *staleModel) purge(b *broker.Broker) {
	m.advance(time.Millisecond) // what is older is purged
	_, err := b.Purge(m.t.Context(), m.source(), broker.PurgeOptions{})
	if m.isThere("purge", err) {
		m.free = map[string]bool{}
	}
}

// deleteByNumber deletes by numbers of what is there now and of what was there once.
func (m *staleModel) deleteByNumber(b *broker.Broker) {
	rows, err := m.rows(m.brokers[0], m.source(), 250)
	isThere := m.isThere("peek", err)
	present, numbers := map[int64]string{}, []int64{}
	for _, row := range rows {
		present[row.SequenceNumber] = row.MessageID
		if rapid.Bool().Draw(m.T, "delete") {
			numbers = append(numbers, row.SequenceNumber)
		}
	}
	if len(m.numbers) > 0 {
		numbers = append(numbers, rapid.SampledFrom(m.numbers).Draw(m.T, "old number"))
	}
	slices.Sort(numbers)
	if numbers = slices.Compact(numbers); len(numbers) == 0 {
		return
	}
	codes, err := b.DeleteBySequence(m.t.Context(), m.source(), numbers)
	if m.isThere("delete by number", err) != isThere || !isThere {
		return
	}
	for i, number := range numbers {
		if id := present[number]; (codes[i] == "") != m.free[id] {
			m.Fatalf("deleting %d, which is %q: %q", number, id, codes[i])
		}
		delete(m.free, present[number])
	}
}

// resubmit sends dead letters again to where they were.
func (m *staleModel) resubmit(b *broker.Broker) {
	results, more, err := b.Resubmit(m.t.Context(), m.deadSource(), broker.ResubmitOptions{})
	if !m.isThere("resubmit", err) {
		return
	}
	if more || len(results) != len(m.dead) {
		m.Fatalf("resubmitted %d of %d dead letters", len(results), len(m.dead))
	}
	maps.Copy(m.free, m.dead)
	m.dead = map[string]bool{}
}

func (m *staleModel) advance(d time.Duration) {
	m.clock.Advance(d)
	for id, received := range m.held {
		if !received.LockedUntil.After(m.clock.Now()) {
			delete(m.held, id)
			m.free[id], m.lost = true, append(m.lost, received.LockToken)
		}
	}
}

// look lets a sidecar look at all entities.
func (m *staleModel) look() {
	m.advance(2 * time.Minute)
	i := rapid.IntRange(0, 1).Draw(m.T, "sidecar")
	_, err := m.below[i].LookOnce(m.t.Context(), m.brokers[i], func(entity string, err error) { m.Fatalf("%s: %v", entity, err) })
	m.must("look", err)
}

func (m *staleModel) audit() {
	m.Helper()
	m.must("audit", m.auditor.AuditAll(m.t.Context()))
}

// endWell lets the sidecars receive all that is left, in turn, and looks for each message.
func (m *staleModel) endWell() {
	m.peek(m.brokers[0])
	m.peek(m.brokers[1])
	if m.partitions > 0 && (m.kind == semantics.QueueKind || m.isSubscribed) {
		m.resubmit(m.brokers[0])
		m.advance(2 * staleLock)
		for turn := 1; len(m.free) > 0; turn++ {
			b := m.brokers[turn%2]
			m.receive(b)
			for len(m.held) > 0 {
				m.completeAll(m.brokers[(turn+1)%2])
			}
		}
		m.count(m.brokers[1])
	}
	m.audit()
	for range 2 {
		m.look()
	}
	m.audit()
}

func (m *staleModel) completeAll(b *broker.Broker) {
	var tokens []semantics.LockToken
	for _, received := range m.held {
		tokens = append(tokens, received.LockToken)
	}
	codes, err := b.Complete(m.t.Context(), m.source(), tokens)
	m.must("complete", err)
	if slices.ContainsFunc(codes, func(code semantics.Code) bool { return code != "" }) {
		m.Fatalf("complete: %v", codes)
	}
	m.held = map[string]*semantics.Received{}
}
