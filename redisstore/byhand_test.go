package redisstore_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// byHand is a queue whose messages were all changed and delivered before, and from whose log an operator removes the
// third right after the script of a verb has run, when the store has yet to read what the script locked.
type byHand struct {
	*sessions
	script  atomic.Pointer[string]
	log     string
	orphans []int64 // that the store told of

	settlesGone []semantics.LockToken
}

// ownText is the property that tells the messages apart; which of them has it is known from its message id.
const ownText = "own"

func openByHand(t *testing.T, requiresSession bool, changes ...func(*semantics.Options)) *byHand {
	t.Helper()
	h := &byHand{log: "log"}
	clock := storetest.NewClock()
	options := redisstore.Options{Now: clock.Now, Observe: func(name, _ string, _ time.Duration) {
		if wanted := h.script.Load(); wanted != nil && *wanted == name {
			h.script.Store(nil)
			h.remove(3)
		}
	}, Orphaned: func(_ string, positions []int64) { h.orphans = append(h.orphans, positions...) }}
	h.sessions = &sessions{t: t, clock: clock, swept: openSwept(t, options)}
	h.create(t, func(o *semantics.Options) {
		o.RequiresSession, o.SessionInFlight = requiresSession, 100
		for _, change := range changes {
			change(o)
		}
	})
	return h
}

func (h *byHand) remove(position int) {
	at := strconv.Itoa(position)
	ctx, log := h.t.Context(), h.key(h.log)
	for _, m := range h.raw.XRange(ctx, log, at, at).Val() {
		h.raw.XDel(ctx, log, m.ID)
	}
}

// fill puts six messages into a source, "m1" to "m6", each with a property of its own; every other one was delivered
// once more.
func (h *byHand) fill(source semantics.Source) {
	h.t.Helper()
	ctx := h.t.Context()
	for i := range 6 {
		h.send(h.t, part("a", fmt.Sprint("m", i+1)))
	}
	for _, m := range h.receiveIn(source, 10) {
		own := map[string]semantics.Value{ownText: semantics.String(m.MessageID)}
		h.settle(h.Abandon(ctx, source, tokensOf([]*semantics.Received{m}), semantics.AbandonOptions{Properties: own}))
	}
	for i, token := range tokensOf(h.receiveIn(source, 10)) {
		if i%2 == 0 {
			h.settle(h.Abandon(ctx, source, []semantics.LockToken{token}, semantics.AbandonOptions{}))
		} else {
			h.settle(h.Release(ctx, source, []semantics.LockToken{token}))
		}
	}
}

// all settles all there is by a verb.
func (h *byHand) all(source semantics.Source, verb func([]semantics.LockToken) ([]semantics.Code, error)) {
	h.t.Helper()
	h.settle(verb(tokensOf(h.receiveIn(source, 10))))
}

// What an operator removes takes neither properties nor delivery counts of its neighbours with it, and gives them none.
func TestSETTLE_5_PropertiesStayWithTheirMessage(t *testing.T) {
	t.Parallel()
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	numbers := []int64{1, 2, 3, 4, 5, 6}
	deadLetter := func(h *byHand, source semantics.Source) {
		h.all(source, func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.DeadLetter(t.Context(), source, tokens, semantics.DeadLetterTexts{}, nil)
		})
	}
	deferAll := func(h *byHand, source semantics.Source) {
		h.all(source, func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.Defer(t.Context(), source, tokens, nil)
		})
	}
	tests := []struct {
		script, what string
		sessions     bool
		log          string
		// deliveries that the answer counts beside the earlier ones; -1 where it has those of the dead letter
		base    int
		prepare func(h *byHand, source semantics.Source)
		call    func(h *byHand, source semantics.Source) ([]*semantics.Received, error)
	}{
		{script: "receive", what: "queue", base: 1, call: receiveAll},
		{
			script: "receive", what: "dead letters", log: "dead_log", base: -1, prepare: deadLetter,
			call: func(h *byHand, _ semantics.Source) ([]*semantics.Received, error) { return receiveAll(h, dead) },
		},
		{script: "turn", what: "session", sessions: true, base: 1, call: receiveAll},
		{
			script: "receive_by_number", what: "deferred", base: 1, prepare: deferAll,
			call: func(h *byHand, source semantics.Source) ([]*semantics.Received, error) {
				return h.ReceiveByNumber(t.Context(), source, semantics.Deferred, numbers)
			},
		},
		{
			script: "receive_by_number", what: "deferred in a session", sessions: true, base: 1, prepare: deferAll,
			call: func(h *byHand, source semantics.Source) ([]*semantics.Received, error) {
				return h.ReceiveByNumber(t.Context(), source, semantics.Deferred, numbers)
			},
		},
		{
			script: "receive_by_number", what: "active", base: 1,
			call: func(h *byHand, source semantics.Source) ([]*semantics.Received, error) {
				return h.ReceiveByNumber(t.Context(), source, semantics.Active, numbers)
			},
		},
		{
			script: "peek", what: "queue",
			call: func(h *byHand, source semantics.Source) ([]*semantics.Received, error) {
				h.remove(3) // its script gives whole messages
				return h.Peek(t.Context(), source, 1, 100, semantics.ShowAll)
			},
		},
		{
			script: "begin_transfer", what: "queue",
			call: func(h *byHand, source semantics.Source) ([]*semantics.Received, error) {
				must(t, makeQueue(t, h.Store, archive.Path))
				h.forwardTo(archive.Path)
				return begin(t, h.Store, source, archive.Path, 10).Messages, nil
			},
		},
		{
			script: "begin_resubmission", what: "dead letters", log: "dead_log", base: -1, prepare: deadLetter,
			call: func(h *byHand, _ semantics.Source) ([]*semantics.Received, error) {
				must(t, makeQueue(t, h.Store, archive.Path))
				to, err := h.Destination(t.Context(), archive.Path)
				must(t, err)
				begun, err := h.BeginResubmission(t.Context(), dead, to, numbers, semantics.Resubmitting{})
				return begun.Messages, err
			},
		},
	}
	for _, test := range tests {
		t.Run(test.script+"/"+test.what, func(t *testing.T) {
			t.Parallel()
			h := openByHand(t, test.sessions)
			source := orders
			if test.sessions {
				source = h.accept("a")
			}
			h.fill(source)
			if test.prepare != nil {
				test.prepare(h, source)
			}
			if test.log != "" {
				h.log = test.log
			}
			h.script.Store(&test.script)
			messages, err := test.call(h, source)
			must(t, err)
			var ids []string
			for _, m := range messages {
				ids = append(ids, m.MessageID)
				if own := m.Properties[ownText]; own != semantics.String(m.MessageID) {
					t.Errorf("message %s has the property of %v", m.MessageID, own)
				}
				earlier := 2 - int(m.SequenceNumber+1)%2
				if test.base >= 0 && m.DeliveryCount != earlier+test.base {
					t.Errorf("message %s: delivery count %d, want %d", m.MessageID, m.DeliveryCount, earlier+test.base)
				}
			}
			if want := []string{"m1", "m2", "m4", "m5", "m6"}; !slices.Equal(ids, want) {
				t.Errorf("messages %v, want %v", ids, want)
			}
		})
	}
}

func receiveAll(h *byHand, source semantics.Source) ([]*semantics.Received, error) {
	batch, err := h.Receive(h.t.Context(), source, 10, semantics.RegisterNever)
	return batch.Messages, err
}

// forwardTo lets the queue forward from now on.
func (h *byHand) forwardTo(path string) {
	h.t.Helper()
	entity, err := h.GetEntity(h.t.Context(), semantics.QueueKind, "orders")
	h.fails("get", err)
	entity.Options.ForwardTo = path
	_, err = h.UpdateEntity(h.t.Context(), semantics.QueueKind, "orders", entity.Options, []string{"forwardTo"})
	h.fails("update", err)
}

// What is kept of a message that an operator removed is dropped when somebody comes across it, and that is told.
func TestRECV_4_DroppedOrphansAreReported(t *testing.T) {
	t.Parallel()
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	take := func(h *byHand) []semantics.LockToken { return tokensOf(h.receiveIn(orders, 1)) }
	for name, c := range map[string]struct {
		log     string
		prepare func(h *byHand)
		use     func(h *byHand) error
	}{
		"deferred, peek": {
			prepare: func(h *byHand) { h.settle(h.Defer(t.Context(), orders, take(h), nil)) },
			use: func(h *byHand) error {
				_, err := h.Peek(t.Context(), orders, 1, 10, semantics.ShowDeferred)
				return err
			},
		},
		"deferred, by number": {
			prepare: func(h *byHand) { h.settle(h.Defer(t.Context(), orders, take(h), nil)) },
			use: func(h *byHand) error {
				_, _ = h.ReceiveByNumber(t.Context(), orders, semantics.Deferred, []int64{1})
				return nil
			},
		},
		"expired": {
			prepare: func(*byHand) {},
			use: func(h *byHand) error {
				h.clock.Advance(time.Hour)
				return h.sweep()
			},
		},
		"locked for the last time": {
			prepare: func(h *byHand) { take(h) },
			use: func(h *byHand) error {
				h.clock.Advance(2 * time.Minute)
				return h.sweep()
			},
		},
		"locked, dead letter": {
			prepare: func(h *byHand) { h.settlesGone = take(h) },
			use: func(h *byHand) error {
				_, err := h.DeadLetter(t.Context(), orders, h.settlesGone, semantics.DeadLetterTexts{}, nil)
				return err
			},
		},
		"dead letter, peek": {
			log: "dead_log",
			prepare: func(h *byHand) {
				h.settle(h.DeadLetter(t.Context(), orders, take(h), semantics.DeadLetterTexts{}, nil))
			},
			use: func(h *byHand) error {
				_, err := h.Peek(t.Context(), dead, 1, 10, semantics.ShowAll)
				return err
			},
		},
		"scheduled": {
			log:     "scheduled",
			prepare: func(*byHand) {},
			use: func(h *byHand) error {
				h.clock.Advance(time.Minute)
				return h.sweep()
			},
		},
		"scheduled, cancel": {
			log:     "scheduled",
			prepare: func(*byHand) {},
			use: func(h *byHand) error {
				_, err := h.CancelScheduledByID(t.Context(), "orders", []string{"m"})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openByHand(t, false, func(o *semantics.Options) { o.MaxDeliveryCount = 1 })
			if c.log != "" {
				h.log = c.log
			}
			m := &semantics.Message{MessageID: "m", TimeToLive: ofMinutes(30)}
			if h.log == "scheduled" {
				m.ScheduledAt = h.clock.Now().Add(time.Minute)
			}
			h.send(t, m)
			c.prepare(h)
			if len(h.orphans) != 0 {
				t.Fatalf("orphans before: %v", h.orphans)
			}
			h.remove(1)
			must(t, c.use(h))
			if !slices.Equal(h.orphans, []int64{1}) {
				t.Errorf("orphans %v, want 1", h.orphans)
			}
		})
	}
}

func (h *byHand) sweep() error {
	broker := brokerOver(h.Store)
	defer broker.Close()
	return h.SweepOnce(h.t.Context(), broker)
}
