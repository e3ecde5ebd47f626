package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// A send under a request id whose answer was lost, or whose sidecar died with it, is repeated through another sidecar:
// that gets the first answer, and the messages are stored once.
func TestIDEM_1_RepeatAfterLostAnswer(t *testing.T) {
	t.Parallel()
	l := openLostAnswers(t, func(*semantics.Options) {})
	batch := func() []*semantics.Message {
		return []*semantics.Message{{MessageID: "a"}, {Body: []byte("no id")}, {ScheduledAt: time.Now().Add(time.Hour)}}
	}
	send := func(s *redisstore.Store) ([]semantics.SendResult, bool, error) {
		return broker.New(s).SendOnce(t.Context(), semantics.ToQueue("orders"), "r-1", batch())
	}
	turnDeaf := func() {
		l.cut.Deaf.Store(false)
		// a connection that stands
		if _, err := l.there.Peek(t.Context(), orders, 1, 1, semantics.ShowAll); err != nil {
			t.Fatal(err)
		}
		l.cut.Deaf.Store(true)
	}
	turnDeaf()
	_, _, err := send(l.there)
	wantUnknown(t, "send", err)
	if text, want := semantics.AsError(err).Message, "repeat the call with the same requestId within 2m0s"; !strings.Contains(text, want) {
		t.Errorf("%q does not name the next step: %s", text, want)
	}
	turnDeaf()
	_, err = broker.New(l.there).Send(t.Context(), semantics.ToQueue("orders"), batch()[:1])
	if text, want := semantics.AsError(err).Message, "send with a requestId"; !strings.Contains(text, want) {
		t.Errorf("%q does not name the next step: %s", text, want)
	}
	l.cut.Deaf.Store(false)

	first, repeated, err := send(l.sound) // another sidecar; the first one may be dead
	if err != nil || !repeated {
		t.Fatalf("repeated %t, %v", repeated, err)
	}
	again, repeated, err := send(l.there)
	if err != nil || !repeated || !slices.Equal(again, first) {
		t.Errorf("repeated %t, %v, got %+v, want %+v", repeated, err, again, first)
	}
	for i, m := range mustPeekAll(t, l.sound) {
		if i < len(first) && (m.MessageID != first[i].MessageID || m.SequenceNumber != first[i].SequenceNumber) {
			t.Errorf("stored as %d %q, answered as %+v", m.SequenceNumber, m.MessageID, first[i])
		}
	}
	if c := l.counts(); c.Active != 2+1 || c.Scheduled != 1 { // with that of the send without an id
		t.Errorf("got %+v, want 3 active and 1 scheduled", c)
	}
}

func mustPeekAll(t *testing.T, s semantics.Store) []*semantics.Received {
	t.Helper()
	rows, err := s.Peek(t.Context(), orders, 0, 250, semantics.ShowAll)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// What is remembered of request ids goes two minutes after the last one, also when nobody looks at the entity again;
// and without a request id nothing is kept.
func TestIDEM_1_NothingStaysOfAnIdleEntity(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	s.send(t, messagesOf(2, semantics.Message{})...)
	if n := s.raw.Exists(t.Context(), s.key("requests"), s.key("request_times")).Val(); n != 0 {
		t.Errorf("%d keys are there without a request id", n)
	}
	for _, id := range []string{"a", "b"} {
		if err := s.SendOnce(t.Context(), "orders", semantics.Once{RequestID: id, Digest: "d", Seed: "s"}, messagesOf(1, semantics.Message{})).Err; err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{s.key("requests"), s.key("request_times")} {
		if left := s.raw.PTTL(t.Context(), key).Val(); left <= time.Minute || left > semantics.RequestsKeptFor {
			t.Errorf("%s goes in %s", key, left)
		}
	}
	if err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
}

func (s *swept) sendOnce(t *testing.T, id string, messages []*semantics.Message) ([]semantics.Stored, bool) {
	t.Helper()
	outcome := s.SendOnce(t.Context(), "orders", semantics.Once{RequestID: id, Digest: "d", Seed: "s"}, messages)
	if outcome.Err != nil {
		t.Fatal(outcome.Err)
	}
	return outcome.Stored, outcome.Repeats != nil
}

// An answer with duplicates in it is kept in runs, and one that the version before kept as single numbers is read, too.
func TestIDEM_1_AnswersAreKeptInRuns(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, remembering)
	s.send(t, messagesOf(1500, semantics.Message{})...)
	batch := messagesOf(2000, semantics.Message{})
	batch = append(batch, batch[3], batch[700], batch[1600]) // duplicates that do not follow one another
	first, _ := s.sendOnce(t, "r", batch)
	row := s.raw.HGet(t.Context(), s.key("requests"), "r").Val()
	if !strings.HasSuffix(row, ":d:s:RUNS -1+1500 1501+500 -4 -701 -1601") {
		t.Errorf("kept as %.200q", row)
	}
	each := []string{"EACH"}
	for _, stored := range first {
		if stored.Deduplicated {
			stored.SequenceNumber *= -1
		}
		each = append(each, fmt.Sprint(stored.SequenceNumber))
	}
	accepted, _, _ := strings.Cut(row, ":")
	for what, kept := range map[string]string{"this version": row, "the version before": accepted + ":d:s:" + strings.Join(each, " ")} {
		must(t, s.raw.HSet(t.Context(), s.key("requests"), "r", kept).Err())
		if again, repeated := s.sendOnce(t, "r", batch); !repeated || !slices.Equal(again, first) {
			t.Errorf("%s: repeated %t, %d answers, want %d", what, repeated, len(again), len(first))
		}
	}
}

// What is kept of answers with duplicates in them is bounded in bytes: the oldest are forgotten.
func TestIDEM_1_AnswersAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, remembering)
	s.send(t, messagesOf(1, semantics.Message{})...)
	begun, bytes := time.Now().Add(-time.Second).UnixMilli(), 0
	for i := range int64(16) {
		row := fmt.Sprintf("%d:d:s:RUNS ", begun+i)
		row += strings.Repeat("-1 ", (1<<20-len(row))/3)
		bytes += len(row)
		must(t, s.raw.HSet(t.Context(), s.key("requests"), fmt.Sprint(i), row, "", bytes).Err())
		must(t, s.raw.ZAdd(t.Context(), s.key("request_times"), redis.Z{Score: float64(begun + i), Member: fmt.Sprint(i)}).Err())
	}
	duplicate := messagesOf(1, semantics.Message{})
	for i := range int64(3) { // one of which finds no room
		s.sendOnce(t, fmt.Sprint("new-", i), duplicate)
	}
	ids := s.raw.ZRange(t.Context(), s.key("request_times"), 0, -1).Val()
	if len(ids) != 16-1+3 || ids[0] != "1" || ids[len(ids)-1] != "new-2" {
		t.Errorf("kept are %q", ids)
	}
	for range 2 { // expired, then its id is used for another call
		must(t, s.raw.HSet(t.Context(), s.key("requests"), "new-0", "1:d:s:RUNS -1").Err())
		must(t, s.raw.HIncrBy(t.Context(), s.key("requests"), "", int64(len("1:d:s:RUNS -1")-len(fmt.Sprint(begun)+":d:s:RUNS -1"))).Err())
		if _, repeated := s.sendOnce(t, "new-0", duplicate); repeated {
			t.Error("an answer that expired was given again")
		}
	}
	if err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
}
