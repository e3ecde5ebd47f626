package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// remembering are the options of an entity that detects duplicates.
func remembering(o *semantics.Options) {
	o.RequiresDuplicateDetection, o.DuplicateDetectionHistoryTimeWindow = true, time.Minute
}

// overHistory is how many ids of a window that is over the tests put into a history: more than Lua can unpack.
const overHistory = 12_000

// fillHistory puts ids that were accepted at an instant into the history of an entity.
func fillHistory(t *testing.T, s *swept, entity string, ids int, at time.Time) {
	t.Helper()
	tag := "sb:{" + s.namespace + "/" + entity + "}:"
	for first := 0; first < ids; first += 1000 {
		members, fields := make([]redis.Z, 0, 1000), make([]any, 0, 2000)
		for i := first; i < min(first+1000, ids); i++ {
			key := fmt.Sprintf("old-%d", i)
			members = append(members, redis.Z{Score: float64(at.UnixMilli()), Member: key})
			fields = append(fields, key, fmt.Sprintf("%d:%d", at.UnixMilli(), i+1))
		}
		if err := s.raw.ZAdd(t.Context(), tag+"history_times", members...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.raw.HSet(t.Context(), tag+"history", fields...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *swept) remembers(t *testing.T, entity string) int64 {
	t.Helper()
	n, err := s.raw.ZCard(t.Context(), "sb:{"+s.namespace+"/"+entity+"}:history_times").Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The largest batch behind the largest number of ids whose window is over is stored whole, and can be received.
func TestDUP_4_LargeBatchBehindOldHistory(t *testing.T) {
	t.Parallel()
	const many = semantics.MaxBatchMessages
	t.Run("queue", func(t *testing.T) {
		t.Parallel()
		s := openTransfers(t)
		s.make("orders", remembering)
		fillHistory(t, s.swept, "orders", overHistory, s.clock.Now().Add(-time.Hour))
		s.send(t, messagesOf(many, semantics.Message{})...)
		s.audit("orders")
		if n := s.remembers(t, "orders"); n != many+overHistory-1000 {
			t.Errorf("%d ids are left; one send must forget 1,000 of the old ones", n)
		}
	})
	t.Run("sessions", func(t *testing.T) {
		t.Parallel()
		s := openSessions(t, remembering)
		fillHistory(t, s.swept, "orders", overHistory, s.clock.Now().Add(-time.Hour))
		s.send(t, messagesOf(many, semantics.Message{SessionID: "a"})...)
		s.audit()
		if got := s.receiveIn(s.accept("a"), 100); len(got) != 100 {
			t.Errorf("%d messages, want 100", len(got))
		}
	})
	t.Run("topic", func(t *testing.T) {
		t.Parallel()
		s := openTopics(t, remembering)
		s.subscribe("eu")
		fillHistory(t, s.swept, "news", overHistory, s.clock.Now().Add(-time.Hour))
		publications := make([]semantics.Publication, many)
		for i, m := range messagesOf(many, semantics.Message{}) {
			publications[i] = semantics.Publication{Message: m, Copies: copiesOf(m, "eu")}
		}
		s.fails("publish", publish(t, s.Store, publications...).Err)
		s.audit()
	})
	t.Run("forwarded", func(t *testing.T) {
		t.Parallel()
		s := openTransfers(t)
		s.make("archive", remembering)
		s.make("attic")
		s.make("orders", forwards)
		fillHistory(t, s.swept, "archive", overHistory, s.clock.Now().Add(-time.Hour))
		s.send(t, messagesOf(1000, semantics.Message{})...)
		transfer := s.begin(orders, "archive", 1000)
		if codes := s.arrive(transfer); len(codes) == 0 {
			t.Fatal("nothing arrived")
		}
		s.end(transfer, gone(len(transfer.Messages))...)
		s.audit("orders", "archive")
	})
}

// Ids go soon after their window is over, whatever else the queue has an alarm for and however many they are.
func TestDUP_4_HistoryGoesBeforeAnUnrelatedAlarm(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*topics, func()) {
		s := openTopics(t)
		s.create(t, remembering)
		broker := brokerOver(s.Store)
		t.Cleanup(broker.Close)
		return s, func() {
			t.Helper()
			if err := s.SweepOnce(t.Context(), broker); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("scheduled", func(t *testing.T) {
		t.Parallel()
		s, sweep := open(t)
		s.send(t, &semantics.Message{MessageID: "far", ScheduledAt: s.clock.Now().Add(24 * time.Hour)})
		s.clock.Advance(70 * time.Second)
		sweep() // from here on the alarm is that of the scheduled message
		fillHistory(t, s.swept, "orders", 2500, s.clock.Now())
		s.send(t, &semantics.Message{MessageID: "one more"})
		s.clock.Advance(70 * time.Second)
		sweep()
		if n := s.remembers(t, "orders"); n != 0 {
			t.Errorf("%d ids are left after their window", n)
		}
	})
	t.Run("newer ids", func(t *testing.T) {
		t.Parallel()
		s, sweep := open(t)
		fillHistory(t, s.swept, "orders", 2500, s.clock.Now())
		s.send(t, &semantics.Message{MessageID: "of the same time"})
		s.clock.Advance(50 * time.Second)
		s.send(t, &semantics.Message{MessageID: "newer"})
		s.clock.Advance(20 * time.Second)
		sweep()
		if n := s.remembers(t, "orders"); n != 1 {
			t.Errorf("%d ids are left, want the newer one", n)
		}
	})
}

// A window that is made shorter counts for what was accepted before.
func TestDUP_4_HistoryGoesAfterAShorterWindow(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	s.create(t, func(o *semantics.Options) { remembering(o); o.DuplicateDetectionHistoryTimeWindow = 24 * time.Hour })
	s.send(t, messagesOf(10, semantics.Message{})...)
	options := semantics.DefaultOptions()
	remembering(&options)
	if _, err := s.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{"duplicateDetectionHistoryTimeWindow"}); err != nil {
		t.Fatal(err)
	}
	broker := brokerOver(s.Store)
	defer broker.Close()
	for range 2 { // the first sets the alarm by the new window
		if err := s.SweepOnce(t.Context(), broker); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(70 * time.Second)
	}
	if n := s.remembers(t, "orders"); n != 0 {
		t.Errorf("%d ids are left after their window", n)
	}
}

// A transaction on many queues whose windows are over forgets as many ids in its script as one send does.
func TestDUP_4_TransactionBehindOldHistories(t *testing.T) {
	t.Parallel()
	const queues, old = 20, 200
	s := openTransfers(t)
	var operations []semantics.Operation
	for i := range queues {
		name := fmt.Sprintf("orders-%d", i)
		s.make(name, remembering)
		fillHistory(t, s.swept, name, old, s.clock.Now().Add(-time.Hour))
		operations = append(operations, sendTo(name, messagesOf(1, semantics.Message{})...))
	}
	must(t, s.Transact(t.Context(), nil, operations).Err)
	left := int64(0)
	for i := range queues {
		left += s.remembers(t, fmt.Sprintf("orders-%d", i))
	}
	if want := int64(queues*(old+1) - 1000); left != want {
		t.Errorf("%d ids are left, want %d: one script must forget 1,000 of the old ones", left, want)
	}
}
