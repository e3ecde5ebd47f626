package proxy_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func (w *wire) purge(t *testing.T, request *sidebusv1.PurgeRequest) *sidebusv1.PurgeResponse {
	t.Helper()
	request.Source = orders
	purged, err := w.messages.Purge(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return purged
}

func TestPURGE_5_Include(t *testing.T) {
	t.Parallel()
	const (
		available, deferred = sidebusv1.PurgeRequest_AVAILABLE, sidebusv1.PurgeRequest_DEFERRED
		scheduled, dead     = sidebusv1.PurgeRequest_SCHEDULED, sidebusv1.PurgeRequest_DEAD_LETTER
	)
	cases := map[string]struct {
		request *sidebusv1.PurgeRequest
		left    func(furniture) []int64 // without the locked one, which stays (PURGE-2)
	}{
		"available": {
			&sidebusv1.PurgeRequest{}, func(f furniture) []int64 { return []int64{f.deferred, f.scheduled, f.dead} },
		},
		"available by name": {
			&sidebusv1.PurgeRequest{Include: []sidebusv1.PurgeRequest_Include{available}}, func(f furniture) []int64 { return []int64{f.deferred, f.scheduled, f.dead} },
		},
		"deferred": {
			&sidebusv1.PurgeRequest{Include: []sidebusv1.PurgeRequest_Include{deferred, deferred}}, func(f furniture) []int64 { return []int64{f.scheduled, f.dead} },
		},
		"scheduled": {
			&sidebusv1.PurgeRequest{Include: []sidebusv1.PurgeRequest_Include{scheduled}}, func(f furniture) []int64 { return []int64{f.deferred, f.dead} },
		},
		"dead letters": {
			&sidebusv1.PurgeRequest{Include: []sidebusv1.PurgeRequest_Include{dead}}, func(f furniture) []int64 { return []int64{f.deferred, f.scheduled} },
		},
		"all": {
			&sidebusv1.PurgeRequest{Include: []sidebusv1.PurgeRequest_Include{dead, scheduled, deferred}}, func(furniture) []int64 { return nil },
		},
		"dead letters alone (PURGE-6)": {
			&sidebusv1.PurgeRequest{SubQueue: sidebusv1.SubQueue_DEAD_LETTER}, func(f furniture) []int64 { return []int64{f.deferred, f.available, f.scheduled} },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, w *wire) {
				there := w.furnish(t)
				w.clock.advance(time.Millisecond) // before is not included
				before := w.runtime(t).GetTotalMessageCount()
				purged := w.purge(t, proto.CloneOf(c.request))
				want := map[int64]bool{there.locked: true}
				for _, number := range c.left(there) {
					want[number] = true
				}
				if purged.GetMore() || purged.GetDeleted() != before-int64(len(want)) || !purged.GetBefore().AsTime().Equal(w.clock.Now()) {
					t.Errorf("got %v", purged)
				}
				left := append(w.peek(t, sidebusv1.SubQueue_NONE), w.peek(t, sidebusv1.SubQueue_DEAD_LETTER)...)
				for _, m := range left {
					if !want[m.GetSequenceNumber()] {
						t.Errorf("number %d is left", m.GetSequenceNumber())
					}
				}
				if len(left) != len(want) {
					t.Errorf("%d are left, want %d", len(left), len(want))
				}
			})
		})
	}
}

func TestPURGE_1_BeforeAndMost(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, text("a"), text("b"), text("c"), text("d"))
		w.clock.advance(time.Second)
		start := w.clock.Now()
		w.put(t, text("new"))
		w.clock.advance(time.Second)
		first := timestamppb.New(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
		if purged := w.purge(t, &sidebusv1.PurgeRequest{Before: first}); purged.GetDeleted() != 0 || purged.GetMore() {
			t.Errorf("before the first of all instants: got %v", purged)
		}
		purged := w.purge(t, &sidebusv1.PurgeRequest{Before: timestamppb.New(start), MaxMessages: proto.Int32(3)})
		if purged.GetDeleted() != 3 || !purged.GetMore() || !purged.GetBefore().AsTime().Equal(start) {
			t.Errorf("got %v", purged)
		}
		purged = w.purge(t, &sidebusv1.PurgeRequest{Before: purged.GetBefore(), MaxMessages: proto.Int32(4000)})
		if purged.GetDeleted() != 1 || purged.GetMore() {
			t.Errorf("the rest: got %v", purged)
		}
		if got := texts(w.take(t, 10)); got != "new" {
			t.Errorf("left is %q", got)
		}
	})
}

func TestPURGE_4_PurgesMoreThanOneStep(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		const many = 1234
		batch := make([]*sidebusv1.Message, many)
		for i := range batch {
			batch[i] = &sidebusv1.Message{}
		}
		w.put(t, batch...)
		w.clock.advance(time.Millisecond)
		if purged := w.purge(t, &sidebusv1.PurgeRequest{}); purged.GetDeleted() != many || purged.GetMore() {
			t.Errorf("got %v", purged)
		}
	})
}

func TestPURGE_9_DeleteBySequence(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		there := w.furnish(t)
		numbers := []int64{there.available, there.locked, there.deferred, there.scheduled, there.dead, 99, there.available}
		deleted, err := w.messages.DeleteBySequence(t.Context(), &sidebusv1.DeleteBySequenceRequest{Source: orders, SequenceNumbers: numbers})
		if err != nil || len(deleted.GetResults()) != len(numbers) {
			t.Fatalf("got %v, %v", deleted, err)
		}
		for i, r := range deleted.GetResults() {
			want := "MESSAGE_NOT_FOUND"
			if i == 0 || i == 2 {
				want = ""
			}
			if r.GetSequenceNumber() != numbers[i] || r.GetReason() != want || (r.Reason == nil) != (want == "") {
				t.Errorf("row %d: got %v, want %q", i, r, want)
			}
		}
		deleted, err = w.messages.DeleteBySequence(t.Context(), &sidebusv1.DeleteBySequenceRequest{
			Source: orders, SequenceNumbers: []int64{there.dead}, SubQueue: sidebusv1.SubQueue_DEAD_LETTER,
		})
		if err != nil || deleted.GetResults()[0].Reason != nil {
			t.Errorf("a dead letter: got %v, %v", deleted, err)
		}
		if n := w.runtime(t).GetTotalMessageCount(); n != 2 {
			t.Errorf("%d are left, want the locked and the scheduled one", n)
		}
	})
}

func TestBoundsOfListsPass(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		send := func(n int, m *sidebusv1.Message) (numbers []int64) {
			for _, r := range w.put(t, slices.Repeat([]*sidebusv1.Message{m}, n)...) {
				numbers = append(numbers, r.GetSequenceNumber())
			}
			return numbers
		}
		scheduled := send(1000, &sidebusv1.Message{ScheduledEnqueueTime: w.in(time.Hour)})
		cancelled, err := w.messages.CancelScheduled(t.Context(), &sidebusv1.CancelScheduledRequest{Target: orders, SequenceNumbers: scheduled})
		if err != nil || cancelled.GetCancelled() != 1000 {
			t.Errorf("cancel: got %v, %v", cancelled, err)
		}
		numbers := send(250, &sidebusv1.Message{})
		taken, err := w.messages.ReceiveBySequence(t.Context(), &sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: numbers})
		if err != nil || len(taken.GetMessages()) != 250 {
			t.Fatalf("receive by sequence: got %d, %v", len(taken.GetMessages()), err)
		}
		var tokens []string
		for _, m := range taken.GetMessages() {
			tokens = append(tokens, m.GetLockToken())
		}
		settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: orders, LockTokens: tokens}))
		if _, err := w.messages.Reactivate(t.Context(), &sidebusv1.ReactivateRequest{Source: orders, SequenceNumbers: numbers}); err != nil {
			t.Errorf("reactivate: %v", err)
		}
		deleted, err := w.messages.DeleteBySequence(t.Context(), &sidebusv1.DeleteBySequenceRequest{Source: orders, SequenceNumbers: numbers})
		if err != nil || len(deleted.GetResults()) != 250 || w.runtime(t).GetTotalMessageCount() != 0 {
			t.Errorf("delete: got %v, %v", deleted, err)
		}
	})
}

// Exact texts, as other programs read them (api.md section 7).
func TestJSONOfRemovals(t *testing.T) {
	t.Parallel()
	at := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)}
	s := start(t, memstore.New(memstore.WithClock(at.Now)))
	there := s.furnish(t)
	for range 10 {
		s.send(t, "x")
	}
	at.advance(time.Millisecond)
	shapes := []struct{ verb, body, want string }{
		{"purge", `{"include":["DEFERRED"],"subQueue":"NONE"}`, `{"deleted":"12","more":false,"before":"2026-01-02T03:04:05.679Z"}`},
		{"purge", ``, `{"deleted":"0","more":false,"before":"2026-01-02T03:04:05.679Z"}`},
		{"cancelScheduled", `{"sequenceNumbers":["5"]}`, `{"cancelled":"1"}`},
		{"defer", `{"lockTokens":["` + there.token + `","` + nobodysToken + `"]}`, `{"results":[{"lockToken":"` + there.token + `"},{"lockToken":"` + nobodysToken + `","reason":"MESSAGE_LOCK_LOST"}]}`},
		{"reactivate", `{"sequenceNumbers":["3"]}`, `{}`},
		{"deleteBySequence", `{"sequenceNumbers":[3,3]}`, `{"results":[{"sequenceNumber":"3"},{"sequenceNumber":"3","reason":"MESSAGE_NOT_FOUND"}]}`},
		{"resubmit", `{"filter":"1=0"}`, `{"results":[],"more":false}`},
		{"resubmit", ``, `{"results":[{"sequenceNumber":"2","newSequenceNumber":"16","deduplicated":false}],"more":false}`},
		{"receiveDeferred", `{}`, `{"messages":[]}`},
		{"receiveBySequence", `{"sequenceNumbers":null}`, `{"messages":[]}`},
	}
	for _, shape := range shapes {
		if got := s.post(t, shape.verb, shape.body); got != shape.want {
			t.Errorf("%s %s\n got %s\nwant %s", shape.verb, shape.body, got, shape.want)
		}
	}
	if a := s.call(t, http.MethodGet, queuePath+"/runtime", ""); !strings.Contains(a.body, `"deferredCount":"0"`) {
		t.Errorf("got %s", a.body)
	}
}
