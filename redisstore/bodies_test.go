package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// publishShared publishes messages together, each with copies for the subscriptions that names returns for its place.
func (s *topics) publishShared(messages []*semantics.Message, names func(i int) []string) {
	s.t.Helper()
	var publications []semantics.Publication
	for i, m := range messages {
		publications = append(publications, semantics.Publication{Message: m, Copies: copiesOf(m, names(i)...)})
	}
	s.fails("publish", publish(s.t, s.Store, publications...).Err)
}

// bodies is how many bodies the topic keeps for copies.
func (s *topics) bodies() int64 { return s.raw.HLen(s.t.Context(), s.newsKey("bodies")).Val() }

// ofAllSizes are messages with bodies of all sizes.
func ofAllSizes(n int) []*semantics.Message {
	var messages []*semantics.Message
	for i := range n {
		body := strings.Repeat(string(rune('a'+i%26)), 1<<(i%13))
		messages = append(messages, &semantics.Message{MessageID: fmt.Sprint(i), Body: []byte(body)})
	}
	return messages
}

// Copies of all sizes come back as they were sent, in order, whatever parts of what was published together a
// subscription gets, receives and completes; and with the last copy its body is gone.
func TestCopiesShareBodies(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	wanted := map[string][]*semantics.Message{}
	names := []string{"all", "even", "few"}
	for _, name := range names {
		s.subscribe(name)
	}
	for _, n := range []int{1, 2, 33, 70} {
		messages := ofAllSizes(n)
		s.publishShared(messages, func(i int) []string {
			to := []string{"all"}
			if i%2 == 0 {
				to = append(to, "even")
			}
			if i%13 == 3 {
				to = append(to, "few")
			}
			for _, name := range to {
				wanted[name] = append(wanted[name], messages[i])
			}
			return to
		})
	}
	s.audit()
	if s.bodies() == 0 {
		t.Fatal("no body is shared: this proves nothing")
	}
	for _, name := range names {
		limits, got := []int{1, 2, 5, 31, 32, 33, 100}, 0
		for i := 0; got < len(wanted[name]); i++ {
			batch, err := s.Receive(t.Context(), of(name), limits[i%len(limits)], semantics.RegisterNever)
			s.fails("receive", err)
			for _, m := range batch.Messages {
				if want := wanted[name][got]; m.MessageID != want.MessageID || string(m.Body) != string(want.Body) || m.Size != want.Size() {
					t.Fatalf("%s: copy %d has id %s, %d bytes, size %d (%v)", name, got, m.MessageID, len(m.Body), m.Size, m.Unreadable)
				}
				got++
			}
			tokens := tokensOf(batch.Messages)
			slices.Reverse(tokens)
			for len(tokens) > 0 {
				some := tokens[:(len(tokens)+2)/3]
				codes, err := s.Complete(t.Context(), of(name), some)
				if err != nil || slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" }) {
					t.Fatalf("complete: %q, %v", codes, err)
				}
				tokens = tokens[len(some):]
			}
			s.audit()
		}
	}
	if n := s.raw.Exists(t.Context(), s.newsKey("bodies"), s.newsKey("body_uses")).Val(); n > 0 {
		t.Error("bodies are left")
	}
}

// A body that only one subscription gets, and one that is alone and small, stay with their copies.
func TestBodiesThatAreNotShared(t *testing.T) {
	t.Parallel()
	s := openTopics(t, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 2048 })
	for _, name := range []string{"eu", "us"} {
		s.subscribe(name)
	}
	small, large := &semantics.Message{Body: []byte("small")}, &semantics.Message{Body: make([]byte, 600)}
	huge := &semantics.Message{Body: make([]byte, 1<<20)}
	for _, of := range []struct {
		m    *semantics.Message
		to   []string
		want int64
	}{{small, []string{"eu", "us"}, 0}, {large, []string{"eu"}, 0}, {huge, []string{"eu", "us"}, 0}, {large, []string{"eu", "us"}, 1}} {
		s.fails("publish", s.publish(of.m, copiesOf(of.m, of.to...)...).Err)
		if got := s.bodies(); got != of.want {
			t.Errorf("%d bytes for %v: %d bodies are shared, want %d", len(of.m.Body), of.to, got, of.want)
		}
		s.audit()
	}
}

// What becomes of one copy does not touch the others, and a copy takes its body along: to the dead-letter queue, back
// from there, and to where its subscription forwards.
func TestCopiesTakeTheirBodiesAlong(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	for _, name := range []string{"a", "b", "c"} {
		s.subscribe(name)
	}
	s.fails("create", makeQueue(t, s.swept, "archive"))
	messages := ofAllSizes(20)
	s.publishShared(messages, func(int) []string { return []string{"a", "b", "c"} })
	ctx := t.Context()
	batch, err := s.Receive(ctx, of("a"), 20, semantics.RegisterNever)
	s.fails("receive", err)
	tokens := tokensOf(batch.Messages)
	s.fails("dead-letter", second(s.DeadLetter(ctx, of("a"), tokens[:5], semantics.DeadLetterTexts{}, nil)))
	s.fails("defer", second(s.Defer(ctx, of("a"), tokens[5:10], nil)))
	s.fails("abandon", second(s.Abandon(ctx, of("a"), tokens[10:15], semantics.AbandonOptions{})))
	s.fails("complete", second(s.Complete(ctx, of("a"), tokens[15:])))
	s.audit()
	letters := []semantics.Resubmission{{SequenceNumber: 1}, {SequenceNumber: 2}}
	s.fails("resubmit", second(s.Resubmit(ctx, deadOf("a"), of("a").Path, letters, false)))
	s.fails("forward", second(s.UpdateEntity(ctx, semantics.SubscriptionKind, of("b").Path,
		semantics.Options{ForwardTo: "archive"}, []string{"forwardTo"})))
	for range 3 {
		s.fails("sweep", s.SweepOnce(ctx, brokerOver(s.Store)))
	}
	s.audit()
	s.fails("delete", s.DeleteEntity(ctx, semantics.SubscriptionKind, of("c").Path))
	s.audit()
	wants := func(source semantics.Source, want []*semantics.Message) {
		t.Helper()
		found, err := s.Peek(ctx, source, 1, 100, semantics.ShowAll)
		s.fails("peek", err)
		var got, ids []string
		for _, m := range found {
			got = append(got, m.MessageID+string(m.Body))
		}
		for _, m := range want {
			ids = append(ids, m.MessageID+string(m.Body))
		}
		if !slices.Equal(got, ids) {
			t.Errorf("%s has %d messages, want %d", source, len(got), len(ids))
		}
	}
	wants(of("a"), append(slices.Clone(messages[5:15]), messages[:2]...))
	wants(deadOf("a"), messages[2:5])
	wants(semantics.Source{Path: "archive"}, messages)
	purge := semantics.Purge{Show: semantics.ShowAll, Limit: 100}
	s.clock.Advance(1e9)
	for _, show := range []semantics.Show{semantics.ShowAvailable, semantics.ShowDeferred} {
		purge.Show = show
		s.fails("purge", second(s.Purge(ctx, of("a"), purge)))
	}
	s.audit()
	if n := s.bodies(); n != 0 {
		t.Errorf("%d bodies are left", n)
	}
}

// Where the deletion of a subscription is cut off before its bodies are released, the look at all entities does it, and
// what is left of a topic of the same name before is only dropped.
func TestENT_8_SubscriptionDeletionCutOff(t *testing.T) {
	t.Parallel()
	for _, isAnother := range []bool{false, true} {
		t.Run(fmt.Sprint(isAnother), func(t *testing.T) {
			t.Parallel()
			s := openTopics(t)
			for _, name := range []string{"a", "b"} {
				s.subscribe(name)
			}
			s.publishShared(ofAllSizes(40), func(int) []string { return []string{"a", "b"} })
			before := s.bodies()
			dying, ctx := killedAfter(t, s.namespace, "delete_subscription", 1)
			_ = dying.DeleteEntity(ctx, semantics.SubscriptionKind, of("a").Path)
			left := s.raw.ZRange(t.Context(), s.newsKey("left_copies"), 0, -1).Val()
			if len(left) != 1 {
				t.Fatalf("%v is left: this proves nothing", left)
			}
			s.audit()
			s.subscribe("a")
			if isAnother {
				s.raw.HSet(t.Context(), s.newsKey("entity"), "incarnation", 7)
			}
			s.fails("look", second(s.LookOnce(t.Context(), brokerOver(s.Store), nil)))
			if n := s.raw.Exists(t.Context(), s.newsKey("left_copies")).Val(); n != 0 {
				t.Error("the deletion is still not complete")
			}
			if found, err := s.Peek(t.Context(), of("b"), 1, 100, semantics.ShowAll); err != nil || len(found) != 40 || found[39].Unreadable != nil {
				t.Errorf("%d copies, %v", len(found), err)
			}
			if isAnother { // whose counts are its own
				return
			}
			s.audit()
			s.fails("delete", s.DeleteEntity(t.Context(), semantics.SubscriptionKind, of("b").Path))
			if n := s.bodies(); before == 0 || n != 0 {
				t.Errorf("%d of %d bodies are left", n, before)
			}
			s.audit()
		})
	}
}

// A version that does not know shared bodies fails at a subscription that has some, and changes nothing. It looks for
// chunks under another key: everything else about its scripts is as it is here.
func TestVersionsBeforeSharedBodiesStopThere(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	for _, name := range []string{"a", "b"} {
		s.subscribe(name)
	}
	s.publishShared(ofAllSizes(40), func(int) []string { return []string{"a", "b"} })
	batch, err := s.Receive(t.Context(), of("a"), 20, semantics.RegisterNever)
	s.fails("receive", err)
	before := dump(t, s.namespace)
	for _, takesShortWays := range []bool{false, true} {
		older := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: s.clock.Now})
		if !takesShortWays {
			older.TakeNoShortWays()
		}
		older.BehaveAsBeforeSharedBodies()
		for what, err := range map[string]error{
			"receive":     second(older.Receive(t.Context(), of("a"), 1, semantics.RegisterNever)),
			"complete":    second(older.Complete(t.Context(), of("a"), tokensOf(batch.Messages))),
			"abandon":     second(older.Abandon(t.Context(), of("a"), tokensOf(batch.Messages), semantics.AbandonOptions{})),
			"dead-letter": second(older.DeadLetter(t.Context(), of("a"), tokensOf(batch.Messages), semantics.DeadLetterTexts{}, nil)),
			"peek":        second(older.Peek(t.Context(), of("a"), 0, 10, semantics.ShowAll)),
			"runtime":     second(older.Runtime(t.Context(), semantics.SubscriptionKind, of("a").Path)),
		} {
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if after := dump(t, s.namespace); !slices.Equal(before, after) {
		t.Errorf("changed from\n%s\nto\n%s", before, after)
	}
	s.audit()
}

// A version that does not know shared bodies leaves the chunks of subscriptions that it deletes. If it has deleted the
// topic, too, they refer to numbers that bodies of another topic have: to delete a subscription releases none of those.
func TestChunksThatAnOlderVersionLeftReleaseNothing(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	ctx, chunks := t.Context(), s.newsKey("subscriptions/a:copies")
	both := func(int) []string { return []string{"b", "c"} }
	for _, name := range []string{"a", "b", "c"} {
		s.subscribe(name)
	}
	s.publishShared(ofAllSizes(20), func(int) []string { return []string{"a", "b", "c"} })
	left := s.raw.Dump(ctx, chunks).Val()
	s.fails("delete", s.DeleteEntity(ctx, semantics.TopicKind, "news"))
	s.fails("create", createTopic(t, s.Store))
	for _, name := range []string{"a", "b", "c"} {
		s.subscribe(name)
	}
	s.fails("restore", s.raw.Restore(ctx, chunks, 0, left).Err())
	messages := ofAllSizes(20)
	s.publishShared(messages, both)
	s.fails("delete", s.DeleteEntity(ctx, semantics.SubscriptionKind, of("a").Path))
	s.audit()
	for _, name := range both(0) {
		batch, err := s.Receive(ctx, of(name), 100, semantics.RegisterNever)
		s.fails("receive", err)
		for i, m := range batch.Messages {
			if m.Unreadable != nil || string(m.Body) != string(messages[i].Body) {
				t.Errorf("%s: copy %d has %d bytes (%v)", name, i, len(m.Body), m.Unreadable)
			}
		}
		s.fails("complete", second(s.Complete(ctx, of(name), tokensOf(batch.Messages))))
	}
	if n := s.bodies(); n != 0 {
		t.Errorf("%d bodies are left", n)
	}
	s.audit()
}
