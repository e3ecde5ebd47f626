package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/encoded"
)

// takes are the ways to take messages of orders. The one from a session is for a queue that requires them.
var takes = map[string]struct {
	script   string
	sessions bool
	take     func(ctx context.Context, s semantics.Store, session semantics.Source) ([]*semantics.Received, error)
}{
	"receive": {script: "receive", take: func(ctx context.Context, s semantics.Store, _ semantics.Source) ([]*semantics.Received, error) {
		batch, err := s.Receive(ctx, orders, 3, semantics.RegisterNever)
		return batch.Messages, err
	}},
	"by number": {script: "receive_by_number", take: func(ctx context.Context, s semantics.Store, _ semantics.Source) ([]*semantics.Received, error) {
		return s.ReceiveByNumber(ctx, orders, semantics.Active, []int64{1, 2, 3})
	}},
	"session": {script: "turn", sessions: true, take: func(ctx context.Context, s semantics.Store, session semantics.Source) ([]*semantics.Received, error) {
		batch, err := s.Receive(ctx, session, 3, semantics.RegisterNever)
		return batch.Messages, err
	}},
}

// openTakes makes orders with three messages, and a session that holds them.
func openTakes(t *testing.T, sessions bool) (*swept, semantics.Source) {
	t.Helper()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(o *semantics.Options) { o.RequiresSession, o.SessionInFlight = sessions, 100 })
	if !sessions {
		s.send(t, messagesOf(3, semantics.Message{Body: []byte("x")})...)
		return s, orders
	}
	s.send(t, messagesOf(3, semantics.Message{Body: []byte("x"), SessionID: "a"})...)
	held, err := s.AcceptSession(t.Context(), "orders", "a")
	if err != nil {
		t.Fatal(err)
	}
	return s, semantics.Source{Path: "orders", SessionLock: held.Lock}
}

// wantUntouched checks that nothing is locked, and that no delivery was counted.
func (s *swept) wantUntouched(t *testing.T, source semantics.Source) {
	t.Helper()
	if n := s.raw.ZCard(t.Context(), s.key("locks")).Val(); n != 0 {
		t.Errorf("%d messages are locked", n)
	}
	batch, err := s.Receive(t.Context(), source, 10, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 3 {
		t.Fatalf("then there are %d messages (%v), want 3", len(batch.Messages), err)
	}
	for i, m := range batch.Messages {
		if m.SequenceNumber != int64(i+1) || m.DeliveryCount != 1 {
			t.Errorf("then number %d is delivered for the %dth time", m.SequenceNumber, m.DeliveryCount)
		}
	}
}

// A caller that goes away after the script has locked gets nothing, and what was locked for it goes back uncounted.
func TestRECV_7_CallerGoneAfterTheScript(t *testing.T) {
	t.Parallel()
	for name, c := range takes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, source := openTakes(t, c.sessions)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			leaving := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Observe: func(script, _ string, _ time.Duration) {
				if script == c.script {
					leave()
				}
			}})
			if got, err := c.take(ctx, leaving, source); semantics.CodeOf(err) != semantics.Cancelled {
				t.Errorf("got %d messages and %v, want CANCELLED", len(got), err)
			}
			s.wantUntouched(t, source)
		})
	}
}

// A connection that breaks between the script and the read of what it locked costs nothing: the read is made again.
func TestRECV_2_ConnectionLostAfterTheScript(t *testing.T) {
	t.Parallel()
	for name, c := range takes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			defer server.Stop()
			s := &swept{namespace: redistest.Namespace()}
			options := redistest.ClientOptions(t, server.URL)
			s.raw = redis.NewClient(options)
			defer s.raw.Close()
			var armed atomic.Bool
			s.Store = redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: s.namespace, Observe: func(script, _ string, _ time.Duration) {
				if script == c.script && armed.CompareAndSwap(true, false) {
					s.raw.Do(context.Background(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
				}
			}})
			s.create(t, func(o *semantics.Options) { o.RequiresSession, o.SessionInFlight = c.sessions, 100 })
			source := orders
			session := ""
			if c.sessions {
				session = "a"
			}
			s.send(t, messagesOf(3, semantics.Message{SessionID: session})...)
			if c.sessions {
				held, err := s.AcceptSession(t.Context(), "orders", "a")
				if err != nil {
					t.Fatal(err)
				}
				source.SessionLock = held.Lock
			}
			armed.Store(true)
			if got, err := c.take(t.Context(), s, source); err != nil || len(got) != 3 {
				t.Errorf("got %d messages and %v, want all", len(got), err)
			}
		})
	}
}

// spoil puts a message behind the others whose stored form nobody can read.
func (s *swept) spoil(t *testing.T, queue string) {
	t.Helper()
	s.store(t, queue, "\xffabc")
}

// store puts a stored form behind the other messages.
func (s *swept) store(t *testing.T, queue, payload string) {
	t.Helper()
	entity, log := s.keyOf(queue, "entity"), s.keyOf(queue, "log")
	number := s.raw.HIncrBy(t.Context(), entity, "sequence", 1).Val()
	id := redis.XAddArgs{Stream: log, ID: fmt.Sprintf("%d-3", number), Values: []any{"1774749659987:0", payload}}
	if err := s.raw.XAdd(t.Context(), &id).Err(); err != nil {
		t.Fatal(err)
	}
	s.raw.HIncrBy(t.Context(), entity, "bytes", 3)
}

// A message that cannot be decoded becomes a dead letter that says so; those before and behind it are handed out, and
// nothing stays locked.
func TestDLQ_25_UnreadableMessageHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	s.send(t, &semantics.Message{MessageID: "a"})
	s.spoil(t, "orders")
	s.spoil(t, "orders")
	s.send(t, &semantics.Message{MessageID: "b"})
	b := broker.New(s.Store)
	defer b.Close()
	take := func(source semantics.Source, n int) []*semantics.Received {
		t.Helper()
		d, err := b.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: n})
		if err != nil {
			t.Fatal(err)
		}
		return d.Messages
	}
	rows, err := b.Peek(t.Context(), orders, 0, 10, 0)
	if err != nil || len(rows) != 4 || !strings.Contains(rows[1].Subject, "cannot be read") {
		t.Errorf("peek: %d rows, %v", len(rows), err)
	}
	if got := take(orders, 10); len(got) != 2 || got[0].MessageID != "a" || got[1].MessageID != "b" {
		t.Errorf("received %d messages, want a and b", len(got))
	}
	if counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil || counts.Locked != 2 {
		t.Errorf("%d messages are locked, want 2 (%v)", counts.Locked, err)
	}
	dead, err := b.Peek(t.Context(), deadOrders, 0, 10, 0)
	if err != nil || len(dead) != 2 || dead[0].DeadLetterReason != semantics.ReasonUnreadable || dead[0].SequenceNumber != 2 {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
	// One of them alone is none, and there it holds up nobody either.
	s.send(t, &semantics.Message{MessageID: "c"})
	c := take(orders, 1)
	if codes, err := b.DeadLetter(t.Context(), orders, []semantics.LockToken{c[0].LockToken}, broker.DeadLetterOptions{}); err != nil || codes[0] != "" {
		t.Fatal(codes, err)
	}
	if got := take(deadOrders, 1); len(got) != 1 || got[0].MessageID != "c" {
		t.Errorf("received %v from the dead letters, want c", got)
	}
	results, _, err := b.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Numbers: []int64{2}})
	if err != nil || len(results) != 1 || results[0].Code != semantics.Internal {
		t.Errorf("resubmit: %v, %v", results, err)
	}
	if err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
}

// Of messages asked for by number none stays locked when one cannot be read.
func TestDEFER_4_UnreadableMessageByNumber(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	s.send(t, &semantics.Message{MessageID: "a"})
	s.spoil(t, "orders")
	broker := broker.New(s.Store)
	defer broker.Close()
	_, err := broker.ReceiveBySequence(t.Context(), orders, []int64{1, 2}, semantics.PeekLock)
	if semantics.CodeOf(err) != semantics.Internal || !strings.Contains(err.Error(), "sequence number 2") {
		t.Errorf("got %v", err)
	}
	if n := s.raw.ZCard(t.Context(), s.key("locks")).Val(); n != 0 {
		t.Errorf("%d messages are locked", n)
	}
	if d, err := broker.ReceiveBySequence(t.Context(), orders, []int64{1}, semantics.PeekLock); err != nil || len(d.Messages) != 1 {
		t.Error(err)
	}
}

// A forwarder goes on behind a message that cannot be decoded, or whose text is none, which no client could receive.
func TestFWD_1_UnreadableMessageHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	must(t, makeQueue(t, s, "archive"))
	s.create(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
	s.send(t, &semantics.Message{MessageID: "a"})
	s.spoil(t, "orders")
	noText, _ := encoded.Append([]byte{2, 0}, &semantics.Message{Body: []byte("\xff"), BodyKind: semantics.BodyText})
	s.store(t, "orders", string(noText))
	s.send(t, &semantics.Message{MessageID: "b"})
	broker := broker.New(s.Store)
	defer broker.Close()
	if err := broker.Forward(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	var ids []string
	rows, err := s.Peek(t.Context(), archive, 0, 10, semantics.ShowAll)
	for _, row := range rows {
		ids = append(ids, row.MessageID)
	}
	if err != nil || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("forwarded %v, %v", ids, err)
	}
	dead, err := s.Peek(t.Context(), deadOrders, 0, 10, semantics.ShowAll)
	if err != nil || len(dead) != 2 || dead[0].DeadLetterReason != semantics.ReasonUnreadable ||
		dead[1].DeadLetterReason != semantics.ReasonUnreadable {
		t.Errorf("dead letters: %v, %v", dead, err)
	}
}
