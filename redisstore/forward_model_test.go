package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// forwardModel is a chain of forwards, eu of the topic news to in to mid to out, in the executable specification and in
// Redis. Brokers forward, in slices of any size, and die between any two steps of a transfer.
type forwardModel struct {
	*topicModel
	brokers [2]*broker.Broker
	dying   [2]*dyingStore
	links   map[string]int64 // how many partitions the queues have; without one 1
	known   map[string]bool  // messages that were sent, by id
	done    map[string]bool  // those that were completed
}

// chain are the queues that forward, or may; dead letters of out go to attic.
var chain = []string{"in", "mid", "out", "attic"}

// forwarding are the sources that a forwarder may be called for.
var forwarding = []semantics.Source{
	of("eu"), {Path: "in"}, {Path: "mid"}, {Path: "out"}, {Path: "out", SubQueue: semantics.DeadLetterQueue},
}

// dyingStore takes slices of a transfer, and fails from one of its steps on: before that step is carried out, or after.
type dyingStore struct {
	partitioned.Below
	limit int  // of a transfer; 0: as it comes
	left  int  // steps until it dies; 0: it does not
	after bool // the last step is carried out, and its answer is lost
}

func (s *dyingStore) step(do func()) error {
	if s.left < 0 {
		return errGone
	}
	if s.left > 0 {
		if s.left--; s.left == 0 {
			if s.left = -1; s.after {
				do()
			}
			return errGone
		}
	}
	do()
	return nil
}

var errGone = semantics.Errorf(semantics.StoreUnavailable, "the forwarder is gone")

func (s *dyingStore) BeginTransfer(ctx context.Context, source semantics.Source, to semantics.Destination, limit int) (t semantics.Transfer, err error) {
	if s.limit > 0 {
		limit = min(limit, s.limit)
	}
	if gone := s.step(func() { t, err = s.Below.BeginTransfer(ctx, source, to, limit) }); gone != nil {
		return semantics.Transfer{}, gone
	}
	return t, err
}

func (s *dyingStore) Arrive(ctx context.Context, transfer semantics.Transfer, version int64, messages []semantics.Publication, isLast bool) (a []semantics.Arrival, err error) {
	if gone := s.step(func() { a, err = s.Below.Arrive(ctx, transfer, version, messages, isLast) }); gone != nil {
		return nil, gone
	}
	return a, err
}

func (s *dyingStore) EndTransfer(ctx context.Context, transfer semantics.Transfer, fates []semantics.Fate) (err error) {
	if gone := s.step(func() { err = s.Below.EndTransfer(ctx, transfer, fates) }); gone != nil {
		return gone
	}
	return err
}

// TestForwardModel forwards along a chain on both stores and compares all that a client can see after each step. In the
// end each message is in one place. `-rapid.checks=N` runs more.
func TestForwardModel(t *testing.T) {
	t.Parallel()
	runForwardModel(t, nil)
}

// The same holds when queues have several partitions, before and behind others and those with one. Then a transfer
// takes a step in each partition, and forwarders crash between any two.
func TestForwardModelOfPartitions(t *testing.T) {
	t.Parallel()
	runForwardModel(t, map[string]int64{"in": 2, "mid": 3, "attic": 2})
}

func runForwardModel(t *testing.T, links map[string]int64) {
	t.Helper()
	raw := redistest.Client(t, redistest.URL(t))
	rapid.Check(t, func(rt *rapid.T) {
		m := &forwardModel{topicModel: openTopicModel(t, rt, raw), links: links, known: map[string]bool{}, done: map[string]bool{}}
		for i, s := range m.stores {
			m.dying[i] = &dyingStore{Below: s.(partitioned.Below)}
			m.stores[i] = partitioned.New(m.dying[i].Below)
			m.brokers[i] = brokerOver(partitioned.New(m.dying[i]))
			defer m.brokers[i].Close()
		}
		m.createChain()
		rt.Repeat(map[string]func(*rapid.T){
			"": m.checkChainNow, "send": m.send, "send again": m.send, "forward": m.forward, "forward again": m.forward,
			"forwarder dies": m.forwarderDies, "forwarder dies again": m.forwarderDies, "take": m.takeSome, "update": m.updateChain,
			"advance": func(rt *rapid.T) { m.advanceTime(rt) },
		})
		m.T = rt
		m.endWell()
	})
}

func (m *forwardModel) createChain() {
	options := semantics.DefaultOptions()
	options.MaxMessageSizeInKilobytes = 1024
	m.both("create", func(_ int, s semantics.Store) (any, error) {
		for i, path := range chain {
			o := options
			o.Partitions = max(1, m.links[path])
			if i < 2 {
				o.ForwardTo = chain[i+1]
			}
			if path == "out" {
				o.ForwardDeadLetteredMessagesTo = "attic"
			}
			if _, _, err := s.CreateEntity(m.t.Context(), semantics.QueueKind, path, o); err != nil {
				return nil, err
			}
		}
		if err := createTopic(m.t, s, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1024 }); err != nil {
			return nil, err
		}
		return nil, subscribe(m.t, s, "eu", func(o *semantics.Options) { o.ForwardTo = "in" })
	})
}

// send sends messages of one size to the first queue or to the topic.
func (m *forwardModel) send(rt *rapid.T) {
	m.T = rt
	n := storetest.LogUniform(m.many(300, 3, "messages")).Draw(rt, "messages")
	body := make([]byte, storetest.LogUniform(mostCallBytes/n).Draw(rt, "size"))
	target := rapid.SampledFrom([]semantics.Target{semantics.ToQueue("in"), semantics.ToTopic("news")}).Draw(rt, "target")
	key := rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(rt, "key")
	first := m.sent
	m.sent += n
	m.both("send", func(i int, _ semantics.Store) (any, error) {
		messages := make([]*semantics.Message, n)
		for j := range messages {
			messages[j] = &semantics.Message{MessageID: fmt.Sprint("m", first+j), Body: body, PartitionKey: key}
		}
		_, err := m.brokers[i].Send(m.t.Context(), target, messages)
		for _, message := range messages {
			m.known[message.MessageID] = err == nil
		}
		return nil, err
	})
}

// forwardOn has a forwarder of both stores carry on, alive or dying.
func (m *forwardModel) forwardOn(source semantics.Source, limit, left int, after bool) {
	m.both("forward "+source.String(), func(i int, _ semantics.Store) (any, error) {
		m.dying[i].limit, m.dying[i].left, m.dying[i].after = limit, left, after
		err := m.brokers[i].Forward(m.t.Context(), source)
		m.dying[i].limit, m.dying[i].left = 0, 0
		return nil, err
	})
}

func (m *forwardModel) forward(rt *rapid.T) {
	m.T = rt
	source := rapid.SampledFrom(forwarding).Draw(rt, "source")
	m.forwardOn(source, storetest.LogUniform(100).Draw(rt, "limit"), 0, false)
}

func (m *forwardModel) forwarderDies(rt *rapid.T) {
	m.T = rt
	source := rapid.SampledFrom(forwarding).Draw(rt, "source")
	m.forwardOn(source, storetest.LogUniform(100).Draw(rt, "limit"), rapid.IntRange(1, 7).Draw(rt, "steps"), rapid.Bool().Draw(rt, "after"))
}

// takeSome receives from where the chain ends, and settles.
func (m *forwardModel) takeSome(rt *rapid.T) {
	m.T = rt
	source := semantics.Source{Path: rapid.SampledFrom(chain[1:]).Draw(rt, "from")}
	limit := storetest.LogUniform(100).Draw(rt, "limit")
	verb := rapid.SampledFrom([]string{"complete", "dead-letter", "abandon", "keep"}).Draw(rt, "verb")
	m.both("take "+verb, func(_ int, s semantics.Store) (any, error) {
		ctx := m.t.Context()
		batch, err := s.Receive(ctx, source, limit, semantics.RegisterNever)
		if err != nil || len(batch.Messages) == 0 {
			return nil, err
		}
		var tokens []semantics.LockToken
		var ids []string
		for _, received := range batch.Messages {
			tokens, ids = append(tokens, received.LockToken), append(ids, received.MessageID)
		}
		var codes []semantics.Code
		switch verb {
		case "complete":
			codes, err = s.Complete(ctx, source, tokens)
			for _, id := range ids {
				m.done[id] = true
			}
		case "dead-letter":
			codes, err = s.DeadLetter(ctx, source, tokens, semantics.DeadLetterTexts{}, nil)
		case "abandon":
			codes, err = s.Abandon(ctx, source, tokens, semantics.AbandonOptions{})
		}
		return []any{ids, codes}, err
	})
}

// updateChain changes where a queue forwards to, in a circle too, or what the next one takes.
func (m *forwardModel) updateChain(rt *rapid.T) {
	m.T = rt
	path, options, name := rapid.SampledFrom(chain[1:3]).Draw(rt, "path"), semantics.DefaultOptions(), ""
	switch name = rapid.SampledFrom([]string{"forwardTo", "status", "maxMessageCount", "maxMessageSizeInKilobytes"}).Draw(rt, "option"); name {
	case "forwardTo":
		options.ForwardTo = rapid.SampledFrom([]string{"", "in", "out", "attic"}).Filter(func(to string) bool { return to != path }).Draw(rt, "to")
	case "status":
		options.Status = rapid.SampledFrom([]semantics.Status{semantics.StatusActive, semantics.StatusActive, semantics.StatusSendDisabled}).Draw(rt, "status")
	case "maxMessageCount":
		options.MaxMessageCount = rapid.SampledFrom([]int64{0, 0, 20}).Draw(rt, "most")
	default:
		options.MaxMessageSizeInKilobytes = rapid.SampledFrom([]int64{1, 1024, 1024}).Draw(rt, "size")
	}
	m.both("update", func(_ int, s semantics.Store) (any, error) {
		entity, err := s.UpdateEntity(m.t.Context(), semantics.QueueKind, path, options, []string{name})
		entity.Incarnation = 0 // which every store chooses
		return entity, err
	})
}

func (m *forwardModel) advanceTime(rt *rapid.T) {
	m.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 1000, 61_000}).Draw(rt, "ms")) * time.Millisecond)
}

// places are all where a message may be.
func places() (all []semantics.Source) {
	for _, path := range append([]string{of("eu").Path}, chain...) {
		for _, side := range []semantics.SubQueue{semantics.MainQueue, semantics.DeadLetterQueue, semantics.TransferDeadLetterQueue} {
			all = append(all, semantics.Source{Path: path, SubQueue: side})
		}
	}
	return all
}

func (m *forwardModel) checkChainNow(rt *rapid.T) {
	m.T = rt
	if m.steps++; m.steps%4 == 0 {
		m.checkChain()
	}
}

// checkChain compares all that can be seen, and looks into what Redis keeps.
func (m *forwardModel) checkChain() {
	for _, source := range places() {
		m.both("peek at "+source.String(), func(_ int, s semantics.Store) (any, error) { return m.rows(s, source) })
	}
	for _, path := range chain {
		m.both("counts of "+path, func(_ int, s semantics.Store) (any, error) {
			return s.Runtime(m.t.Context(), semantics.QueueKind, path)
		})
	}
	kept := []string{"news"}
	for _, path := range chain {
		if m.links[path] <= 1 {
			kept = append(kept, path)
		}
		for p := range int(m.links[path]) {
			kept = append(kept, m.stores[1].(*partitioned.Store).Path(path, p))
		}
	}
	for _, path := range kept {
		if err := m.auditor.Audit(m.t.Context(), path); err != nil {
			m.Fatal(err)
		}
	}
}

// endWell lets forwarders that live finish, and looks for each message.
func (m *forwardModel) endWell() {
	for range 2 * semantics.MaxForwardHops {
		for _, source := range forwarding {
			m.forwardOn(source, 0, 0, false)
		}
	}
	m.checkChain()
	found := map[string]int{}
	for _, source := range places() {
		rows, err := m.rows(m.stores[1], source)
		if err != nil {
			m.Fatal(err)
		}
		for _, row := range rows {
			found[row.MessageID]++
		}
	}
	for id, isKnown := range m.known {
		if n := found[id]; n > 1 || n == 1 != (isKnown && !m.done[id]) {
			m.Errorf("message %s is in %d places, sent %t, completed %t", id, n, isKnown, m.done[id])
		}
	}
}
