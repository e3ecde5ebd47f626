package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// topicStore is a routesStore that takes publications. What it answers is said by answer, call by call of Publish.
type topicStore struct {
	*routesStore

	answer    func(try, call int) error // nil error: it is stored
	tries     int
	published []string // version and messages of each try, with the number of their copies
	numbers   int64

	due       []*semantics.Received
	dueErr    error
	activated []string
	refuse    []error // what Activate fails with, one call after the other
	refused   func()  // called when it fails; may be nil
}

func newTopicStore() *topicStore {
	s := &topicStore{routesStore: newRoutesStore(), answer: func(int, int) error { return nil }}
	s.set("news", 1, "plain")
	return s
}

func (s *topicStore) Publish(_ context.Context, topic string, version int64, calls [][]semantics.Publication) []semantics.SendOutcome {
	s.tries++
	var text []string
	outcomes := make([]semantics.SendOutcome, len(calls))
	for i, call := range calls {
		for _, p := range call {
			text = append(text, fmt.Sprintf("%s*%d", p.Message.Body, len(p.Copies)))
		}
		if outcomes[i].Err = s.answer(s.tries, i); outcomes[i].Err == nil {
			for range call {
				s.numbers++
				outcomes[i].Stored = append(outcomes[i].Stored, semantics.Stored{SequenceNumber: s.numbers})
			}
		}
	}
	s.published = append(s.published, fmt.Sprintf("%s@%d: %s", topic, version, strings.Join(text, " ")))
	return outcomes
}

func (s *topicStore) Due(_ context.Context, _ string, limit int) ([]*semantics.Received, error) {
	return s.due[:min(limit, len(s.due))], s.dueErr
}

func (s *topicStore) Activate(_ context.Context, topic string, version int64, activations []semantics.Activation) error {
	var text []string
	for _, a := range activations {
		text = append(text, fmt.Sprintf("%d %s*%d", a.SequenceNumber, a.Message.Body, len(a.Copies)))
	}
	s.activated = append(s.activated, fmt.Sprintf("%s@%d: %s", topic, version, strings.Join(text, ", ")))
	if len(s.refuse) > 0 {
		err := s.refuse[0]
		s.refuse = s.refuse[1:]
		if err != nil {
			if s.refused != nil {
				s.refused()
			}
			return err
		}
	}
	s.due = s.due[len(activations):]
	return nil
}

func newPublisher(store semantics.Store) *Broker { return New(store, WithRules(compileFake)) }

// bodies are calls of one message each.
func bodies(texts ...string) (calls [][]*semantics.Message) {
	for _, text := range texts {
		calls = append(calls, []*semantics.Message{{Body: []byte(text)}})
	}
	return calls
}

func wantPublished(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the store was given\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTOPIC_2_SendDecidesAndStores(t *testing.T) {
	t.Parallel()
	store := newTopicStore()
	store.set("news", 9, "plain", "acts")
	b := newPublisher(store)
	results, err := b.Send(t.Context(), semantics.ToTopic("News"), []*semantics.Message{{Body: []byte("a"), MessageID: "id"}, {Body: []byte("b")}})
	if err != nil || len(results) != 2 || results[0] != (semantics.SendResult{Stored: semantics.Stored{SequenceNumber: 1}, MessageID: "id"}) || results[1].SequenceNumber != 2 || results[1].MessageID == "" {
		t.Errorf("got %v, %v", results, err)
	}
	wantPublished(t, store.published, "News@9: a*2 b*2")
}

// What is past is for the store to say (SCHED-4), so a message with a time has its copies with it.
func TestSCHED_4_MessageWithATimeHasItsCopies(t *testing.T) {
	t.Parallel()
	store := newTopicStore()
	b := newPublisher(store)
	m := &semantics.Message{Body: []byte("a"), ScheduledAt: time.Unix(1, 0)}
	if _, err := b.Send(t.Context(), semantics.ToTopic("news"), []*semantics.Message{m}); err != nil {
		t.Fatal(err)
	}
	wantPublished(t, store.published, "news@1: a*1")
}

func TestTOPIC_4_SendDecidesAgain(t *testing.T) {
	t.Parallel()
	store := newTopicStore()
	b := newPublisher(store)
	store.answer = func(try, _ int) error {
		if try < 3 {
			store.set("news", int64(try+1), "plain", "acts")
			return semantics.ErrRoutesChanged
		}
		return nil
	}
	results, err := b.Send(t.Context(), semantics.ToTopic("news"), bodies("a")[0])
	if err != nil || results[0].SequenceNumber != 1 {
		t.Errorf("got %v, %v", results, err)
	}
	wantPublished(t, store.published, "news@1: a*1", "news@2: a*2", "news@3: a*2")
}

// Calls behind one that met other routes are sent again with it, so that their order stays; those before it are not.
func TestSEND_3_ChangeOfRoutesKeepsTheOrder(t *testing.T) {
	t.Parallel()
	full := semantics.Errorf(semantics.EntityFull, "full")
	store := newTopicStore()
	b := newPublisher(store)
	store.answer = func(try, call int) error {
		switch {
		case try == 1 && call == 1:
			return full
		case try == 1 && call >= 2, try == 2 && call >= 1:
			store.set("news", int64(try+1), "plain")
			return semantics.ErrRoutesChanged
		case try == 3 && call == 2:
			return full
		}
		return nil
	}
	results, errs := b.SendEach(t.Context(), semantics.ToTopic("news"), bodies("a", "b", "c", "d", "e", "f"))
	wantPublished(t, store.published, "news@1: a*1 b*1 c*1 d*1 e*1 f*1", "news@2: c*1 d*1 e*1 f*1", "news@3: d*1 e*1 f*1")
	var got []string
	for i, err := range errs {
		if err != nil {
			got = append(got, string(semantics.CodeOf(err)))
			continue
		}
		got = append(got, fmt.Sprint(results[i][0].SequenceNumber))
	}
	if want := []string{"1", "ENTITY_FULL", "2", "3", "4", "ENTITY_FULL"}; !slices.Equal(got, want) {
		t.Errorf("got the outcomes %q, want %q", got, want)
	}
}

// When the routes cannot be read again, what was stored before is told all the same.
func TestSEND_3_RoutesCannotBeReadAgain(t *testing.T) {
	t.Parallel()
	store := newTopicStore()
	b := newPublisher(store)
	store.answer = func(_, call int) error {
		if call == 0 {
			return nil
		}
		store.fails = semantics.NotFound("news")
		return semantics.ErrRoutesChanged
	}
	results, errs := b.SendEach(t.Context(), semantics.ToTopic("news"), bodies("a", "b", "c"))
	if errs[0] != nil || results[0][0].SequenceNumber != 1 || semantics.CodeOf(errs[1]) != semantics.EntityNotFound || semantics.CodeOf(errs[2]) != semantics.EntityNotFound {
		t.Errorf("got %v, %v, want the first stored and %s for the others", results, errs, semantics.EntityNotFound)
	}
	wantPublished(t, store.published, "news@1: a*1 b*1 c*1")
}

func TestENT_8_SendToAMissingTopic(t *testing.T) {
	t.Parallel()
	store := newTopicStore()
	b := newPublisher(store)
	_, errs := b.SendEach(t.Context(), semantics.ToTopic("missing"), bodies("a", "b"))
	if semantics.CodeOf(errs[0]) != semantics.EntityNotFound || semantics.CodeOf(errs[1]) != semantics.EntityNotFound || len(store.published) != 0 {
		t.Errorf("got %v, and the store was given %q", errs, store.published)
	}
	// One that is deleted and made anew is read anew.
	store.answer = func(try, _ int) error {
		if try == 2 {
			return semantics.NotFound("news")
		}
		return nil
	}
	for i, want := range []semantics.Code{"", semantics.EntityNotFound, ""} {
		if _, err := b.Send(t.Context(), semantics.ToTopic("news"), bodies("a")[0]); semantics.CodeOf(err) != want {
			t.Errorf("send %d: got %v, want %q", i, err, want)
		}
	}
	if n := store.readsOf("news"); n != 2 {
		t.Errorf("the routes were read %d times, want twice", n)
	}
}

func TestSEND_2_RetriesToATopic(t *testing.T) {
	t.Parallel()
	passing := &semantics.Error{Code: semantics.StoreUnavailable, Message: "away", RetryAfter: time.Second}
	for name, c := range map[string]struct {
		failure error
		tries   int
		code    semantics.Code
	}{
		"comes back":      {passing, 3, ""},
		"outcome unknown": {passing.With(semantics.DetailOutcome, semantics.OutcomeUnknown), 1, semantics.StoreUnavailable},
		"full":            {semantics.Errorf(semantics.EntityFull, "full"), 1, semantics.EntityFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newTopicStore()
				store.answer = func(try, _ int) error {
					if try < 3 {
						return c.failure
					}
					return nil
				}
				_, err := newPublisher(store).Send(t.Context(), semantics.ToTopic("news"), bodies("a")[0])
				if semantics.CodeOf(err) != c.code || store.tries != c.tries {
					t.Errorf("got %v after %d tries, want %q after %d", err, store.tries, c.code, c.tries)
				}
			})
		})
	}
}

func TestRULE_7_WithoutALanguageThereAreNoRules(t *testing.T) {
	t.Parallel()
	_, _, err := New(newTopicStore()).CreateRule(t.Context(), "news/Subscriptions/eu", semantics.Rule{Name: "a", Filter: semantics.RuleFilter{All: true}})
	if semantics.CodeOf(err) != semantics.FilterInvalid {
		t.Errorf("got %v, want %s", err, semantics.FilterInvalid)
	}
}

// scheduled is n due messages, beginning with a number.
func scheduled(first, n int) (due []*semantics.Received) {
	for i := range n {
		due = append(due, &semantics.Received{SequenceNumber: int64(first + i), Message: semantics.Message{Body: fmt.Append(nil, "m", first+i)}})
	}
	return due
}

func TestSCHED_7_ActivatesAllThatIsDue(t *testing.T) {
	t.Parallel()
	store := newTopicStore()
	b := newPublisher(store)
	if err := b.ActivateDue(t.Context(), "news"); err != nil || len(store.activated) != 0 {
		t.Errorf("nothing is due, but got %v, %q", err, store.activated)
	}
	store.due = scheduled(1, 2*activateStep+1)
	if err := b.ActivateDue(t.Context(), "news"); err != nil {
		t.Fatal(err)
	}
	if len(store.activated) != 3 || store.activated[2] != fmt.Sprintf("news@1: %d m%d*1", 2*activateStep+1, 2*activateStep+1) {
		t.Errorf("activated in the steps %q", store.activated)
	}
}

func TestSCHED_7_DecidesAgainByTheRulesOfTheInstant(t *testing.T) {
	t.Parallel()
	store := newTopicStore()
	b := newPublisher(store)
	// it knows the rules as they are now
	if _, err := b.Send(t.Context(), semantics.ToTopic("news"), bodies("a")[0]); err != nil {
		t.Fatal(err)
	}
	store.due = scheduled(5, 2)
	store.due[0].ScheduledAt = time.Unix(100, 0)
	store.set("news", 2, "plain", "acts")
	store.refuse = []error{semantics.ErrRoutesChanged, nil}
	if err := b.ActivateDue(t.Context(), "news"); err != nil {
		t.Fatal(err)
	}
	wantPublished(t, store.activated, "news@1: 5 m5*1, 6 m6*1", "news@2: 5 m5*2, 6 m6*2")
}

// If Redis forgets the topic between the look at what is due and its activation, a number may be that of another message
// of the topic that was created again.
func TestSCHED_7_ReadsAgainWhatIsDue(t *testing.T) {
	t.Parallel()
	store := newTopicStore()
	b := newPublisher(store)
	store.due = scheduled(5, 1)
	store.refuse = []error{semantics.ErrRoutesChanged, nil}
	store.refused = func() {
		store.set("news", 2, "plain")
		store.due = scheduled(5, 1)
		store.due[0].Body = []byte("another")
	}
	if err := b.ActivateDue(t.Context(), "news"); err != nil {
		t.Fatal(err)
	}
	wantPublished(t, store.activated, "news@1: 5 m5*1", "news@2: 5 another*1")
}

func TestSCHED_7_ActivationStopsAtAFailure(t *testing.T) {
	t.Parallel()
	away := semantics.Errorf(semantics.StoreUnavailable, "away")
	store := newTopicStore()
	b := newPublisher(store)
	store.due, store.refuse = scheduled(1, 3), []error{away}
	if err := b.ActivateDue(t.Context(), "news"); semantics.CodeOf(err) != semantics.StoreUnavailable || len(store.activated) != 1 {
		t.Errorf("got %v after %d steps", err, len(store.activated))
	}
	store.dueErr = semantics.NotFound("news")
	if err := b.ActivateDue(t.Context(), "news"); semantics.CodeOf(err) != semantics.EntityNotFound || len(store.activated) != 1 {
		t.Errorf("got %v after %d steps", err, len(store.activated))
	}
}
