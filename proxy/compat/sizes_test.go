package compat_test

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Each message of any size comes once, for good or under lock, and nothing else is locked.
func TestRECV_2_EachOnceOfAllSizes(t *testing.T) {
	t.Parallel()
	redistest.OnBoth(t, eachOnceOfAllSizes)
}

func eachOnceOfAllSizes(t *testing.T, store semantics.Store, audit func(path string) error) {
	const messages = 1000
	s := startOver(t, store)
	s.create(semantics.QueueKind, "large", semantics.Options{MaxMessageSizeInKilobytes: 2 << 10}, "maxMessageSizeInKilobytes")
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same each time
	for i := range messages {
		size := int(math.Exp(random.Float64() * math.Log(255<<10)))
		if i == messages/2 {
			size = 1 << 20
		}
		text := strconv.Itoa(i+1) + " "
		m := &semantics.Message{Body: []byte(text + strings.Repeat(".", max(size-len(text), 0)))}
		if _, err := s.broker.Send(t.Context(), semantics.ToQueue("large"), []*semantics.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	came, hand := map[string]int{}, []string{}
	note := func(a answer) {
		number, _, _ := strings.Cut(a.body, " ")
		came[number]++
	}
	for len(came) < messages {
		if random.IntN(2) == 0 {
			note(s.want(http.StatusOK, http.MethodDelete, "/large/messages/head?timeout=0", ""))
			awaitCount(t, "completed", s.store.completed)
		} else {
			a := s.want(http.StatusCreated, http.MethodPost, "/large/messages/head?timeout=0", "")
			note(a)
			hand = append(hand, s.lockPath(a))
		}
		for len(hand) > 10 || len(came) == messages && len(hand) > 0 {
			s.want(http.StatusOK, http.MethodDelete, hand[0], "")
			awaitCount(t, "completed", s.store.completed)
			hand = hand[1:]
		}
		if r, err := s.broker.Runtime(t.Context(), semantics.QueueKind, "large"); err != nil || int(r.Locked) != len(hand) {
			t.Fatalf("%d are locked, %d in hand, %v", r.Locked, len(hand), err)
		}
		if len(came)%50 == 0 || len(came) == messages { // it reads all bodies, so not each time
			if err := audit("large"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.want(http.StatusNoContent, http.MethodDelete, "/large/messages/head?timeout=0", "")
	for number, times := range came {
		if times != 1 {
			t.Errorf("message %s came %d times", number, times)
		}
	}
}

// A lock that another sidecar has given is settled by message id, however large the messages are that are locked before
// it.
func TestREST_6_LargeLocksOfAnotherSidecar(t *testing.T) {
	t.Parallel()
	redistest.OnBoth(t, func(t *testing.T, store semantics.Store, _ func(path string) error) {
		s := startOver(t, store)
		s.create(semantics.QueueKind, "large", semantics.Options{MaxMessageSizeInKilobytes: 2 << 10}, "maxMessageSizeInKilobytes")
		for _, id := range []string{"a", "b", "c"} {
			m := &semantics.Message{MessageID: id, Body: make([]byte, 1<<20)}
			if _, err := s.broker.Send(t.Context(), semantics.ToQueue("large"), []*semantics.Message{m}); err != nil {
				t.Fatal(err)
			}
		}
		var last *semantics.Received
		for range 3 {
			batch, err := store.Receive(t.Context(), semantics.Source{Path: "large"}, 1, semantics.RegisterNever)
			if err != nil {
				t.Fatal(err)
			}
			last = batch.Messages[0]
		}
		s.want(http.StatusNotFound, http.MethodDelete, "/large/messages/other/"+last.LockToken.String(), "")
		s.want(http.StatusOK, http.MethodDelete, "/large/messages/c/"+last.LockToken.String(), "")
	})
}
