package semantics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakeRule selects every message, unless it is told otherwise.
type fakeRule struct {
	no     bool
	fails  error
	act    func(m *Message) error // nil: no action
	looked *int                   // counts Matches; nil: nobody counts
}

func (r fakeRule) Matches(*Message) (bool, error) {
	if r.looked != nil {
		*r.looked++
	}
	return !r.no && r.fails == nil, r.fails
}

func (r fakeRule) HasAction() bool { return r.act != nil }

func (r fakeRule) Act(m *Message) (*Message, error) {
	changed := *m
	if err := r.act(&changed); err != nil {
		return nil, err
	}
	return &changed, nil
}

func (r fakeRule) Warnings() []string { return nil }

var (
	plain      = fakeRule{}
	misses     = fakeRule{no: true}
	acts       = fakeRule{act: func(m *Message) error { m.Subject += "!"; return nil }}
	missesActs = fakeRule{no: true, act: acts.act}
	fails      = fakeRule{fails: errors.New("the filter failed")}
	failsToAct = fakeRule{act: func(m *Message) error { m.Subject = "half done"; return errors.New("the action failed") }}
)

// routeTo is the route of one subscription with the rules given.
func routeTo(name string, rules ...CompiledRule) compiledRoute {
	return compiledRoute{Route: Route{Subscription: name, DeadLettersFailures: true}, rules: rules}
}

// shown gives copies as text: the subscription, the subject, and of a dead letter the reason.
func shown(copies []Copy) (all []string) {
	for _, c := range copies {
		text := c.Subscription + ":" + c.Message.Subject
		if c.DeadLetter != nil {
			text += " " + *c.DeadLetter.Reason
		}
		all = append(all, text)
	}
	return all
}

func wantCopies(t *testing.T, got []Copy, want ...string) {
	t.Helper()
	if s := shown(got); !slices.Equal(s, want) {
		t.Errorf("got the copies %q, want %q", s, want)
	}
}

func TestTOPIC_5_CopiesOfOneSubscription(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules []CompiledRule
		want  []string
	}{
		"no rules":                         {nil, nil},
		"one plain":                        {[]CompiledRule{plain}, []string{"eu:a"}},
		"three plain and two with actions": {[]CompiledRule{plain, plain, acts, plain, acts}, []string{"eu:a", "eu:a!", "eu:a!"}},
		"only actions":                     {[]CompiledRule{acts, acts, acts}, []string{"eu:a!", "eu:a!", "eu:a!"}},
		"those that miss make none":        {[]CompiledRule{misses, acts, missesActs, misses, plain}, []string{"eu:a!", "eu:a"}},
		"none that selects":                {[]CompiledRule{misses, missesActs}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := &Message{Subject: "a"}
			r := &router{routes: []compiledRoute{routeTo("eu", c.rules...)}}
			got := r.copies(sent)
			wantCopies(t, got, c.want...)
			if sent.Subject != "a" {
				t.Errorf("the message was changed: %q", sent.Subject)
			}
			for _, copied := range got {
				if copied.Message.Subject == "a" && copied.Message != sent {
					t.Error("a copy without action is not the message itself")
				}
			}
		})
	}
}

func TestTOPIC_1_CopiesOfManySubscriptions(t *testing.T) {
	t.Parallel()
	r := &router{routes: []compiledRoute{routeTo("a", plain), routeTo("b", misses), routeTo("c", acts, plain), routeTo("d")}}
	wantCopies(t, r.copies(&Message{Subject: "x"}), "a:x", "c:x!", "c:x")
}

func TestRULE_8_Failures(t *testing.T) {
	t.Parallel()
	letter := "eu:a FilterEvaluationException"
	for name, c := range map[string]struct {
		rules   []CompiledRule
		on, off []string // with DeadLetteringOnFilterEvaluationExceptions and without
	}{
		"a filter":                 {[]CompiledRule{fails}, []string{letter}, nil},
		"an action":                {[]CompiledRule{failsToAct}, []string{letter}, nil},
		"many":                     {[]CompiledRule{fails, failsToAct, fails, misses}, []string{letter}, nil},
		"before those that select": {[]CompiledRule{fails, plain, acts}, []string{"eu:a", "eu:a!", letter}, []string{"eu:a", "eu:a!"}},
		"behind those that select": {[]CompiledRule{plain, acts, fails}, []string{"eu:a", "eu:a!", letter}, []string{"eu:a", "eu:a!"}},
		"among plain ones":         {[]CompiledRule{plain, fails, plain}, []string{"eu:a", letter}, []string{"eu:a"}},
		"an action behind plain":   {[]CompiledRule{plain, failsToAct}, []string{"eu:a", letter}, []string{"eu:a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := routeTo("eu", c.rules...)
			wantCopies(t, to.appendCopies(nil, &Message{Subject: "a"}), c.on...)
			to.DeadLettersFailures = false
			wantCopies(t, to.appendCopies(nil, &Message{Subject: "a"}), c.off...)
		})
	}
}

func TestRULE_8_OtherSubscriptionsGoOn(t *testing.T) {
	t.Parallel()
	r := &router{routes: []compiledRoute{routeTo("a", fails), routeTo("b", plain), routeTo("c", failsToAct), routeTo("d", acts)}}
	wantCopies(t, r.copies(&Message{Subject: "x"}),
		"a:x FilterEvaluationException", "b:x", "c:x FilterEvaluationException", "d:x!")
}

func TestDLQ_11_LetterTellsOfTheFirstFailure(t *testing.T) {
	t.Parallel()
	sent := &Message{Subject: "a"}
	to := routeTo("eu", misses, failsToAct, fails)
	got := to.appendCopies(nil, sent)
	if len(got) != 1 || got[0].Message != sent || *got[0].DeadLetter.Description != "the action failed" {
		t.Errorf("got %+v, want the message itself, and why it failed", got)
	}
}

// Where nobody hears of failures, and the copy is there, further rules need not be asked.
func TestTOPIC_5_NoNeedlessLooks(t *testing.T) {
	t.Parallel()
	looked := 0
	counted := fakeRule{looked: &looked}
	to := routeTo("eu", counted, counted, counted)
	to.DeadLettersFailures = false
	wantCopies(t, to.appendCopies(nil, &Message{Subject: "a"}), "eu:a")
	if looked != 1 {
		t.Errorf("%d rules were asked, want 1", looked)
	}
}

func TestSESS_7_NoSession(t *testing.T) {
	t.Parallel()
	to := routeTo("eu", plain, fakeRule{act: func(m *Message) error { m.Subject, m.SessionID = "into a session", "s"; return nil }})
	to.RequiresSession = true
	wantCopies(t, to.appendCopies(nil, &Message{Subject: "a"}), "eu:a Session ID is null", "eu:into a session")
	wantCopies(t, to.appendCopies(nil, &Message{Subject: "a", SessionID: "s"}), "eu:a", "eu:into a session")
	out := routeTo("eu", fakeRule{act: func(m *Message) error { m.SessionID = ""; return nil }})
	out.RequiresSession = true
	wantCopies(t, out.appendCopies(nil, &Message{Subject: "a", SessionID: "s"}), "eu:a Session ID is null") // ACT-8
}

func TestACT_9_HeaderSize(t *testing.T) {
	t.Parallel()
	grow := func(p, q int) fakeRule {
		return fakeRule{act: func(m *Message) error {
			m.Properties = map[string]Value{"p": Bytes(make([]byte, p)), "q": Bytes(make([]byte, q))}
			return nil
		}}
	}
	const most, rest = MaxPropertyValueSize, MaxHeaderSize - MaxPropertyValueSize - len("apq")
	fits, letter := []string{"eu:a", "eu:a"}, []string{"eu:a HeaderSizeExceeded", "eu:a"}
	for _, c := range []struct {
		p, q int
		want []string
	}{
		{most, rest, fits}, {most, rest + 1, letter}, {most + 1, 0, letter},
	} {
		to := routeTo("eu", grow(c.p, c.q), plain)
		wantCopies(t, to.appendCopies(nil, &Message{Subject: "a"}), c.want...)
		to.DeadLettersFailures = false // which is about something else
		wantCopies(t, to.appendCopies(nil, &Message{Subject: "a"}), c.want...)
	}
}

// routesStore has the routes of any number of topics, with rules that are named after what they do.
type routesStore struct {
	Store

	mu     sync.Mutex
	routes map[string]Routes
	reads  map[string]int
	fails  error
}

func newRoutesStore() *routesStore {
	return &routesStore{routes: map[string]Routes{}, reads: map[string]int{}}
}

func (s *routesStore) Routes(_ context.Context, topic string) (Routes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[topic]++
	routes, ok := s.routes[Fold(topic)]
	switch {
	case s.fails != nil:
		return Routes{}, s.fails
	case !ok:
		return Routes{}, NotFound(topic)
	default:
		return routes, nil
	}
}

// set gives a topic one subscription with rules of these names.
func (s *routesStore) set(topic string, version int64, rules ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	route := Route{Subscription: "eu", DeadLettersFailures: true}
	for _, name := range rules {
		route.Rules = append(route.Rules, Rule{Name: name})
	}
	s.routes[topic] = Routes{Version: version, Subscriptions: []Route{route}}
}

func (s *routesStore) readsOf(topic string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[topic]
}

// compileFake makes the fake rule of a name.
func compileFake(rule Rule) (CompiledRule, error) {
	switch rule.Name {
	case "plain":
		return plain, nil
	case "acts":
		return acts, nil
	default:
		return nil, Errorf(FilterInvalid, "no such rule as %q", rule.Name)
	}
}

func newFanout(store Store) *fanout {
	return &fanout{store: store, compile: compileFake, known: map[string]*router{}}
}

func TestTOPIC_4_RoutesAreReadOnce(t *testing.T) {
	t.Parallel()
	store := newRoutesStore()
	store.set("news", 7, "plain", "acts")
	f := newFanout(store)
	for _, topic := range []string{"news", "news", "NEWS", "News"} {
		r, err := f.routes(t.Context(), topic, nil)
		if err != nil || r.version != 7 {
			t.Fatalf("routes of %s: %+v, %v", topic, r, err)
		}
		wantCopies(t, r.copies(&Message{Subject: "a"}), "eu:a", "eu:a!")
	}
	if n := store.readsOf("news") + store.readsOf("NEWS") + store.readsOf("News"); n != 1 {
		t.Errorf("the routes were read %d times, want once", n)
	}
}

func TestTOPIC_4_StaleRoutesAreReadAgain(t *testing.T) {
	t.Parallel()
	store := newRoutesStore()
	store.set("news", 1, "plain")
	f := newFanout(store)
	var tried []int64
	do := func(r *router) error {
		tried = append(tried, r.version)
		if want := store.routes["news"].Version; r.version != want {
			return fmt.Errorf("publish: %w", ErrRoutesChanged)
		}
		return nil
	}
	for _, version := range []int64{1, 1, 5, 5, 2} {
		store.set("news", version, "plain")
		if err := f.try(t.Context(), "news", do); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int64{1, 1, 1, 5, 5, 5, 2}; !slices.Equal(tried, want) {
		t.Errorf("tried with the versions %v, want %v", tried, want)
	}
	if n := store.readsOf("news"); n != 3 {
		t.Errorf("the routes were read %d times, want once per version", n)
	}
}

// Two senders who find the same routes stale need not read twice: the second takes what the first has read.
func TestTOPIC_4_StaleRoutesAreReadOnceForAll(t *testing.T) {
	t.Parallel()
	store := newRoutesStore()
	store.set("news", 1, "plain")
	f := newFanout(store)
	old, err := f.routes(t.Context(), "news", nil)
	if err != nil {
		t.Fatal(err)
	}
	store.set("news", 2, "plain")
	for range 3 {
		if r, err := f.routes(t.Context(), "news", old); err != nil || r.version != 2 {
			t.Errorf("got version %d, %v, want 2", r.version, err)
		}
	}
	if n := store.readsOf("news"); n != 2 {
		t.Errorf("the routes were read %d times, want twice", n)
	}
}

func TestENT_8_DeletedTopicIsForgotten(t *testing.T) {
	t.Parallel()
	store := newRoutesStore()
	store.set("news", 1, "plain")
	f := newFanout(store)
	answer := func(err error) func(*router) error { return func(*router) error { return err } }
	for err, reads := range map[error]int{
		nil:                              1, // it stays known
		Errorf(EntityFull, "full"):       1,
		Errorf(StoreUnavailable, "away"): 1,
		NotFound("news"):                 2,
		fmt.Errorf("publish: %w", NotFound("eu")): 2,
	} {
		f.forget("News")
		before := store.readsOf("news")
		if got := f.try(t.Context(), "news", answer(err)); !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
		if err := f.try(t.Context(), "news", answer(nil)); err != nil {
			t.Error(err)
		}
		if n := store.readsOf("news") - before; n != reads {
			t.Errorf("after %v the routes were read %d times, want %d", err, n, reads)
		}
	}
}

func TestTOPIC_4_MissingRoutesAreNotKept(t *testing.T) {
	t.Parallel()
	store := newRoutesStore()
	f := newFanout(store)
	do := func(*router) error { return nil }
	for range 2 {
		if err := f.try(t.Context(), "news", do); CodeOf(err) != EntityNotFound {
			t.Errorf("got %v, want %s", err, EntityNotFound)
		}
	}
	store.set("news", 1, "plain")
	if err := f.try(t.Context(), "news", do); err != nil {
		t.Error(err)
	}
	store.set("bad", 1, "plain", "bad")
	if err := f.try(t.Context(), "bad", do); CodeOf(err) != Internal {
		t.Errorf("a stored rule that does not compile gives %v, want %s", err, Internal)
	}
	store.fails = Errorf(StoreUnavailable, "away")
	if err := f.try(t.Context(), "bad", do); CodeOf(err) != StoreUnavailable {
		t.Errorf("got %v, want %s", err, StoreUnavailable)
	}
}

func TestTOPIC_4_TryEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	store := newRoutesStore()
	store.set("news", 1, "plain")
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := newFanout(store).try(ctx, "news", func(*router) error {
		if tries++; tries == 3 {
			cancel()
		}
		return ErrRoutesChanged
	})
	if CodeOf(err) != Cancelled || tries != 3 {
		t.Errorf("got %v after %d tries, want %s after 3", err, tries, Cancelled)
	}
}

func TestTOPIC_4_KnownRoutesAreBounded(t *testing.T) {
	t.Parallel()
	store := newRoutesStore()
	f := newFanout(store)
	name := func(i int) string { return strings.Repeat("t", i%3+1) + fmt.Sprint(i) }
	const many = 2*mostRouters + 10
	for i := range many {
		store.set(name(i), int64(i), "plain")
		if r, err := f.routes(t.Context(), name(i), nil); err != nil || r.version != int64(i) {
			t.Fatalf("routes of topic %d: %+v, %v", i, r, err)
		}
		if len(f.known) > mostRouters {
			t.Fatalf("%d routers are kept, at most %d are allowed", len(f.known), mostRouters)
		}
	}
	for _, i := range []int{0, many - 1} { // forgotten or not, they are what they are
		if r, err := f.routes(t.Context(), name(i), nil); err != nil || r.version != int64(i) {
			t.Errorf("routes of topic %d: %+v, %v", i, r, err)
		}
	}
	if n := store.readsOf(name(many - 1)); n != 1 {
		t.Errorf("the routes last used were read %d times, want once", n)
	}
}

// However many use them at once, nobody gets routes older than those it called stale.
func TestTOPIC_4_RoutesUnderConcurrentUse(t *testing.T) {
	t.Parallel()
	store := newRoutesStore()
	store.set("news", 0, "plain")
	f := newFanout(store)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 200 {
				err := f.try(t.Context(), "news", func(r *router) error {
					store.mu.Lock()
					defer store.mu.Unlock()
					if now := store.routes["news"]; r.version != now.Version {
						return ErrRoutesChanged
					}
					store.routes["news"] = Routes{Version: store.routes["news"].Version + 1}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if v := store.routes["news"].Version; v != 1600 {
		t.Errorf("%d changes were made, want 1600", v)
	}
}
