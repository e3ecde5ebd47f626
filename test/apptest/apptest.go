// Package apptest runs an app behind each wire that delivers messages to one, push and Dapr, on a real Redis. Messages
// of all sizes are sent, the app answers in all ways, and the sidecar stops at any moment and another one takes its
// place. At any moment the locked messages are those that were delivered and are not settled. In the end each message
// is where the app's answer put it.
package apptest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// Verb is how an app answers a message.
type Verb string

// The answers of an app. None is for a message that was taken back before the app had answered.
const (
	None       Verb = ""
	Complete   Verb = "complete"
	Abandon    Verb = "abandon"
	Release    Verb = "release"
	Defer      Verb = "defer"
	DeadLetter Verb = "dead-letter"
	Leave      Verb = "leave" // Complete, by a call of the app's own: App.CompleteLater
)

// Wire is one way to deliver messages to an app.
type Wire struct {
	// Verbs are the answers that an app may give, Complete among them.
	Verbs []Verb

	// Start runs a sidecar that delivers the messages of a queue to App.Take, at most so many at a time, and settles
	// them as the app answers. stop ends the sidecar, then calls App.LetGo, and returns when all of its goroutines have
	// ended.
	Start func(t *testing.T, broker *broker.Broker, queue string, atATime int, app *App) (stop func())
}

// Bounds of one run.
const (
	stops       = 4
	mostTakes   = 80      // before a stop
	mostOpen    = 60      // messages that wait or are with the app
	mostAtATime = 16      // with the app
	bodyLimit   = 1 << 20 // the largest body that fits beside the properties in a message of that size
	auditEvery  = 20      // messages that the app takes, because it reads all bodies
	sessions    = 20      // more than are with the app, so that other receivers get some
	lockTime    = 5 * time.Minute
)

// Run runs the app behind a wire, for queues without sessions and with them.
func Run(t *testing.T, wire Wire) {
	t.Helper()
	for round := range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(round, " seed ", seed), func(t *testing.T) {
			t.Parallel()
			run(t, wire, rand.New(&sharedSource{source: rand.NewPCG(seed, 0)}), round%2 == 1)
		})
	}
}

// sharedSource is a source of random numbers for several goroutines.
type sharedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (s *sharedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}

func run(t *testing.T, wire Wire, random *rand.Rand, hasSessions bool) {
	t.Helper()
	namespace, ledger := redistest.Namespace(), redistest.NewLedger(time.Now)
	client := redis.NewClient(redistest.ClientOptions(t, redistest.URL(t)))
	t.Cleanup(func() { _ = client.Close() })
	raw := redistest.Open(t, redisstore.Options{Namespace: namespace})
	a := newApp(t, wire, random, hasSessions)
	a.raw, a.auditor = raw, audit.New(client, namespace).With(ledger)
	a.create()
	kept := store{ledger.Keep(raw), a}
	a.sender = broker.New(kept, broker.WithRules(filter.Compile))
	defer a.sender.Close()
	for range stops {
		a.playUntilAStop(kept)
	}
	a.playToTheEnd(kept)
}

func (a *App) create() {
	a.t.Helper()
	options := semantics.DefaultOptions()
	options.LockDuration, options.MaxMessageSizeInKilobytes = lockTime, bodyLimit>>10
	options.MaxDeliveryCount, options.RequiresSession = a.mostFailures, a.hasSessions
	if _, _, err := a.raw.CreateEntity(a.t.Context(), semantics.QueueKind, queue, options); err != nil {
		a.t.Fatal(err)
	}
}

// queue is the queue of all runs; each run has a namespace of its own.
const queue = "orders"

// start starts another sidecar with a Broker of its own.
func (a *App) start(kept store) (b *broker.Broker, stop func()) {
	a.t.Helper()
	b = broker.New(kept, broker.WithRules(filter.Compile))
	end := a.wire.Start(a.t, b, queue, a.atATime, a)
	return b, func() {
		end()
		b.Close()
	}
}

// playUntilAStop sends messages, lets the app answer them, and stops the sidecar at some moment, with a drain or
// without.
func (a *App) playUntilAStop(kept store) {
	a.t.Helper()
	a.begin(a.random.IntN(a.atATime), a.wire.Verbs)
	broker, stop := a.start(kept)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		a.sendUntilOver()
	}()
	a.awaitTaken(a.taken() + 1 + a.random.IntN(mostTakes))
	if a.random.IntN(2) == 0 { // else it stops without a drain
		broker.BeginDrain()
		a.answerSome(a.random.IntN(a.atATime))
		if err := broker.ReleaseHeld(context.WithoutCancel(a.t.Context())); err != nil {
			a.t.Error(err)
		}
	}
	stop()
	a.over()
	<-sent
	a.wantRest(broker)
}

// playToTheEnd runs a last sidecar that delivers all messages that are left, and the app completes them.
func (a *App) playToTheEnd(kept store) {
	a.t.Helper()
	a.begin(0, []Verb{Complete})
	broker, stop := a.start(kept)
	a.awaitAllSettled()
	stop()
	a.over()
	a.wantRest(broker)
	a.checkBooks()
}

// wantRest checks that no message is locked when a sidecar has stopped.
func (a *App) wantRest(broker *broker.Broker) {
	a.t.Helper()
	wantNothingOut(a.t, a.raw, broker, queue)
	a.audit()
	if a.t.Failed() {
		a.t.FailNow()
	}
}
