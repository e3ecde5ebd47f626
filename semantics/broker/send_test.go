package broker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// flakyStore fails its first sends.
type flakyStore struct {
	semantics.Store
	failures []error
	ids      []string
}

func (s *flakyStore) Send(_ context.Context, _ string, messages []*semantics.Message) ([]semantics.Stored, error) {
	s.ids = append(s.ids, messages[0].MessageID)
	if n := len(s.ids) - 1; n < len(s.failures) {
		return nil, s.failures[n]
	}
	return make([]semantics.Stored, len(messages)), nil
}

func TestSEND_2_RetriesWhatStoredNothing(t *testing.T) {
	t.Parallel()
	passing := &semantics.Error{Code: semantics.StoreUnavailable, Message: "away", RetryAfter: time.Second}
	unknown := passing.With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	lasting := &semantics.Error{Code: semantics.StoreUnavailable, Message: "full"}
	for name, c := range map[string]struct {
		failures []error
		tries    int
		took     time.Duration
		code     semantics.Code
	}{
		"comes back":      {[]error{passing, passing, passing}, 4, 5600 * time.Millisecond, ""},
		"stays away":      {[]error{passing, passing, passing, passing}, 4, 5600 * time.Millisecond, semantics.StoreUnavailable},
		"outcome unknown": {[]error{unknown}, 1, 0, semantics.StoreUnavailable},
		"does not pass":   {[]error{lasting}, 1, 0, semantics.StoreUnavailable},
		"other reason":    {[]error{semantics.NotFound("q")}, 1, 0, semantics.EntityNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &flakyStore{failures: c.failures}
				began := time.Now()
				_, err := New(store).Send(t.Context(), semantics.ToQueue("q"), []*semantics.Message{{}})
				if code := semantics.CodeOf(err); code != c.code || len(store.ids) != c.tries || time.Since(began) != c.took {
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
		passing := &semantics.Error{Code: semantics.StoreUnavailable, Message: "away", RetryAfter: time.Second}
		store := &flakyStore{failures: []error{passing, passing, passing, passing}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := New(store).Send(ctx, semantics.ToQueue("q"), []*semantics.Message{{}})
		if semantics.CodeOf(err) != semantics.StoreUnavailable || len(store.ids) != 2 {
			t.Errorf("got %v after %d tries, want STORE_UNAVAILABLE after 2", err, len(store.ids))
		}
	})
}
