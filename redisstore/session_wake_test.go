package redisstore_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// A script wakes the sessions of a sidecar with one message, and those of a sidecar of an older version, whose name has
// no "+", with one each.
func TestRECV_10_SessionsAreWokenTogether(t *testing.T) {
	t.Parallel()
	s := openSessions(t)
	for session, holder := range map[string]string{"a": "new+:T1", "b": "old:T2", "c": "new+:T3", "d": "old:T4"} {
		s.accept(session)
		s.fails("wait", s.raw.HSet(t.Context(), s.key("session_waiting"), session, holder).Err())
	}
	toNew, toOld := s.listen("new+"), s.listen("old")
	var messages []*semantics.Message
	for _, session := range []string{"a", "b", "c", "d"} {
		messages = append(messages, part(session, session))
	}
	s.send(t, messages...)
	s.same(s.told(toNew, 1), "1 T1 T3")
	s.same(s.told(toOld, 2), "1 T2", "1 T4")
	if n := s.raw.HLen(t.Context(), s.key("session_waiting")).Val(); n != 0 {
		t.Errorf("%d sessions still wait", n)
	}
}

// listen subscribes to what is published to a sidecar.
func (s *sessions) listen(sidecar string) *redis.PubSub {
	s.t.Helper()
	channel := s.raw.SSubscribe(s.t.Context(), s.key("session_waiting")+":"+sidecar)
	s.t.Cleanup(func() { _ = channel.Close() })
	_, err := channel.Receive(s.t.Context())
	s.fails("subscribe", err)
	return channel
}

// told returns the next messages, sorted.
func (s *sessions) told(channel *redis.PubSub, n int) (all []string) {
	s.t.Helper()
	for range n {
		m, err := channel.ReceiveMessage(s.t.Context())
		s.fails("hear", err)
		all = append(all, m.Payload)
	}
	slices.Sort(all)
	return all
}

func (s *sessions) same(got []string, want ...string) {
	s.t.Helper()
	if !slices.Equal(got, want) {
		s.t.Errorf("got %q, want %q", got, want)
	}
}
