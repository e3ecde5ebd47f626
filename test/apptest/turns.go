package apptest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Deliver runs a sidecar that delivers the messages of a queue with sessions, one of a session at a time. It passes
// each to take, and completes it if take returns true; else it leaves it without an answer. stop ends the sidecar and
// returns when all of its goroutines have ended.
type Deliver func(t *testing.T, on semantics.Store, queue string, take func(body string, count int) bool) (stop func())

// FailInTurns lets a sidecar or its Redis fail in the turn that completes the first of three messages of a session and
// takes the second one: the script has run, and the sidecar does not have its answer.
func FailInTurns(t *testing.T, deliver Deliver) {
	t.Helper()
	for _, c := range []struct {
		name string
		fail func(f *failure, turn func() []semantics.TurnOutcome) []semantics.TurnOutcome
		// What the app gets until the sidecar ends and then from another one, each as "<body> <delivery count>".
		first, then string
		later       time.Duration // the other sidecar begins
	}{
		// The sidecar knows that it does not know what it took, and releases that first (SESS-25).
		{"the answer is lost", (*failure).loseAnswer, "1 1, 2 1, 3 1", "", 0},
		// The lock says that message 2 was handed out, and ends with the session's (SESS-22).
		{"the sidecar is killed", (*failure).kill, "1 1", "2 2, 3 1", time.Hour},
		// What was completed comes again, and with it what followed, in order, uncounted (DUR-4).
		{"Redis forgets", (*failure).forget, "1 1, 2 1", "1 1, 2 1, 3 1", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := openFailure(t)
			f.fail = c.fail
			f.run(deliver, f.there, c.first)
			if c.then != "" {
				f.fail = nil
				f.run(deliver, f.open(f.url, c.later), c.then)
			}
		})
	}
}

// failure is a queue with three messages of a session, and a store of a sidecar that fails in its first turn that
// completes.
type failure struct {
	t         *testing.T
	namespace string
	url       string
	client    *redis.Client
	cut       *redistest.Cutter
	there     *redisstore.Store
	scripts   chan struct{} // has an item when a script has run
	fail      func(f *failure, turn func() []semantics.TurnOutcome) []semantics.TurnOutcome
	once      sync.Once
	failed    chan struct{} // closed after the failure
}

func openFailure(t *testing.T) *failure {
	t.Helper()
	server := redistest.Start(t)
	t.Cleanup(server.Stop)
	f := &failure{
		t: t, namespace: redistest.Namespace(), url: server.URL, cut: redistest.OpenCutter(t, server.URL),
		client: redis.NewClient(redistest.ClientOptions(t, server.URL)), scripts: make(chan struct{}, 1), failed: make(chan struct{}),
	}
	t.Cleanup(func() { _ = f.client.Close() })
	f.there = f.open(f.cut.URL, 0)
	options := semantics.DefaultOptions()
	options.RequiresSession, options.SessionInFlight = true, 1
	if _, _, err := f.there.CreateEntity(t.Context(), semantics.QueueKind, queue, options); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		m := &semantics.Message{MessageID: fmt.Sprint(i), SessionID: "a", Body: []byte(fmt.Sprint(i + 1))}
		if _, err := f.there.Send(t.Context(), queue, []*semantics.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// open opens the store of a sidecar that runs some time later.
func (f *failure) open(url string, later time.Duration) *redisstore.Store {
	f.t.Helper()
	s := redistest.Open(f.t, redisstore.Options{
		URL: url, Namespace: f.namespace, Now: func() time.Time { return time.Now().Add(later) },
		Observe: func(string, string, time.Duration) {
			select {
			case f.scripts <- struct{}{}:
			default:
			}
		},
	})
	if _, err := s.Check(f.t.Context()); err != nil { // loads the scripts, so that no first try is lost
		f.t.Fatal(err)
	}
	return s
}

// run lets a sidecar deliver until the app has got what is expected, and stops it. What is beyond that gets no answer.
func (f *failure) run(deliver Deliver, on *redisstore.Store, wanted string) {
	f.t.Helper()
	want := strings.Split(wanted, ", ")
	var mu sync.Mutex
	var got []string
	all := make(chan struct{})
	stop := deliver(f.t, failing{on, f}, queue, func(body string, count int) bool {
		mu.Lock()
		defer mu.Unlock()
		if len(got) == len(want) {
			return false
		}
		if got = append(got, fmt.Sprint(body, " ", count)); len(got) == len(want) {
			close(all)
		}
		return true
	})
	f.await(all, wanted)
	if f.fail != nil {
		f.await(f.failed, "the failure")
	}
	if strings.HasSuffix(wanted, "3 1") {
		f.awaitEmpty(on)
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		f.t.Errorf("got %q, want %q", got, want)
	}
}

func (f *failure) await(event <-chan struct{}, what string) {
	f.t.Helper()
	select {
	case <-event:
	case <-time.After(redistest.Patience):
		f.t.Fatalf("not within %s: %s", redistest.Patience, what)
	}
}

// awaitEmpty waits until the queue has no message, and audits it.
func (f *failure) awaitEmpty(on *redisstore.Store) {
	f.t.Helper()
	for {
		counts, err := on.Runtime(f.t.Context(), semantics.QueueKind, queue)
		if err != nil {
			f.t.Fatal(err)
		}
		if counts.Available+counts.Locked == 0 {
			break
		}
		f.await(f.scripts, "the queue is empty")
	}
	if err := audit.New(f.client, f.namespace).Audit(f.t.Context(), queue); err != nil {
		f.t.Error(err)
	}
}

// loseAnswer lets the answer of the turn get lost. Where the sidecar uses all its connections for something else, the
// turn makes another one, which also needs an answer; so its script has not run, and the turn is tried again.
func (f *failure) loseAnswer(turn func() []semantics.TurnOutcome) []semantics.TurnOutcome {
	for {
		f.cut.Deaf.Store(true)
		outcomes := turn()
		f.cut.Deaf.Store(false)
		if err := outcomes[0].Err; err == nil || semantics.IsOutcomeUnknown(err) {
			return outcomes
		}
		if _, err := f.there.Runtime(f.t.Context(), semantics.QueueKind, queue); err != nil { // makes a connection
			f.t.Error(err)
			return outcomes
		}
	}
}

// kill does so for good: what the sidecar does from then on does not get to Redis, and it has nothing for its app.
func (f *failure) kill(turn func() []semantics.TurnOutcome) []semantics.TurnOutcome {
	defer f.cut.Cut()
	return f.loseAnswer(turn)
}

// forget sets Redis back to just before the turn, whose answer arrives.
func (f *failure) forget(turn func() []semantics.TurnOutcome) []semantics.TurnOutcome {
	past := redistest.Remember(f.t, f.client, f.namespace)
	outcomes := turn()
	past.Return(f.t)
	return outcomes
}

// failing is a store that fails.
type failing struct {
	*redisstore.Store

	failure *failure
}

// Turn implements semantics.Sessions.
func (s failing) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	turn := func() []semantics.TurnOutcome { return s.Store.Turn(ctx, path, turns) }
	completes := slices.ContainsFunc(turns, func(t semantics.Turn) bool { return len(t.Complete) > 0 })
	var outcomes []semantics.TurnOutcome
	if completes && s.failure.fail != nil {
		s.failure.once.Do(func() {
			outcomes = s.failure.fail(s.failure, turn)
			close(s.failure.failed)
		})
	}
	if outcomes == nil {
		outcomes = turn()
	}
	return outcomes
}
