package broker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// brittleStore is a memstore whose SendEach fails for the calls a test names, and for all behind them when the failure
// is one that passes, as a store does that cannot go on.
type brittleStore struct {
	*memstore.Store

	tries  int
	fails  map[int]error // by try: the failure
	at     map[int]int   // by try: the call it meets
	called []string      // the calls of each try
}

func (s *brittleStore) SendEach(ctx context.Context, path string, calls [][]*semantics.Message) []semantics.SendOutcome {
	s.tries++
	var called []string
	for _, messages := range calls {
		called = append(called, string(messages[0].Body))
	}
	s.called = append(s.called, strings.Join(called, " "))
	outcomes := make([]semantics.SendOutcome, len(calls))
	for i, messages := range calls {
		if failure := s.fails[s.tries]; failure != nil && i >= s.at[s.tries] {
			outcomes[i].Err = failure
			continue
		}
		outcomes[i].Stored, outcomes[i].Err = s.Send(ctx, path, messages)
	}
	return outcomes
}

// A retry begins where the store could not go on, so that what was sent in order is stored in order.
func TestSEND_3_RetryKeepsTheOrder(t *testing.T) {
	t.Parallel()
	passing := &semantics.Error{Code: semantics.StoreUnavailable, Message: "away", RetryAfter: time.Second}
	unknown := passing.With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	for name, c := range map[string]struct {
		fails map[int]error
		at    map[int]int
		want  string // what is stored
		tries string
		lost  int // calls that fail in the end
	}{
		"in the middle":   {map[int]error{1: passing}, map[int]int{1: 2}, "0 1 2 3 4", "0 1 2 3 4|2 3 4", 0},
		"twice":           {map[int]error{1: passing, 2: passing}, map[int]int{1: 1, 2: 3}, "0 1 2 3 4", "0 1 2 3 4|1 2 3 4|4", 0},
		"all the time":    {map[int]error{1: passing, 2: passing, 3: passing, 4: passing}, map[int]int{1: 3}, "0 1 2", "0 1 2 3 4|3 4|3 4|3 4", 2},
		"outcome unknown": {map[int]error{1: unknown}, map[int]int{1: 4}, "0 1 2 3", "0 1 2 3 4", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &brittleStore{Store: memstore.New(), fails: c.fails, at: c.at}
				broker := broker.New(store)
				defer broker.Close()
				_, err := broker.CreateEntity(t.Context(), semantics.QueueKind, "q", semantics.Options{}, nil)
				wantCode(t, "create", err, "")
				var calls [][]*semantics.Message
				for i := range 5 {
					calls = append(calls, []*semantics.Message{{Body: []byte(fmt.Sprint(i))}})
				}
				results, errs := broker.SendEach(t.Context(), semantics.ToQueue("q"), calls)
				lost := 0
				for i, err := range errs {
					if err != nil {
						lost++
						wantCode(t, "a send", err, semantics.StoreUnavailable)
					} else if results[i][0].SequenceNumber != int64(i+1) || results[i][0].MessageID == "" {
						t.Errorf("call %d: got %v", i, results[i])
					}
				}
				stored, err := broker.Peek(t.Context(), semantics.Source{Path: "q"}, 0, 250, 0)
				wantCode(t, "peek", err, "")
				var all []string
				for _, m := range stored {
					all = append(all, string(m.Body))
				}
				if got := strings.Join(all, " "); got != c.want || lost != c.lost || strings.Join(store.called, "|") != c.tries {
					t.Errorf("stored %q, %d failed, tries %q; want %q, %d, %q", got, lost, store.called, c.want, c.lost, c.tries)
				}
			})
		})
	}
}

// One call that is refused takes no other with it, and is not sent again.
func TestSEND_3_RefusedCallAmongOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broker := broker.New(memstore.New())
		defer broker.Close()
		_, err := broker.CreateEntity(t.Context(), semantics.QueueKind, "q", semantics.Options{MaxMessageCount: 3}, []string{"maxMessageCount"})
		wantCode(t, "create", err, "")
		_, errs := broker.SendEach(t.Context(), semantics.ToQueue("q"), [][]*semantics.Message{
			{{}}, {}, {{}, {MessageID: strings.Repeat("x", 129)}}, {{}}, {{}, {}}, {{}},
		})
		for i, want := range []semantics.Code{"", semantics.InvalidArgument, semantics.InvalidArgument, "", semantics.EntityFull, ""} {
			wantCode(t, fmt.Sprint("call ", i), errs[i], want)
		}
		for _, target := range []string{".", "q/$deadletterqueue", "nothing"} {
			results, errs := broker.SendEach(t.Context(), semantics.ToQueue(target), [][]*semantics.Message{{{}}, {{}}})
			if len(results) != 2 || errs[0] == nil || errs[1] == nil {
				t.Errorf("%s: got %v, %v", target, results, errs)
			}
		}
	})
}
