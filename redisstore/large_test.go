package redisstore_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
)

// openCounting makes orders in a store that counts the scripts of a name.
func openCounting(t *testing.T, script string, change func(*semantics.Options)) (s *swept, scripts *atomic.Int64) {
	t.Helper()
	scripts = &atomic.Int64{}
	s = openSwept(t, redisstore.Options{Observe: func(name, _ string, _ time.Duration) {
		if name == script {
			scripts.Add(1)
		}
	}})
	s.create(t, change)
	return s, scripts
}

// A large message that was there once does not make those after it slow.
func TestSmallMessagesAfterALargeOne(t *testing.T) {
	t.Parallel()
	s, receives := openCounting(t, "receive", func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 30 << 10 })
	s.send(t, &semantics.Message{MessageID: "large", Body: make([]byte, 20<<20)})
	batch, err := s.Receive(t.Context(), orders, 1000, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 1 {
		t.Fatal(len(batch.Messages), err)
	}
	if _, err := s.Complete(t.Context(), orders, tokensOf(batch.Messages)); err != nil {
		t.Fatal(err)
	}
	s.send(t, messagesOf(1000, semantics.Message{Body: make([]byte, 100)})...)
	receives.Store(0)
	batch, err = s.Receive(t.Context(), orders, 1000, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 1000 || receives.Load() > 5 {
		t.Errorf("got %d messages with %d scripts (%v), want 1000 with 4", len(batch.Messages), receives.Load(), err)
	}
	peeks, err := s.Peek(t.Context(), orders, 0, 250, semantics.ShowAll)
	if err != nil || len(peeks) != 250 {
		t.Errorf("peek shows %d messages (%v), want 250", len(peeks), err)
	}
}

// Small messages of a session after a large one are as many at a time as those of any other.
func TestSmallMessagesOfASessionAfterALargeOne(t *testing.T) {
	t.Parallel()
	s, receives := openCounting(t, "turn", func(o *semantics.Options) {
		o.RequiresSession, o.SessionInFlight, o.MaxMessageSizeInKilobytes = true, 1000, 30<<10
	})
	s.send(t, &semantics.Message{MessageID: "large", SessionID: "a", Body: make([]byte, 20<<20)})
	s.send(t, messagesOf(500, semantics.Message{SessionID: "a", Body: make([]byte, 100)})...)
	held, err := s.AcceptSession(t.Context(), "orders", "a")
	if err != nil {
		t.Fatal(err)
	}
	source := semantics.Source{Path: "orders", SessionLock: held.Lock}
	for _, want := range []int{1, 500} {
		receives.Store(0)
		batch, err := s.Receive(t.Context(), source, 1000, semantics.RegisterNever)
		if err != nil || len(batch.Messages) != want || receives.Load() > 3 {
			t.Errorf("got %d messages with %d scripts (%v), want %d", len(batch.Messages), receives.Load(), err, want)
		}
	}
}

// Sizes are looked at where the messages are that are handed out: 20,000 before them that are deferred or locked cost
// nothing.
func TestSizesBehindManyOthers(t *testing.T) {
	t.Parallel()
	s, receives := openCounting(t, "receive", func(*semantics.Options) {})
	for range 20 {
		s.send(t, messagesOf(1000, semantics.Message{Body: []byte("x")})...)
	}
	far := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	pipe := s.raw.Pipeline()
	for n := 1; n <= 20_000; n++ { // as if all of them had been taken
		position := strconv.Itoa(n)
		if n%2 == 0 {
			pipe.ZAdd(t.Context(), s.key("deferred"), redis.Z{Score: float64(n), Member: position})
			continue
		}
		pipe.Do(t.Context(), "ZADD", s.key("locks"), far, position+":1")
	}
	pipe.HSet(t.Context(), s.key("entity"), "cursor", 20_000)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s.send(t, messagesOf(1, semantics.Message{Body: make([]byte, 200_000)})...)
	}
	batch, err := s.Receive(t.Context(), orders, 1000, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 10 || batch.Messages[0].SequenceNumber != 20_001 || receives.Load() != 1 {
		t.Errorf("got %d messages with %d scripts (%v), want 10 with one", len(batch.Messages), receives.Load(), err)
	}
}
