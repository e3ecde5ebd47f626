package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// slowHands are handlers that work until they are let go, and note what they get.
type slowHands struct {
	t     *testing.T
	begun chan string
	goOn  chan struct{} // closed, or one for each handler

	mu       sync.Mutex
	got      []string
	running  int
	most     int
	sessions map[string]bool
}

func newSlowHands(t *testing.T) *slowHands {
	t.Helper()
	return &slowHands{t: t, begun: make(chan string, 100), goOn: make(chan struct{}), sessions: map[string]bool{}}
}

func (s *slowHands) handle(ctx context.Context, m *client.HandledMessage) error {
	text, session := string(m.Body), sessionID(m)
	s.mu.Lock()
	s.got = append(s.got, text)
	s.running++
	s.most = max(s.most, s.running)
	if session != "" && s.sessions[session] {
		s.t.Errorf("%s began while another message of session %s was handled", text, session)
	}
	s.sessions[session] = true
	s.mu.Unlock()
	s.begun <- text
	select {
	case <-s.goOn:
	case <-s.t.Context().Done(): // the test has failed
		return nil
	}
	if err := ctx.Err(); err != nil {
		s.t.Errorf("the context of %s, which nobody else has any more, ended: %v", text, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.sessions[session] = false
	return nil
}

// begins waits for the beginning of so many handlers.
func (s *slowHands) begins(n int) (all []string) {
	s.t.Helper()
	for range n {
		select {
		case text := <-s.begun:
			all = append(all, text)
		case <-time.After(patience):
			s.t.Fatalf("only %d handlers began, want %d", len(all), n)
		}
	}
	slices.Sort(all)
	return all
}

func removing(source string, credits int32) *sidebusv1.SubscribeOpen {
	return &sidebusv1.SubscribeOpen{Source: source, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE, Credits: &credits}
}

// Only what handlers have begun with is removed, and what they have no time for is there for others.
func TestRECV_1_HandleRemovesWhatItBeginsWith(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for i := range 6 {
		s.send(t, fmt.Sprint(i))
	}
	hands := newSlowHands(t)
	h := s.handle(t, removing(orders, 2), hands.handle)
	hands.begins(2)
	if left := texts(s.receive(t)); left != "2 3 4 5" {
		t.Errorf("others get %q, want all but what is handled", left)
	}
	h.stop()
	close(hands.goOn)
	if err := h.ends(t); err != nil {
		t.Error(err)
	}
	s.counted(t, orders, "available 0 locked 4 dead 0")
	if len(hands.got) != 2 {
		t.Errorf("handled %v, want two messages", hands.got)
	}
}

// There are never more handlers than credits, and nothing is lost, also of what was fetched ahead.
func TestRECV_13_HandleRemovesWithinItsCredits(t *testing.T) {
	t.Parallel()
	for _, prefetch := range []int32{0, 4} {
		t.Run(fmt.Sprint("prefetch ", prefetch), func(t *testing.T) {
			t.Parallel()
			s := start(t, memstore.New())
			want := []string{}
			for i := range 20 {
				want = append(want, fmt.Sprintf("%02d", i))
				s.send(t, want[i])
			}
			hands := newSlowHands(t)
			open := removing(orders, 3)
			open.Prefetch = prefetch
			h := s.handle(t, open, hands.handle)
			hands.begins(3)
			for range 9 {
				hands.goOn <- struct{}{}
				hands.begins(1)
			}
			h.stop()
			close(hands.goOn)
			if err := h.ends(t); err != nil {
				t.Error(err)
			}
			if hands.most != 3 {
				t.Errorf("%d handlers at a time, want 3", hands.most)
			}
			got := hands.got
			for _, m := range s.receive(t) {
				got = append(got, m.GetText())
				if m.GetDeliveryCount() != 1 {
					t.Errorf("message %s has failed %d times", m.GetText(), m.GetDeliveryCount()-1)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("handled or left are %v, want each message once", got)
			}
		})
	}
}

// Messages of a session that wait for its handler are not removed.
func TestSESS_10_HandleRemovesInSessions(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	w := &wire{sidecar: s, messages: s.messages, sessions: s.sessions}
	w.tell(t, "s", "1", "2", "3", "4")
	hands := newSlowHands(t)
	open := removing(tales, 4)
	open.SessionInFlight = proto.Int32(3)
	h := s.handle(t, open, hands.handle)
	hands.begins(1)
	hands.goOn <- struct{}{}
	hands.begins(1)
	s.counted(t, tales, "available 0 locked 2 dead 0")
	h.stop()
	close(hands.goOn)
	if err := h.ends(t); err != nil {
		t.Error(err)
	}
	s.wantPeeked(t, tales, "3:0 4:0")
	if want := []string{"1", "2"}; !slices.Equal(hands.got, want) {
		t.Errorf("handled %v, want %v", hands.got, want)
	}
}

// completing is what becomes of a completion. It may carry it out, or release the message.
type completing func(complete, release func() ([]semantics.Code, error)) ([]semantics.Code, error)

// completionStore is a memstore whose first completion goes as a test wants.
type completionStore struct {
	*memstore.Store

	first completing

	mu    sync.Mutex
	tries int
}

func (s *completionStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	s.mu.Lock()
	s.tries++
	isFirst := s.tries == 1
	s.mu.Unlock()
	complete := func() ([]semantics.Code, error) { return s.Store.Complete(ctx, source, tokens) }
	if isFirst {
		return s.first(complete, func() ([]semantics.Code, error) { return s.Release(ctx, source, tokens) })
	}
	return complete()
}

func (s *completionStore) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries
}

func storeIsAway(_, _ func() ([]semantics.Code, error)) ([]semantics.Code, error) {
	return nil, errDown
}

// A message comes to the handler if, and only if, it was removed.
func TestRECV_1_HandlerGetsWhatWasRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first completing
		tries int
		tells string
	}{
		"the lock is lost": {func(complete, release func() ([]semantics.Code, error)) ([]semantics.Code, error) {
			if _, err := release(); err != nil {
				return nil, err
			}
			return complete()
		}, 2, "MESSAGE_LOCK_LOST"},
		"the store is away": {storeIsAway, 2, ""},
		"the store's answer is lost": {func(complete, _ func() ([]semantics.Code, error)) ([]semantics.Code, error) {
			if _, err := complete(); err != nil {
				return nil, err
			}
			return nil, semantics.Errorf(semantics.StoreUnavailable, "no answer").With(semantics.DetailOutcome, semantics.OutcomeUnknown)
		}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &completionStore{Store: memstore.New(), first: c.first}
			s := start(t, store)
			s.send(t, "x")
			handled, failures := make(chan *client.HandledMessage, 10), make(chan error, 10)
			h := s.handle(t, removing(orders, 1), func(_ context.Context, m *client.HandledMessage) error {
				handled <- m
				return nil
			}, onError(func(err error) { failures <- err }))
			var m *client.HandledMessage
			select {
			case m = <-handled:
			case <-time.After(patience):
				t.Fatal("it was not handled")
			}
			if m.DeliveryCount != 1 {
				t.Errorf("delivery %d, want the first that counts", m.DeliveryCount)
			}
			h.stop()
			if err := h.ends(t); err != nil {
				t.Error(err)
			}
			s.counted(t, orders, "available 0 locked 0 dead 0")
			if n := store.tried(); len(handled) > 0 || n != c.tries {
				t.Errorf("handled %d times after %d removals, want once after %d", 1+len(handled), n, c.tries)
			}
			close(failures)
			var told error
			for err := range failures {
				told = errors.Join(told, err)
			}
			if (told != nil) != (c.tells != "") || told != nil && !errors.Is(told, client.Code(c.tells)) {
				t.Errorf("told of %v, want %q", told, c.tells)
			}
		})
	}
}

// After a removal of unknown outcome a lost lock means that the message is removed, unless the lock may have expired:
// then another receiver may have the message, and it is not handled twice.
func TestRECV_3_RemovalOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outage time.Duration
		want   int
	}{"the lock lasts": {30 * time.Second, 1}, "the lock may have expired": {2 * time.Minute, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times := 0
			playingOver(t, removing(orders, 1), func(context.Context, *client.HandledMessage) error {
				times++
				return nil
			}, func(t *testing.T, p *puppet, _ handled) {
				for began := time.Now(); time.Since(began) < c.outage; {
					r := p.next()
					if r.GetSettle() == nil {
						continue // credits
					}
					p.answers(r, unclear, nil)
				}
				p.settles(nil, new("MESSAGE_LOCK_LOST"))
				if c.want == 0 {
					p.tells("MESSAGE_LOCK_LOST")
				}
				synctest.Wait()
				if times != c.want {
					t.Errorf("handled %d times, want %d", times, c.want)
				}
			})
		})
	}
}

// Without a lock there is nothing to settle.
func TestRECV_3_HandledMessageWithoutLock(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.send(t, "x")
	outcomes := make(chan error, 3)
	s.handle(t, removing(orders, 1), func(ctx context.Context, m *client.HandledMessage) error {
		if m.LockToken != "" || m.LockedUntil != nil {
			t.Errorf("got %v", m)
		}
		outcomes <- m.Complete(ctx)
		outcomes <- m.Abandon(ctx, nil)
		return errors.New("of manual settlement")
	}, manual, onError(func(err error) { outcomes <- errors.Unwrap(err) }))
	for range 2 {
		var refused *client.Error
		if err := <-outcomes; !errors.As(err, &refused) || string(refused.Code) != "INVALID_OPERATION" {
			t.Errorf("got %v, want INVALID_OPERATION", err)
		}
	}
	if err := <-outcomes; err.Error() != "of manual settlement" {
		t.Errorf("told of %v", err)
	}
}

// A message whose settlement was refused once does not keep its credit, and does not come again.
func TestERR_3_HandleSettlesWhenTheStoreIsBack(t *testing.T) {
	t.Parallel()
	store := &completionStore{Store: memstore.New(), first: storeIsAway}
	s := start(t, store)
	s.send(t, "1")
	s.send(t, "2")
	hands := newSlowHands(t)
	close(hands.goOn)
	s.handle(t, &sidebusv1.SubscribeOpen{Source: orders}, hands.handle)
	hands.begins(2)
	s.counted(t, orders, "available 0 locked 0 dead 0")
	if n := store.tried(); n != 3 || len(hands.begun) > 0 {
		t.Errorf("%d completions, want 3, and %d handlers more", n, len(hands.begun))
	}
}

// restarted returns a sidecar that comes in the place of one that stops.
func restarted(t *testing.T, s *sidecar, over store) *sidecar {
	t.Helper()
	s.stop()
	wait(t, "end of the first sidecar", s.done)
	next := launch(t, over, func(c *proxy.Config) { c.GRPCAddr = s.proxy.GRPCAddr().String() })
	wait(t, "start", next.proxy.Started())
	return next
}

// The handler of a removed message goes on when its stream ends, and counts beside those of the next stream.
func TestRECV_13_RemovedMessageOutlivesItsStream(t *testing.T) {
	t.Parallel()
	over := memstore.New()
	first := start(t, over)
	first.send(t, "1")
	hands := newSlowHands(t)
	h := first.handle(t, removing(orders, 1), hands.handle)
	hands.begins(1)
	second := restarted(t, first, over)
	second.send(t, "2")
	second.counted(t, orders, "available 0 locked 1 dead 0") // it has come, and waits
	close(hands.goOn)
	hands.begins(1)
	h.stop()
	if err := h.ends(t); err != nil {
		t.Error(err)
	}
	second.counted(t, orders, "available 0 locked 0 dead 0")
	if hands.most != 1 {
		t.Errorf("%d handlers at a time, want 1", hands.most)
	}
}

// So it is with sessions: one handler at a time for each, and others beside it.
func TestSESS_10_RemovedMessageOutlivesItsStream(t *testing.T) {
	t.Parallel()
	over := memstore.New()
	first := start(t, over)
	first.openTales(t, "")
	w := &wire{sidecar: first, messages: first.messages, sessions: first.sessions}
	w.tell(t, "s", "1", "2")
	hands := newSlowHands(t)
	h := first.handle(t, removing(tales, 4), hands.handle)
	hands.begins(1)
	second := restarted(t, first, over)
	w = &wire{sidecar: second, messages: second.messages, sessions: second.sessions}
	w.tell(t, "other", "3")
	if got := hands.begins(1); got[0] != "3" {
		t.Errorf("began with %v, want 3", got)
	}
	second.counted(t, tales, "available 0 locked 1 dead 0") // 2 has come, and waits for 1
	close(hands.goOn)
	hands.begins(1)
	h.stop()
	if err := h.ends(t); err != nil {
		t.Error(err)
	}
	second.counted(t, tales, "available 0 locked 0 dead 0")
}

// Turn is by Complete and Receive, with what they do here.
func (s *completionStore) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
