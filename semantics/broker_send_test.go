package semantics

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// flakyStore fails its first sends.
type flakyStore struct {
	Store
	failures []error
	ids      []string
}

func (s *flakyStore) Send(_ context.Context, _ string, messages []*Message) ([]Stored, error) {
	s.ids = append(s.ids, messages[0].MessageID)
	if n := len(s.ids) - 1; n < len(s.failures) {
		return nil, s.failures[n]
	}
	return make([]Stored, len(messages)), nil
}

func TestSEND_2_RetriesWhatStoredNothing(t *testing.T) {
	t.Parallel()
	passing := &Error{Code: StoreUnavailable, Message: "away", RetryAfter: time.Second}
	unknown := passing.With(DetailOutcome, OutcomeUnknown)
	lasting := &Error{Code: StoreUnavailable, Message: "full"}
	for name, c := range map[string]struct {
		failures []error
		tries    int
		took     time.Duration
		code     Code
	}{
		"comes back":      {[]error{passing, passing, passing}, 4, 5600 * time.Millisecond, ""},
		"stays away":      {[]error{passing, passing, passing, passing}, 4, 5600 * time.Millisecond, StoreUnavailable},
		"outcome unknown": {[]error{unknown}, 1, 0, StoreUnavailable},
		"does not pass":   {[]error{lasting}, 1, 0, StoreUnavailable},
		"other reason":    {[]error{NotFound("q")}, 1, 0, EntityNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &flakyStore{failures: c.failures}
				began := time.Now()
				_, err := NewBroker(store).Send(t.Context(), ToQueue("q"), []*Message{{}})
				if code := CodeOf(err); code != c.code || len(store.ids) != c.tries || time.Since(began) != c.took {
					t.Errorf("got %q after %d tries and %s, want %q, %d, %s", code, len(store.ids), time.Since(began), c.code, c.tries, c.took)
				}
				for _, id := range store.ids {
					if id == "" || id != store.ids[0] {
						t.Errorf("message ids are %v, want one for all tries", store.ids)
					}
				}
			})
		})
	}
}

func TestSEND_2_RetryEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		passing := &Error{Code: StoreUnavailable, Message: "away", RetryAfter: time.Second}
		store := &flakyStore{failures: []error{passing, passing, passing, passing}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := NewBroker(store).Send(ctx, ToQueue("q"), []*Message{{}})
		if CodeOf(err) != StoreUnavailable || len(store.ids) != 2 {
			t.Errorf("got %v after %d tries, want STORE_UNAVAILABLE after 2", err, len(store.ids))
		}
	})
}
