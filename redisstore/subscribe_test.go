package redisstore_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// audience is a queue with many messages of all sizes, and what became of them.
type audience struct {
	*swept

	t       *testing.T
	broker  *broker.Broker
	auditor *audit.Auditor
	options stream.Options
	done    map[string]int // by number, which is what a body begins with
}

const manyMessages = 1000

// gather sends messages of 1 byte to 256 KiB, and one of 1 MiB.
func gather(t *testing.T, options stream.Options, sessions int) *audience {
	t.Helper()
	ledger := redistest.NewLedger(time.Now)
	s := openSwept(t, redisstore.Options{})
	a := &audience{
		swept: s, t: t, auditor: audit.New(s.raw, s.namespace).With(ledger), options: options, done: map[string]int{},
		broker: broker.New(ledger.Keep(s.Store)),
	}
	t.Cleanup(a.broker.Close)
	s.create(t, func(o *semantics.Options) {
		o.MaxMessageSizeInKilobytes, o.MaxDeliveryCount, o.LockDuration = 2<<10, 1, 5*time.Minute
		o.RequiresSession, o.SessionInFlight = sessions > 0, 1000
	})
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same each time
	for i := range manyMessages {
		size := min(256<<10, int(math.Exp(random.Float64()*math.Log(256<<10))))
		if i == manyMessages/2 {
			size = 1 << 20
		}
		text := strconv.Itoa(i+1) + " "
		m := &semantics.Message{Body: []byte(text + strings.Repeat(".", max(size-len(text), 0)))}
		if sessions > 0 {
			m.SessionID = fmt.Sprint(i % sessions)
		}
		if _, err := a.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// take reads a stream until so many messages are done, and ends it then.
func (a *audience) take(most int) {
	a.t.Helper()
	sub, err := a.broker.Subscribe(a.t.Context(), orders, a.options)
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(a.t.Context(), redistest.Patience)
	defer cancel()
	for len(a.done) < most {
		e, err := sub.Next(ctx)
		if err != nil {
			a.t.Fatalf("%d done: %v", len(a.done), err)
		}
		if e.Delivery == nil {
			if e.SessionOpened == nil && e.SessionClosed == nil {
				a.t.Fatalf("%d done: %+v", len(a.done), e)
			}
			continue
		}
		var tokens []semantics.LockToken
		for _, m := range e.Delivery.Messages {
			number, _, _ := strings.Cut(string(m.Body), " ")
			if m.DeliveryCount != 1 {
				a.t.Errorf("message %s is delivered for the %dth time", number, m.DeliveryCount)
			}
			a.done[number]++
			tokens = append(tokens, m.LockToken)
		}
		sub.Delivered(ctx, e)
		a.wantLocked()
		if a.options.Mode == semantics.PeekLock {
			codes, err := sub.Settle(ctx, tokens, a.broker.Complete)
			for _, code := range codes {
				if code != "" || err != nil {
					a.t.Fatal(codes, err)
				}
			}
		}
	}
	sub.Close(ctx)
	if err := a.auditor.Audit(ctx, "orders"); err != nil {
		a.t.Errorf("%d done: %v", len(a.done), err)
	}
}

// wantLocked checks that no more is locked than the stream may have.
func (a *audience) wantLocked() {
	a.t.Helper()
	r, err := a.broker.Runtime(a.t.Context(), semantics.QueueKind, "orders")
	if err != nil {
		a.t.Fatal(err)
	}
	if most := int64(a.options.Credits + a.options.Prefetch); r.Locked > most {
		a.t.Fatalf("%d are locked, with credits and prefetch there may be %d", r.Locked, most)
	}
}

// A stream gives each message of any size once, when all are settled. Nothing is locked that is neither with the client
// nor fetched ahead, and nothing at all when the stream has ended.
func TestRECV_13_EachOnceOfAllSizes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		credits, prefetch, sessions int
		mode                        semantics.Mode
	}{
		"one at a time":                   {credits: 1},
		"many":                            {credits: 1000},
		"ahead":                           {credits: 7, prefetch: 50},
		"as much ahead as may be":         {credits: 1000, prefetch: 1000},
		"for good":                        {credits: 30, prefetch: 30, mode: semantics.ReceiveAndDelete},
		"in sessions":                     {credits: 100, sessions: 20},
		"in sessions, for good":           {credits: 100, sessions: 20, mode: semantics.ReceiveAndDelete},
		"in few sessions, with one place": {credits: 10, sessions: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := stream.DefaultOptions()
			options.Credits, options.Prefetch, options.Mode = c.credits, c.prefetch, c.mode
			options.MaxSessions, options.SessionInFlight, options.SessionIdle = max(1, c.sessions/3), 50, 0
			a := gather(t, options, c.sessions)
			a.take(manyMessages / 3)
			a.take(manyMessages)
			for number, times := range a.done {
				if times != 1 {
					t.Errorf("message %s came %d times", number, times)
				}
			}
			r, err := a.broker.Runtime(t.Context(), semantics.QueueKind, "orders")
			if err != nil || r.Active+r.DeadLetter != 0 || len(a.done) != manyMessages {
				t.Errorf("%d came, %+v is left, %v", len(a.done), r, err)
			}
		})
	}
}
