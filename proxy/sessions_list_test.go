package proxy_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

func TestSESS_38_Rows(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"lockDuration":"300s"`)
		began := w.in(0)
		w.tell(t, "full", "to delay", "to defer", "to lock", "available", "available")
		later := inSession("full", "later")
		later.ScheduledEnqueueTime = w.in(time.Hour)
		if _, err := w.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: tales, Messages: []*sidebusv1.Message{later}}); err != nil {
			t.Fatal(err)
		}
		held := w.accept(t, "full")
		taken := w.hear(t, held, 3)
		settled(t)(w.messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{
			Source: tales, SessionLockToken: &held.LockToken, LockTokens: []string{taken[0].GetLockToken()}, Delay: durationpb.New(time.Hour),
		}))
		settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{
			Source: tales, SessionLockToken: &held.LockToken, LockTokens: []string{taken[1].GetLockToken()},
		}))
		w.clock.advance(time.Second)
		noted := w.accept(t, "noted") // state alone
		version := w.setState(t, noted, []byte("12345"))
		w.close(t, noted)
		w.close(t, w.accept(t, "nothing")) // it is listed nowhere
		w.accept(t, "only held")           // nor is this (SESS-36)

		want := []*sidebusv1.SessionRow{
			{
				SessionId: "full", AvailableCount: 3, DelayedCount: 1, LockedCount: 1, DeferredCount: 1, ScheduledCount: 1,
				Locked: true, LockedUntil: held.GetLockedUntil(), LastActivity: began,
			},
			{SessionId: "noted", LastActivity: w.in(0), StateSize: 5, StateVersion: version},
		}
		if diff := cmp.Diff(want, w.rows(t), protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		counts, err := w.admin.GetQueueRuntime(t.Context(), &sidebusv1.GetQueueRuntimeRequest{Name: tales})
		if err != nil || counts.GetSessionCount() != 3 || counts.GetReadySessionCount() != 0 || counts.GetLockedSessionCount() != 2 {
			t.Errorf("CNT-2: got %v, %v, want 3 sessions, none ready, 2 locked", counts, err)
		}
		w.close(t, held)
		counts, err = w.admin.GetQueueRuntime(t.Context(), &sidebusv1.GetQueueRuntimeRequest{Name: tales})
		// its first message is delayed
		if err != nil || counts.GetLockedSessionCount() != 1 || counts.GetReadySessionCount() != 0 {
			t.Errorf("closed: got %v, %v", counts, err)
		}
		w.clock.advance(time.Hour)
		counts, err = w.admin.GetQueueRuntime(t.Context(), &sidebusv1.GetQueueRuntimeRequest{Name: tales})
		if err != nil || counts.GetReadySessionCount() != 1 {
			t.Errorf("an hour later: got %v, %v, want one ready", counts, err)
		}
	})
}

func TestSESS_37_Since(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "old message", "x")
		w.setState(t, w.accept(t, "old state"), []byte("x"))
		between := w.in(0)
		w.clock.advance(time.Millisecond)
		w.tell(t, "new message", "x")
		w.setState(t, w.accept(t, "new state"), []byte{})
		cases := []struct {
			updated, active *timestamppb.Timestamp
			want            []string
		}{
			{nil, nil, []string{"new message", "new state", "old message", "old state"}},
			{nil, between, []string{"new message", "new state"}},
			{between, nil, []string{"new state"}},
			{between, w.in(0), nil}, // after that instant
			{w.in(-time.Second), nil, []string{"new state", "old state"}},
			// the first instant there is
			{&timestamppb.Timestamp{Seconds: -62135596800}, nil, []string{"new state", "old state"}},
			{nil, &timestamppb.Timestamp{Seconds: 253402300799, Nanos: 999_999_999}, nil}, // the last
		}
		for _, c := range cases {
			listed, err := w.sessions.List(t.Context(), &sidebusv1.SessionsListRequest{Source: tales, UpdatedSince: c.updated, ActiveSince: c.active})
			if err != nil {
				t.Errorf("%v, %v: %v", c.updated, c.active, err)
			}
			if got := ids(listed.GetSessions()); !slices.Equal(got, c.want) {
				t.Errorf("updated since %v, active since %v: got %q, want %q", c.updated, c.active, got, c.want)
			}
		}
	})
}

// ids returns the ids of rows.
func ids(rows []*sidebusv1.SessionRow) (all []string) {
	for _, row := range rows {
		all = append(all, row.GetSessionId())
	}
	return all
}

func TestSESS_38_Pages(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		var want []string
		for i := range 230 {
			id := fmt.Sprintf("s/%03d é+", i)
			want = append(want, id)
			w.tell(t, id, "x")
		}
		for _, size := range []int32{0, 100, 99, 230 / 7} {
			var got []string
			request := &sidebusv1.SessionsListRequest{Source: tales, PageSize: size}
			for page := 0; ; page++ {
				listed, err := w.sessions.List(t.Context(), request)
				if err != nil || len(listed.GetSessions()) > 100 || page > 230 {
					t.Fatalf("page %d: got %d rows, %v", page, len(listed.GetSessions()), err)
				}
				got = append(got, ids(listed.GetSessions())...)
				if request.PageToken = listed.GetNextPageToken(); request.PageToken == "" {
					break
				}
				if url.QueryEscape(request.PageToken) != request.PageToken {
					t.Errorf("the token %q has to be escaped", request.PageToken)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("size %d: got %q", size, got)
			}
		}
		for _, r := range []refusalBy[sidebusv1.SessionsClient]{
			refuse("negative page", outOfRange, "pageSize", listing, &sidebusv1.SessionsListRequest{Source: tales, PageSize: -1}),
			refuse("large page", outOfRange, "pageSize", listing, &sidebusv1.SessionsListRequest{Source: tales, PageSize: 101}),
			refuse("malformed token", "INVALID_ARGUMENT", "pageToken", listing, &sidebusv1.SessionsListRequest{Source: tales, PageToken: "?"}),
			refuse("token with padding", "INVALID_ARGUMENT", "pageToken", listing, &sidebusv1.SessionsListRequest{Source: tales, PageToken: "YQ=="}),
			refuse("token that is no UTF-8", "INVALID_ARGUMENT", "pageToken", listing, &sidebusv1.SessionsListRequest{Source: tales, PageToken: "_w"}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.sessions) })
		}
	})
}

// Ids are what senders like; they mean nothing and go through every verb as they are.
func TestMSG_2_OddSessionIDs(t *testing.T) {
	t.Parallel()
	odd := []string{
		"\x00", "a\x00b", "%2F", "a%2fb", "a/b", "/", "..", ".", " ", "  x ", "\n", "\t\r", `"`, `\`, `'`, "{}", "null", "0", "-", "+", "&a=b", "?", "#",
		"sessions:accept", "é", "e\u0301", "日本語", "\u202e", "\ufeff", "\ufffd", "\U0001f600", "ſ", "\u212a", "K", "k", strings.Repeat("x", 128),
		strings.Repeat("é", 128), strings.Repeat("\U0001f600", 64), "00000000-0000-0000-0000-000000000000",
	}
	slices.Sort(odd)
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		for _, id := range odd {
			w.tell(t, id, "for "+id)
		}
		if got := ids(w.rows(t)); !slices.Equal(got, odd) {
			t.Errorf("listed %q\nwant %q", got, odd)
		}
		for _, id := range odd {
			peeked, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: tales, SessionId: &id})
			if err != nil || texts(peeked.GetMessages()) != "for "+id {
				t.Errorf("%q: peeked %v, %v", id, peeked, err)
			}
			held := w.accept(t, id)
			if got := w.hear(t, held, 10); texts(got) != "for "+id || got[0].GetSessionId() != id {
				t.Errorf("%q: received %v", id, got)
			}
			w.setState(t, held, []byte(id))
			if got := w.state(t, held); string(got.GetState()) != id {
				t.Errorf("%q: got %v", id, got)
			}
			w.close(t, held)
			if _, err := w.sessions.Unblock(t.Context(), &sidebusv1.SessionsUnblockRequest{Source: tales, SessionId: id}); err != nil {
				t.Errorf("%q: %v", id, err)
			}
			purged, err := w.messages.Purge(t.Context(), &sidebusv1.PurgeRequest{Source: tales, SessionId: &id, Before: w.in(time.Hour)})
			if err != nil || purged.GetDeleted() != 1 {
				t.Errorf("%q: purged %v, %v", id, purged, err)
			}
		}
	})
}
