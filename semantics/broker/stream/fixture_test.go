package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// testLock is the LockDuration of the queues of these tests.
const testLock = 30 * time.Second

// stand is a Broker in a bubble with a queue "orders" and a queue with sessions, "tales".
type stand struct {
	*broker.Broker

	t     *testing.T
	store *pliantStore
}

// inBubble runs a test in a bubble, where time passes only when all goroutines wait.
func inBubble(t *testing.T, test func(t *testing.T, s *stand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stand{t: t, store: &pliantStore{Store: memstore.New()}}
		s.Broker = broker.New(s.store)
		t.Cleanup(s.Close)
		s.create("orders", semantics.Options{})
		s.create("tales", semantics.Options{RequiresSession: true}, "requiresSession")
		test(t, s)
	})
}

func (s *stand) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) create(name string, options semantics.Options, given ...string) {
	s.t.Helper()
	options.LockDuration = testLock
	_, err := s.CreateEntity(s.t.Context(), semantics.QueueKind, name, options, append(given, "lockDuration"))
	s.ok(err)
}

func (s *stand) change(name string, options semantics.Options, given ...string) {
	s.t.Helper()
	_, err := s.UpdateEntity(s.t.Context(), semantics.QueueKind, name, options, given)
	s.ok(err)
}

// send stores one message for each text; "a/1" is of session "a".
func (s *stand) send(queue string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		session, _, isOfSession := strings.Cut(text, "/")
		if !isOfSession {
			session = ""
		}
		_, err := s.Send(s.t.Context(), semantics.ToQueue(queue), []*semantics.Message{{SessionID: session, Body: []byte(text)}})
		s.ok(err)
	}
}

// sendMany stores n messages "prefix1" to "prefixn".
func (s *stand) sendMany(queue, prefix string, n int) {
	s.t.Helper()
	for i := range n {
		s.send(queue, fmt.Sprint(prefix, i+1))
	}
}

// counts shows how many messages of a queue are in which state.
func (s *stand) counts(queue string) string {
	s.t.Helper()
	r, err := s.Runtime(s.t.Context(), semantics.QueueKind, queue)
	s.ok(err)
	return fmt.Sprintf("available %d locked %d dead %d", r.Available, r.Locked, r.DeadLetter)
}

func (s *stand) wantCounts(queue, want string) {
	s.t.Helper()
	if got := s.counts(queue); got != want {
		s.t.Errorf("%s: %s, want %s", queue, got, want)
	}
}

// peeked shows the messages of a queue with their delivery counts.
func (s *stand) peeked(queue string) string {
	s.t.Helper()
	messages, err := s.Peek(s.t.Context(), semantics.Source{Path: queue}, 0, 250, 0)
	s.ok(err)
	var all []string
	for _, m := range messages {
		all = append(all, fmt.Sprintf("%s:%d", m.Body, m.DeliveryCount))
	}
	return strings.Join(all, " ")
}

func (s *stand) wantPeeked(queue, want string) {
	s.t.Helper()
	if got := s.peeked(queue); got != want {
		s.t.Errorf("%s has %q, want %q", queue, got, want)
	}
}

// pass lets time pass.
func (s *stand) pass(d time.Duration) { <-time.After(d) }
