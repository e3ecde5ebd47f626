package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// fakeRule selects every message, unless it is told otherwise.
type fakeRule struct {
	no     bool
	fails  error
	act    func(m *semantics.Message) error // nil: no action
	looked *int                             // counts Matches; nil: nobody counts
}

func (r fakeRule) Matches(*semantics.Message, *semantics.Budget) (bool, error) {
	if r.looked != nil {
		*r.looked++
	}
	return !r.no && r.fails == nil, r.fails
}

func (r fakeRule) HasAction() bool { return r.act != nil }

func (r fakeRule) Act(m *semantics.Message) (*semantics.Message, error) {
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
	acts       = fakeRule{act: func(m *semantics.Message) error { m.Subject += "!"; return nil }}
	missesActs = fakeRule{no: true, act: acts.act}
	fails      = fakeRule{fails: errors.New("the filter failed")}
	failsToAct = fakeRule{act: func(m *semantics.Message) error { m.Subject = "half done"; return errors.New("the action failed") }}
)

// routeTo is the route of one subscription with the rules given.
func routeTo(name string, rules ...semantics.CompiledRule) compiledRoute {
	return compiledRoute{Route: semantics.Route{Subscription: name, DeadLettersFailures: true}, rules: rules}
}

// shown gives copies as text: the subscription, the subject, and of a dead letter the reason.
func shown(copies []semantics.Copy) (all []string) {
	for _, c := range copies {
		text := c.Subscription + ":" + c.Message.Subject
		if c.DeadLetter != nil {
			text += " " + *c.DeadLetter.Reason
		}
		all = append(all, text)
	}
	return all
}

func wantCopies(t *testing.T, got []semantics.Copy, want ...string) {
	t.Helper()
	if s := shown(got); !slices.Equal(s, want) {
		t.Errorf("got the copies %q, want %q", s, want)
	}
}

func TestTOPIC_5_CopiesOfOneSubscription(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules []semantics.CompiledRule
		want  []string
	}{
		"no rules":                         {nil, nil},
		"one plain":                        {[]semantics.CompiledRule{plain}, []string{"eu:a"}},
		"three plain and two with actions": {[]semantics.CompiledRule{plain, plain, acts, plain, acts}, []string{"eu:a", "eu:a!", "eu:a!"}},
		"only actions":                     {[]semantics.CompiledRule{acts, acts, acts}, []string{"eu:a!", "eu:a!", "eu:a!"}},
		"those that miss make none":        {[]semantics.CompiledRule{misses, acts, missesActs, misses, plain}, []string{"eu:a!", "eu:a"}},
		"none that selects":                {[]semantics.CompiledRule{misses, missesActs}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := &semantics.Message{Subject: "a"}
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
	wantCopies(t, r.copies(&semantics.Message{Subject: "x"}), "a:x", "c:x!", "c:x")
}

func TestRULE_8_Failures(t *testing.T) {
	t.Parallel()
	letter := "eu:a FilterEvaluationException"
	for name, c := range map[string]struct {
		rules   []semantics.CompiledRule
		on, off []string // with DeadLetteringOnFilterEvaluationExceptions and without
	}{
		"a filter":                 {[]semantics.CompiledRule{fails}, []string{letter}, nil},
		"an action":                {[]semantics.CompiledRule{failsToAct}, []string{letter}, nil},
		"many":                     {[]semantics.CompiledRule{fails, failsToAct, fails, misses}, []string{letter}, nil},
		"before those that select": {[]semantics.CompiledRule{fails, plain, acts}, []string{"eu:a", "eu:a!", letter}, []string{"eu:a", "eu:a!"}},
		"behind those that select": {[]semantics.CompiledRule{plain, acts, fails}, []string{"eu:a", "eu:a!", letter}, []string{"eu:a", "eu:a!"}},
		"among plain ones":         {[]semantics.CompiledRule{plain, fails, plain}, []string{"eu:a", letter}, []string{"eu:a"}},
		"an action behind plain":   {[]semantics.CompiledRule{plain, failsToAct}, []string{"eu:a", letter}, []string{"eu:a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := routeTo("eu", c.rules...)
			wantCopies(t, to.appendCopies(nil, &semantics.Message{Subject: "a"}, nil), c.on...)
			to.DeadLettersFailures = false
			wantCopies(t, to.appendCopies(nil, &semantics.Message{Subject: "a"}, nil), c.off...)
		})
	}
}

func TestRULE_8_OtherSubscriptionsGoOn(t *testing.T) {
	t.Parallel()
	r := &router{routes: []compiledRoute{routeTo("a", fails), routeTo("b", plain), routeTo("c", failsToAct), routeTo("d", acts)}}
	wantCopies(t, r.copies(&semantics.Message{Subject: "x"}),
		"a:x FilterEvaluationException", "b:x", "c:x FilterEvaluationException", "d:x!")
}

func TestDLQ_11_LetterTellsOfTheFirstFailure(t *testing.T) {
	t.Parallel()
	sent := &semantics.Message{Subject: "a"}
	to := routeTo("eu", misses, failsToAct, fails)
	got := to.appendCopies(nil, sent, nil)
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
	wantCopies(t, to.appendCopies(nil, &semantics.Message{Subject: "a"}, nil), "eu:a")
	if looked != 1 {
		t.Errorf("%d rules were asked, want 1", looked)
	}
}

func TestSESS_7_NoSession(t *testing.T) {
	t.Parallel()
	to := routeTo("eu", plain, fakeRule{act: func(m *semantics.Message) error { m.Subject, m.SessionID = "into a session", "s"; return nil }})
	to.RequiresSession = true
	wantCopies(t, to.appendCopies(nil, &semantics.Message{Subject: "a"}, nil), "eu:a Session ID is null", "eu:into a session")
	wantCopies(t, to.appendCopies(nil, &semantics.Message{Subject: "a", SessionID: "s"}, nil), "eu:a", "eu:into a session")
	out := routeTo("eu", fakeRule{act: func(m *semantics.Message) error { m.SessionID = ""; return nil }})
	out.RequiresSession = true
	// ACT-8
	wantCopies(t, out.appendCopies(nil, &semantics.Message{Subject: "a", SessionID: "s"}, nil), "eu:a Session ID is null")
}

func TestACT_9_HeaderSize(t *testing.T) {
	t.Parallel()
	grow := func(p, q int) fakeRule {
		return fakeRule{act: func(m *semantics.Message) error {
			m.Properties = map[string]semantics.Value{"p": semantics.Bytes(make([]byte, p)), "q": semantics.Bytes(make([]byte, q))}
			return nil
		}}
	}
	const most, rest = semantics.MaxPropertyValueSize, semantics.MaxHeaderSize - semantics.MaxPropertyValueSize - len("apq")
	fits, letter := []string{"eu:a", "eu:a"}, []string{"eu:a HeaderSizeExceeded", "eu:a"}
	for _, c := range []struct {
		p, q int
		want []string
	}{
		{most, rest, fits}, {most, rest + 1, letter}, {most + 1, 0, letter},
	} {
		to := routeTo("eu", grow(c.p, c.q), plain)
		wantCopies(t, to.appendCopies(nil, &semantics.Message{Subject: "a"}, nil), c.want...)
		to.DeadLettersFailures = false // which is about something else
		wantCopies(t, to.appendCopies(nil, &semantics.Message{Subject: "a"}, nil), c.want...)
	}
}

// routesStore has the routes of any number of topics, with rules that are named after what they do.
type routesStore struct {
	semantics.Store

	mu     sync.Mutex
	routes map[string]semantics.Routes
	reads  map[string]int
	fails  error
}

func newRoutesStore() *routesStore {
	return &routesStore{routes: map[string]semantics.Routes{}, reads: map[string]int{}}
}

func (s *routesStore) Routes(_ context.Context, topic string) (semantics.Routes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[topic]++
	routes, ok := s.routes[semantics.Fold(topic)]
	switch {
	case s.fails != nil:
		return semantics.Routes{}, s.fails
	case !ok:
		return semantics.Routes{}, semantics.NotFound(topic)
	default:
		return routes, nil
	}
}

// set gives a topic one subscription with rules of these names.
func (s *routesStore) set(topic string, version int64, rules ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	route := semantics.Route{Subscription: "eu", DeadLettersFailures: true}
	for _, name := range rules {
		route.Rules = append(route.Rules, semantics.Rule{Name: name})
	}
	s.routes[topic] = semantics.Routes{Version: version, Subscriptions: []semantics.Route{route}}
}

func (s *routesStore) readsOf(topic string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[topic]
}

// compileFake makes the fake rule of a name.
func compileFake(rule semantics.Rule) (semantics.CompiledRule, error) {
	switch rule.Name {
	case "plain":
		return plain, nil
	case "acts":
		return acts, nil
	default:
		return nil, semantics.Errorf(semantics.FilterInvalid, "no such rule as %q", rule.Name)
	}
}

func newFanout(store semantics.Store) *fanout {
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
		wantCopies(t, r.copies(&semantics.Message{Subject: "a"}), "eu:a", "eu:a!")
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
			return fmt.Errorf("publish: %w", semantics.ErrRoutesChanged)
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
		nil: 1, // it stays known
		semantics.Errorf(semantics.EntityFull, "full"):       1,
		semantics.Errorf(semantics.StoreUnavailable, "away"): 1,
		semantics.NotFound("news"):                           2,
		fmt.Errorf("publish: %w", semantics.NotFound("eu")):  2,
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
		if err := f.try(t.Context(), "news", do); semantics.CodeOf(err) != semantics.EntityNotFound {
			t.Errorf("got %v, want %s", err, semantics.EntityNotFound)
		}
	}
	store.set("news", 1, "plain")
	if err := f.try(t.Context(), "news", do); err != nil {
		t.Error(err)
	}
	store.set("bad", 1, "plain", "bad")
	if err := f.try(t.Context(), "bad", do); semantics.CodeOf(err) != semantics.Internal {
		t.Errorf("a stored rule that does not compile gives %v, want %s", err, semantics.Internal)
	}
	store.fails = semantics.Errorf(semantics.StoreUnavailable, "away")
	if err := f.try(t.Context(), "bad", do); semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("got %v, want %s", err, semantics.StoreUnavailable)
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
		return semantics.ErrRoutesChanged
	})
	if semantics.CodeOf(err) != semantics.Cancelled || tries != 3 {
		t.Errorf("got %v after %d tries, want %s after 3", err, tries, semantics.Cancelled)
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
						return semantics.ErrRoutesChanged
					}
					store.routes["news"] = semantics.Routes{Version: store.routes["news"].Version + 1}
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
