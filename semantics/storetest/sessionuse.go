package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// The uses that sessions must serve: first in, first out, and request and reply.
var sessionUseTests = []ruleTest{
	testSESS_1_FIFOUnderCompetingHolders,
	testSESS_24_IdleHolderBlocksOnlyItsOwn,
	testSESS_30_OrderWhateverFails,
	testRR_2_RepliesToTheRequester,
	testRR_3_ReplyByTheHeadersOfTheRequest,
	testRR_4_LockedBeforeTheRequest,
}

// sessionWork is senders and holders at work on a few sessions.
type sessionWork struct {
	h        *fixture
	stores   []semantics.Store
	sessions []string
	total    int

	mu   sync.Mutex
	done map[string][]*semantics.Received // what was completed, in order, by session
	left int
	end  context.CancelFunc
}

func (h *fixture) newSessionWork(sessions, total int) (*sessionWork, context.Context) {
	w := &sessionWork{h: h, stores: []semantics.Store{h.Store}, total: total, left: total, done: map[string][]*semantics.Received{}}
	if h.Peer != nil {
		w.stores = append(w.stores, h.Peer(), h.Peer())
	}
	for i := range sessions {
		w.sessions = append(w.sessions, fmt.Sprint("session ", i))
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	w.end = cancel
	return w, ctx
}

// send sends n messages to sessions drawn at random; the ids tell who sent them and as which.
func (w *sessionWork) send(sender, n int) {
	random := rand.New(rand.NewPCG(uint64(sender), 30))
	b := w.h.newBroker(w.stores[sender%len(w.stores)])
	for i := 0; i < n; {
		var batch []*semantics.Message
		for range min(1+random.IntN(3), n-i) {
			batch = append(batch, part(w.sessions[random.IntN(len(w.sessions))], fmt.Sprintf("%d/%04d", sender, i)))
			i++
		}
		if _, err := b.Send(w.h.t.Context(), semantics.ToQueue(orders.Path), batch); err != nil {
			w.h.t.Error(err)
		}
	}
}

// complete completes a message and notes it in the same breath, so that the notes have the order of the completions.
func (w *sessionWork) complete(b *broker.Broker, source semantics.Source, m *semantics.Received) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	codes, err := b.Complete(context.WithoutCancel(w.h.t.Context()), source, tokensOf(m))
	switch {
	case err != nil:
		w.h.t.Error(err)
	case codes[0] == "":
		w.done[m.SessionID] = append(w.done[m.SessionID], m)
		if w.left--; w.left == 0 {
			w.end()
		}
		return true
	case codes[0] != semantics.SessionLockLost:
		w.h.t.Errorf("completing message %d: %s", m.SequenceNumber, codes[0])
	}
	return false
}

// hold accepts one session after the other and works on it until everything is done. Every mishap-th message something
// goes wrong; 0: never.
func (w *sessionWork) hold(ctx context.Context, holder, mishap int) {
	random := rand.New(rand.NewPCG(uint64(holder), 31))
	b := w.h.newBroker(w.stores[holder%len(w.stores)])
	for ctx.Err() == nil {
		a, err := b.AcceptSession(ctx, orders.Path, broker.AcceptOptions{MaxWait: time.Minute})
		switch {
		case semantics.CodeOf(err) == semantics.Cancelled:
			return
		case err != nil:
			w.h.t.Error(err)
			return
		case a.Session != nil:
			w.work(ctx, b, a.Source(), random, mishap)
		}
		if mishap > 0 && random.IntN(8) == 0 { // its sidecar starts again, somewhere else
			b.Close()
			b = w.h.newBroker(w.stores[random.IntN(len(w.stores))])
		}
	}
}

// work receives and completes until the session has nothing, or is lost.
func (w *sessionWork) work(ctx context.Context, b *broker.Broker, source semantics.Source, random *rand.Rand, mishap int) {
	for {
		delivery, err := b.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: 1 + random.IntN(4)})
		if code := semantics.CodeOf(err); code == semantics.Cancelled || mishap > 0 && code == semantics.SessionLockLost {
			return
		} else if err != nil {
			w.h.t.Error(err)
			return
		}
		rest := delivery.Messages
		if len(rest) == 0 || mishap > 0 && random.IntN(10) == 0 {
			w.check(b.CloseSession(context.WithoutCancel(ctx), source), mishap) // with locked messages
			return
		}
		for len(rest) > 0 {
			if mishap == 0 || random.IntN(mishap) > 0 {
				if !w.complete(b, source, rest[0]) {
					return
				}
				rest = rest[1:]
				continue
			}
			switch random.IntN(3) {
			case 0: // it is gone, and all that hold anything are so slow that they lose it
				w.h.Advance(lock)
				return
			case 1:
				_, err = b.Abandon(context.WithoutCancel(ctx), source, tokensOf(rest...), semantics.AbandonOptions{})
			case 2:
				_, err = b.Release(context.WithoutCancel(ctx), source, tokensOf(rest...))
			}
			w.check(err, mishap)
			break
		}
	}
}

func (w *sessionWork) check(err error, mishap int) {
	if err != nil && (mishap == 0 || semantics.CodeOf(err) != semantics.SessionLockLost) {
		w.h.t.Error(err)
	}
}

// run lets senders and holders work and checks that every message was completed once, those of a session in their
// order.
func (w *sessionWork) run(ctx context.Context, senders, holders, mishap int) {
	w.h.t.Helper()
	var all sync.WaitGroup
	for i := range holders {
		all.Go(func() { w.hold(ctx, i, mishap) })
	}
	for i := range senders {
		all.Go(func() { w.send(i, w.total/senders) })
	}
	all.Wait()
	w.end()
	if w.left != 0 {
		w.h.t.Fatalf("%d of %d messages are not done", w.left, w.total)
	}
	for id, messages := range w.done {
		last := map[string]string{}
		for i, m := range messages {
			if m.SessionSequence != int64(i+1) {
				w.h.t.Fatalf("session %q: message %d was completed as number %d", id, m.SessionSequence, i+1)
			}
			if i > 0 && m.SequenceNumber <= messages[i-1].SequenceNumber {
				w.h.t.Fatalf("session %q: number %d follows %d", id, m.SequenceNumber, messages[i-1].SequenceNumber)
			}
			if sender := m.MessageID[:1]; m.MessageID <= last[sender] {
				w.h.t.Fatalf("session %q: %s follows %s of the same sender", id, m.MessageID, last[sender])
			}
			last[m.MessageID[:1]] = m.MessageID
		}
	}
	w.h.wantCounts(0, 0, 0)
}

func testSESS_1_FIFOUnderCompetingHolders(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(1)) // so that nothing may be delivered twice
	w, ctx := h.newSessionWork(7, 240)
	w.run(ctx, 4, 5, 0)
	h.wantNumbers(h.peek(deadOrders))
}

func testSESS_30_OrderWhateverFails(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(math.MaxInt32), sessionInFlight(3))
	w, ctx := h.newSessionWork(5, 240)
	w.run(ctx, 3, 6, 12)
}

func testSESS_24_IdleHolderBlocksOnlyItsOwn(_ *testing.T, h *fixture) {
	h.createSessions()
	for range 2 {
		h.sendEach("a", "b", "c")
	}
	h.receiveOne(h.accept("b")) // and sits on it
	for _, source := range h.wantNext("a", "c") {
		got := h.receive(source, 9)
		h.same(len(got), 2)
		h.complete(source, got...)
		h.closeSession(source)
	}
	h.Advance(lock - ms)
	h.sendEach("c")
	h.wantNext("c")
	h.Advance(ms)
	h.pass(h.wantNext("b")[0], 2, 5)
}

// Two applications send to one queue of requests and get their replies, and no others, from one queue of replies.
func testRR_2_RepliesToTheRequester(t *testing.T, h *fixture) {
	h.createSessions(forbidsAcceptNext)
	h.createNamed("requests")
	send := func(queue string, m *semantics.Message) {
		h.ok(second(h.broker.Send(t.Context(), semantics.ToQueue(queue), []*semantics.Message{m})))
	}
	apps := map[string]semantics.Source{}
	for range 2 {
		id := semantics.NewRandomUUID().String()
		apps[id] = h.accept(id)
	}
	for id := range apps {
		for n := range 3 {
			m := &semantics.Message{MessageID: fmt.Sprint(id[:8], " asks ", n), ReplyTo: orders.Path, ReplyToSessionID: id}
			if n == 2 {
				m.CorrelationID = "its own of " + id[:8]
			}
			send("requests", m)
		}
	}
	requests := semantics.Source{Path: "requests"}
	asked := h.receive(requests, 9)
	for i := range asked { // in another order
		m := asked[(i*5+3)%len(asked)]
		reply := &semantics.Message{SessionID: m.ReplyToSessionID, CorrelationID: m.CorrelationID, Body: []byte("reply to " + m.MessageID)}
		if reply.CorrelationID == "" { // RR-3
			reply.CorrelationID = m.MessageID
		}
		send(m.ReplyTo, reply)
		h.complete(requests, m)
	}
	for id, source := range apps {
		got := map[string]string{}
		for _, m := range h.receive(source, 9) {
			got[m.CorrelationID] = string(m.Body)
			h.complete(source, m)
		}
		h.same(got, map[string]string{
			id[:8] + " asks 0":     "reply to " + id[:8] + " asks 0",
			id[:8] + " asks 1":     "reply to " + id[:8] + " asks 1",
			"its own of " + id[:8]: "reply to " + id[:8] + " asks 2",
		})
	}
	h.wantCounts(0, 0, 0)
}

func testRR_3_ReplyByTheHeadersOfTheRequest(t *testing.T, h *fixture) {
	h.createSessions()
	h.createNamed("requests")
	app := h.accept("app 1")
	for want, request := range map[string]*semantics.Message{
		"of the application": {MessageID: "1", CorrelationID: "of the application", ReplyTo: orders.Path, ReplyToSessionID: "app 1"},
		"2":                  {MessageID: "2", ReplyTo: orders.Path, ReplyToSessionID: "app 1"},
	} {
		h.ok(second(h.broker.Send(t.Context(), semantics.ToQueue("requests"), []*semantics.Message{request})))
		got := h.receiveOne(semantics.Source{Path: "requests"})
		h.same([]string{got.ReplyTo, got.ReplyToSessionID, got.SessionID}, []string{orders.Path, "app 1", ""})
		reply := &semantics.Message{SessionID: got.ReplyToSessionID, CorrelationID: got.CorrelationID}
		if reply.CorrelationID == "" {
			reply.CorrelationID = got.MessageID
		}
		h.ok(second(h.broker.Send(t.Context(), semantics.ToQueue(got.ReplyTo), []*semantics.Message{reply})))
		answer := h.receiveOne(app)
		h.same([]string{answer.SessionID, answer.CorrelationID}, []string{"app 1", want})
		h.complete(app, answer)
	}
}

func testRR_4_LockedBeforeTheRequest(t *testing.T, h *fixture) {
	h.createSessions(forbidsAcceptNext, locksFor(30*time.Second))
	app := semantics.NewRandomUUID().String()
	source := h.accept(app) // although there is no such session yet
	done := h.elsewhere().waiting(t.Context(), source, 9)
	h.notFree(app)
	h.refused(semantics.InvalidOperation, func() error {
		return second(h.broker.AcceptSession(t.Context(), orders.Path, broker.AcceptOptions{}))
	})
	h.Advance(30*time.Second - ms)
	h.renewSession(source)
	h.sendTo(app, 1) // the reply, as soon as the request was sent
	h.complete(source, h.awaitNumbers(done, 1).Messages...)
	h.notFree(app)
	h.sendTo("of another", 1)
	h.receiveNone(source)
}
