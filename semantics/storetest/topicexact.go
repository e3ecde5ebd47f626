package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var topicExactTests = []ruleTest{
	testTOPIC_4_OnlyMessagesAfterTheSubscription,
	testTOPIC_4_OnlyMessagesAfterTheRule,
	testTOPIC_4_StoredCopiesStay,
	testTOPIC_4_AnotherSidecarsChangesAreSeenAtOnce,
	testTOPIC_4_TopicMadeAnewBySomebodyElse,
	testTOPIC_4_EveryChangeGivesAnotherVersion,
	testTOPIC_4_StaleDecisionIsNotCarriedOut,
	testTOPIC_4_RulesAmongConcurrentSends,
	testTOPIC_4_SubscriptionsAmongConcurrentSends,
	testTOPIC_4_ReplacedRuleLosesNothing,
	testTOPIC_4_RoutesAreWhatIsThere,
}

func testTOPIC_4_OnlyMessagesAfterTheSubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.publishTexts("a")
	h.createSubscription(eu)
	h.publishTexts("b")
	h.createSubscription(us)
	h.publishTexts("c")
	h.wantIDs(eu, "b", "c")
	h.wantIDs(us, "c")
}

func testTOPIC_4_OnlyMessagesAfterTheRule(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, nil)
	h.publishTexts("a")
	h.createRule(eu, always("all"))
	h.publishTexts("b")
	h.deleteRule(eu, "all")
	h.publishTexts("c")
	h.createRule(eu, onSubject("some", "sport"))
	h.publish(text("d"), about("sport", text("e")))
	h.wantIDs(eu, "b", "e")
}

func testTOPIC_4_StoredCopiesStay(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f"), always("all"), doing(always("do"), "SET x = 1")})
	h.publish(counting(0, text("a")))
	before := h.peek(eu)
	for _, name := range []string{"f", "all", "do"} {
		h.deleteRule(eu, name)
	}
	h.createRule(eu, doing(always("do"), "SET x = 2"))
	h.updateSubscription(eu, dropsFailures, "deadLetteringOnFilterEvaluationExceptions")
	h.same(h.peek(eu), before)
	h.wantIDs(deadEU, "a")
}

func testTOPIC_4_AnotherSidecarsChangesAreSeenAtOnce(t *testing.T, h *fixture) {
	brokers := h.sidecars()
	here, there := brokers[0], brokers[len(brokers)-1]
	h.createTopic()
	h.createSubscriptionWith(eu, nil)
	h.publishBy(there, text("a")) // now it knows the rules
	h.publishBy(here, text("b"))
	h.createRule(eu, always("all"))
	h.publishBy(there, text("c"))
	h.ok(there.DeleteRule(t.Context(), eu.Path, "all"))
	h.publishBy(here, text("d"))
	h.createSubscription(us)
	h.publishBy(there, text("e"))
	h.ok(there.DeleteEntity(t.Context(), semantics.SubscriptionKind, us.Path))
	h.publishBy(here, text("f"))
	h.createSubscription(us)
	h.publishBy(there, text("g"))
	h.wantIDs(eu, "c")
	h.wantIDs(us, "g")
}

func testTOPIC_4_TopicMadeAnewBySomebodyElse(_ *testing.T, h *fixture) {
	brokers := h.sidecars()
	there := brokers[len(brokers)-1]
	for i := range 5 { // as many changes each time, so that a count alone would be the same
		h.createTopic()
		name := fmt.Sprint("s", i)
		h.createSubscription(subscription(name))
		h.same(h.publishBy(there, text("a")), []semantics.Stored{stored(1)})
		h.wantIDs(subscription(name), "a")
		h.deleteTopic()
	}
	h.wantCode(second(there.Send(h.t.Context(), semantics.ToTopic(news), []*semantics.Message{text("b")})), semantics.EntityNotFound)
}

func (h *fixture) routes() semantics.Routes {
	h.t.Helper()
	routes, err := h.Store.Routes(h.t.Context(), news)
	h.ok(err)
	return routes
}

func testTOPIC_4_EveryChangeGivesAnotherVersion(_ *testing.T, h *fixture) {
	h.createTopic()
	option := "deadLetteringOnFilterEvaluationExceptions"
	seen := map[int64]string{h.routes().Version: "creation"}
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"a subscription", func() { h.createSubscription(eu) }},
		{"one without rules", func() { h.createSubscriptionWith(us, nil) }},
		{"a rule", func() { h.createRule(us, always("all")) }},
		{"the end of a rule", func() { h.deleteRule(us, "all") }},
		{"failures dropped", func() { h.updateSubscription(eu, dropsFailures, option) }},
		{"failures dead-lettered", func() {
			h.updateSubscription(eu, func(o *semantics.Options) { o.DeadLetteringOnFilterEvaluationExceptions = true }, option)
		}},
		{"the end of a subscription", func() { h.deleteSubscription(eu) }},
		{"the same one again", func() { h.createSubscription(eu) }},
		{"the same topic again", func() { h.deleteTopic(); h.createTopic() }},
		{"and its subscription", func() { h.createSubscription(eu) }},
	} {
		change.do()
		version := h.routes().Version
		if of, was := seen[version]; was {
			h.t.Errorf("after %s the version is that after %s", change.what, of)
		}
		seen[version] = change.what
	}
}

func testTOPIC_4_StaleDecisionIsNotCarriedOut(t *testing.T, h *fixture) {
	h.createTopic(detectsDuplicates)
	h.createSubscription(eu)
	h.publish(later("scheduled", h.in(ms)))
	h.Advance(ms)
	stale := h.routes().Version
	h.createRule(eu, always("all"))
	before := h.topicSnapshot()
	one := func(id string) semantics.Publication {
		return semantics.Publication{Message: text(id), Copies: []semantics.Copy{{Subscription: "eu", Message: text(id)}}}
	}
	for _, version := range []int64{stale, 0, -1, h.routes().Version + 1} {
		for _, o := range h.Store.Publish(t.Context(), news, version, [][]semantics.Publication{{one("a"), one("b")}, {one("c")}}) {
			if !errors.Is(o.Err, semantics.ErrRoutesChanged) {
				t.Errorf("version %d: got %v", version, o)
			}
		}
		err := h.Store.Activate(t.Context(), news, version, []semantics.Activation{{SequenceNumber: 1, Publication: one("scheduled")}})
		if !errors.Is(err, semantics.ErrRoutesChanged) {
			t.Errorf("version %d: activation returned %v", version, err)
		}
	}
	h.same(h.topicSnapshot(), before)
	outcomes := h.Store.Publish(t.Context(), news, h.routes().Version, [][]semantics.Publication{{one("a"), one("b")}, {one("c")}})
	h.same(outcomes, []semantics.SendOutcome{{Stored: []semantics.Stored{stored(2), stored(3)}}, {Stored: []semantics.Stored{stored(4)}}})
	h.wantIDs(eu, "a", "b", "c")
}

// traffic is messages on their way to news through every sidecar while a test changes what they are selected by. The
// test counts up the phase before and after each change: even phases are quiet, and what was sent within one of them
// was sent when nothing changed.
type traffic struct {
	h     *fixture
	phase atomic.Int64
	wants chan struct{}  // a message to be sent each
	sends sync.WaitGroup // those that were wanted and have not been sent yet

	mu     sync.Mutex
	within map[string]int64 // by id: the quiet phase, for messages that saw only that
	ids    int              // all that were sent
}

const (
	senders      = 4
	ofQuietPhase = 8  // messages
	ofStirring   = 12 // messages that may meet a change
)

// newTraffic makes traffic whose first phase is not quiet.
func (h *fixture) newTraffic() *traffic {
	f := &traffic{h: h, wants: make(chan struct{}, ofQuietPhase+ofStirring), within: map[string]int64{}}
	f.phase.Store(-1)
	return f
}

// run sends until change has returned.
func (f *traffic) run(change func()) {
	f.h.t.Helper()
	brokers := f.h.sidecars()
	var work sync.WaitGroup
	defer work.Wait()
	defer close(f.wants)
	for s := range senders {
		work.Go(func() {
			i := 0
			for range f.wants {
				f.send(brokers[s%len(brokers)], fmt.Sprintf("%d/%d", s, i))
				f.sends.Done()
				i++
			}
		})
	}
	change()
}

func (f *traffic) send(broker *broker.Broker, id string) {
	before := f.phase.Load()
	if _, err := broker.Send(f.h.t.Context(), semantics.ToTopic(news), []*semantics.Message{text(id)}); err != nil {
		f.h.t.Error(err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	if before%2 == 0 && f.phase.Load() == before {
		f.within[id] = before
	}
}

func (f *traffic) want(n int) {
	f.sends.Add(n)
	for range n {
		f.wants <- struct{}{}
	}
}

// rest is a quiet phase. It lasts until its messages, and those of the phase before, have been sent.
func (f *traffic) rest() {
	f.phase.Add(1)
	f.want(ofQuietPhase)
	f.sends.Wait()
}

// stir begins a phase in which something changes while messages are sent.
func (f *traffic) stir() {
	f.phase.Add(1)
	f.want(ofStirring)
}

// wantExactly checks that of the messages that saw only one quiet phase those of some phases have a copy, and no
// others.
func (f *traffic) wantExactly(got []*semantics.Received, chosen func(phase int64) bool) {
	f.h.t.Helper()
	copies := map[string]int{}
	for _, m := range got {
		if copies[m.MessageID]++; copies[m.MessageID] > 1 {
			f.h.t.Errorf("message %s has %d copies", m.MessageID, copies[m.MessageID])
		}
	}
	for id, phase := range f.within {
		if want := btoi(chosen(phase)); copies[id] != want {
			f.h.t.Errorf("message %s of phase %d has %d copies, want %d", id, phase, copies[id], want)
		}
	}
}

// takeAll receives all there is, call by call.
func (h *fixture) takeAll(source semantics.Source) (all []*semantics.Received) {
	h.t.Helper()
	for {
		got := h.receive(source, semantics.MaxReceiveMessages)
		if len(got) == 0 {
			return all
		}
		all = append(all, got...)
	}
}

// Each round has four phases: without the rule, its making, with it, its end.
func testTOPIC_4_RulesAmongConcurrentSends(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, nil)
	h.createSubscription(us)
	f := h.newTraffic()
	f.run(func() {
		for range 8 {
			f.rest()
			f.stir()
			h.createRule(eu, always("all"))
			f.rest()
			f.stir()
			h.deleteRule(eu, "all")
		}
		f.rest()
	})
	f.wantExactly(h.takeAll(eu), func(phase int64) bool { return phase%4 == 2 })
	all := h.takeAll(us) // which nothing has changed for
	f.wantExactly(all, func(int64) bool { return true })
	h.same(len(all), f.ids)
}

// As above, but it is the subscription that comes and goes. What it got is looked at before it goes.
func testTOPIC_4_SubscriptionsAmongConcurrentSends(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(us)
	f := h.newTraffic()
	lives := map[int64][]*semantics.Received{} // by quiet phase
	f.run(func() {
		for range 6 {
			f.rest()
			f.stir()
			h.createSubscription(eu)
			f.rest()
			life := f.phase.Load()
			f.stir()
			lives[life] = h.takeAll(eu)
			h.deleteSubscription(eu)
		}
	})
	for life, got := range lives {
		f.wantExactly(got, func(phase int64) bool { return phase == life })
	}
	h.same(len(h.takeAll(us)), f.ids)
}

// A rule is created before the one that it replaces is deleted, as one does who must not miss anything.
func testTOPIC_4_ReplacedRuleLosesNothing(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{always("0")})
	f := h.newTraffic()
	f.run(func() {
		for i := range 20 {
			f.stir()
			h.createRule(eu, always(fmt.Sprint(i+1)))
			h.deleteRule(eu, fmt.Sprint(i))
			f.rest()
		}
	})
	got := h.takeAll(eu)
	f.wantExactly(got, func(int64) bool { return true })
	h.same(len(got), f.ids) // each of those that met a change as well
}

func testTOPIC_4_RoutesAreWhatIsThere(_ *testing.T, h *fixture) {
	h.createTopic()
	h.same(h.routes().Subscriptions, []semantics.Route(nil))
	sql := onSQL("sql", "n > @least")
	sql.Filter.SQL.Parameters = map[string]semantics.Value{"least": semantics.Int64(5)}
	sql = doing(sql, "SET x = 1")
	h.createSubscriptionWith(subscription("US-West"), []semantics.Rule{sql, everything}, hasSessions, dropsFailures)
	h.createSubscriptionWith(subscription("eu"), nil)
	sql.CreatedAt = h.Now()
	all := everything
	all.CreatedAt = h.Now()
	want := map[string]semantics.Route{
		"us-west": {Subscription: "us-west", RequiresSession: true, Rules: []semantics.Rule{all, sql}},
		"eu":      {Subscription: "eu", DeadLettersFailures: true},
	}
	got := map[string]semantics.Route{}
	for _, route := range h.routes().Subscriptions {
		slicesSortRules(route.Rules)
		got[route.Subscription] = route
	}
	h.same(got, want)
	h.wantCode(second(h.Store.Routes(h.t.Context(), "missing")), semantics.EntityNotFound)
	h.create()
	h.wantCode(second(h.Store.Routes(h.t.Context(), orders.Path)), semantics.EntityNotFound)
}
