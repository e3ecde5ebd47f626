package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// lossRun is a history of a Redis that forgets, again and again, while the same sidecars work on it.
type lossRun struct {
	t         *testing.T
	ctx       context.Context
	rng       *rand.Rand // of the losses
	seed      uint64
	server    *redistest.Forgetful
	clock     *redistest.SlowClock // by which all come to the server
	namespace string
	store     *redisstore.Store // past all sidecars: makes entities, and looks at them
	sidecars  []member
	outside   []*outside // those that are processes
	sockets   string     // a folder
	launched  int
	calls     []*call      // about sessions, of all rounds, with the losses
	quiet     sync.RWMutex // is held by every call whose answer has an instant in it
	*round

	operations, losses, setBacks, kills int
	latest                              time.Duration // by which upkeep came
}

const members = 3

// What the entities of a loss history are for.
const (
	work    = "work"    // a queue that detects duplicates
	inOrder = "inorder" // a queue with sessions
	from    = "from"    // forwards to archive
	archive = "archive"
	shelf   = "shelf" // has no receiver: messages there expire and become dead letters
	news    = "news"  // a topic
)

// Locks are short, so that what is left locked comes back soon.
const (
	workLock    = time.Second
	sessionLock = 500 * time.Millisecond
)

// colors are the subjects of messages, by which subscriptions choose.
var colors = []string{"red", "green", "blue"}

func newLossRun(t *testing.T, seed uint64) *lossRun {
	t.Helper()
	r := &lossRun{
		t: t, ctx: t.Context(), seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), namespace: redistest.Namespace(),
		server: redistest.StartForgetful(t),
	}
	r.clock = redistest.OpenSlowClock(t, r.server.URL)
	r.server.WhileGone = r.setBack
	r.store = redistest.Open(t, redisstore.Options{URL: r.clock.URL, Namespace: r.namespace})
	return r
}

// any returns one of the sidecars.
func (r *lossRun) any(rng *rand.Rand) member { return r.sidecars[rng.IntN(len(r.sidecars))] }

// round is one loss and what is done around it, from empty entities to empty entities.
type round struct {
	number int
	loss   redistest.Loss
	marked span // when the instant was chosen to which Redis comes back
	lost   span // when it did

	mu         sync.Mutex
	slow       slow
	sends      []*lossSend
	batches    []*lossBatch
	timesSent  map[string]int // by text
	sizes      map[string]int // of bodies, by text
	deliveries []*taking
	blind      map[string][]span    // receives by source that may have taken messages for good, unseen
	changes    map[string][]*change // of subscriptions, by their name

	bytesLeft, messagesLeft int
	killed                  bool // a sidecar was

	sending, changing, receiving atomic.Bool
}

// forgets reports whether the loss takes anything but scripts.
func (r *round) forgets() bool { return r.loss != redistest.ScriptFlush }

// stays reports whether what was done in a span of time is there after the loss; maybe reports that this is unknown.
func (r *round) stays(done span) (stays, maybe bool) {
	switch {
	case !r.forgets(), !done.began.Before(r.lost.ended):
		return true, false
	case r.loss.ForgetsAll():
		return false, !done.ended.Before(r.lost.began)
	case !done.ended.After(r.marked.began):
		return true, false
	default:
		return false, done.began.Before(r.marked.ended) || done.ended.After(r.lost.began)
	}
}

func (r *round) add(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// play lets all work before, between and after the mark and the loss, and then until nothing is left.
func (r *lossRun) play(number int, loss redistest.Loss) {
	r.t.Helper()
	r.round = &round{
		number: number, loss: loss, timesSent: map[string]int{}, sizes: map[string]int{}, blind: map[string][]span{},
		changes: map[string][]*change{}, bytesLeft: roundBytes, messagesLeft: roundMessages,
	}
	if loss.EndsRedis() && r.rng.IntN(2) == 0 {
		r.slow.back = 10 * time.Millisecond * time.Duration(storetest.RandomLogUniform(r.rng, 360_000))
		r.setBacks++
	}
	r.makeEntities()
	r.server.Prepare(r.t, loss)
	r.sending.Store(true)
	r.changing.Store(true)
	r.receiving.Store(true)
	var sending, changing, receiving sync.WaitGroup
	r.startAll(&sending, &changing, &receiving)

	r.disturb()()
	r.pause(100, 200)
	hoard := r.hoard()
	r.marked.began = time.Now()
	r.server.Mark(r.t, loss)
	r.marked.ended = time.Now()
	r.pause(50, 200)
	r.disturb()()
	hoard = append(hoard, r.hoard()...)
	restore := r.disturb()
	r.lost.began = time.Now()
	r.server.Lose(r.t, loss)
	r.lost.ended = time.Now()
	restore()
	if loss.ForgetsAll() {
		r.makeEntities()
	}
	fresh := r.hoard() // perhaps of the same messages, whose new locks the old ones must not end
	r.settleHoard(hoard)
	r.settleHoard(fresh)
	r.pause(150, 300)
	r.disturb()()

	r.changing.Store(false)
	changing.Wait()
	r.pause(50, 100)
	r.sending.Store(false)
	sending.Wait()
	if r.slow.back > longBack {
		r.awaitNew()
	} else {
		sidecartest.Eventually(r.t, "everything is received", r.isEmpty)
	}
	if r.slow.back > 0 {
		r.setRight()
		sidecartest.Eventually(r.t, "everything is received by the right clock", r.isEmpty)
	}
	r.receiving.Store(false)
	receiving.Wait()
	r.noteLoss()
}

// rest waits, but not longer than the test lasts.
func (r *lossRun) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

// pause lets the others work for some milliseconds.
func (r *lossRun) pause(least, most int) {
	r.rest(time.Duration(least+r.rng.IntN(most-least)) * time.Millisecond)
}

// noteLoss puts the loss among the calls about sessions.
func (r *lossRun) noteLoss() {
	if !r.forgets() {
		return
	}
	what := "lose"
	if r.loss.ForgetsAll() {
		what = "lose all"
	}
	r.calls = append(r.calls,
		&call{what: "mark", began: r.marked.began, ended: r.marked.ended},
		&call{what: what, began: r.lost.began, ended: r.lost.ended, until: r.marked.ended, shift: r.slow.back})
	if r.slow.back > 0 {
		r.calls = append(r.calls, &call{what: "set right", began: r.slow.righted.began, ended: r.slow.righted.ended, shift: -r.slow.back})
	}
}

// makeEntities makes what is not there.
func (r *lossRun) makeEntities() {
	r.t.Helper()
	queue := func(path string, change func(*semantics.Options)) {
		options := semantics.DefaultOptions()
		options.LockDuration, options.MaxDeliveryCount, options.MaxMessageSizeInKilobytes = workLock, 1000, 2*maxBody>>10
		change(&options)
		r.persist("make "+path, func() error {
			_, _, err := r.store.CreateEntity(r.ctx, semantics.QueueKind, path, options)
			return err
		})
	}
	queue(work, func(o *semantics.Options) {
		o.RequiresDuplicateDetection, o.DuplicateDetectionHistoryTimeWindow = true, time.Hour
	})
	queue(inOrder, func(o *semantics.Options) { o.RequiresSession, o.LockDuration = true, sessionLock })
	queue(archive, func(*semantics.Options) {})
	queue(from, func(o *semantics.Options) { o.ForwardTo = archive })
	queue(shelf, func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = true })
	r.persist("make "+news, func() error {
		options := semantics.DefaultOptions()
		options.MaxMessageSizeInKilobytes = 2 * maxBody >> 10
		_, _, err := r.store.CreateEntity(r.ctx, semantics.TopicKind, news, options)
		return err
	})
	for i, name := range steady {
		r.makeSubscription(r.sidecars[0], name, colors[:1+i])
	}
}

// persist does something until it succeeds: after a loss each connection fails once.
func (r *lossRun) persist(what string, do func() error) {
	r.t.Helper()
	sidecartest.Eventually(r.t, what, func() bool {
		err := do()
		if err != nil && semantics.CodeOf(err) != semantics.StoreUnavailable {
			r.t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

// isEmpty reports whether nothing is left to be received, activated, forwarded or expired.
func (r *lossRun) isEmpty() bool {
	for _, path := range r.sources() {
		counts, err := r.store.Runtime(r.ctx, semantics.QueueKind, path)
		if semantics.CodeOf(err) == semantics.EntityNotFound {
			continue // a subscription that was deleted
		}
		if counts.Deferred > 0 {
			r.takeDeferred(path)
		}
		dead := counts.DeadLetter
		if path != shelf {
			dead = 0
		}
		if err != nil || counts.Active+counts.Scheduled+counts.Transfer+counts.TransferDeadLetter+dead > 0 {
			return false
		}
	}
	counts, err := r.store.Runtime(r.ctx, semantics.TopicKind, news)
	return err == nil && counts.Scheduled == 0
}

// sources are all that has messages of its own.
func (r *lossRun) sources() []string {
	all := []string{work, inOrder, from, archive, shelf}
	for _, name := range append(append([]string{}, steady...), fickle...) {
		all = append(all, semantics.SubscriptionPath(news, name))
	}
	return all
}

// unexpected fails the test for an error that no loss explains.
func (r *lossRun) unexpected(what string, err error) {
	r.t.Helper()
	switch semantics.CodeOf(err) {
	case "", semantics.StoreUnavailable, semantics.Cancelled:
	case semantics.EntityNotFound, semantics.EntityAlreadyExists, semantics.RuleNotFound, semantics.RuleAlreadyExists:
	case semantics.MessageNotFound, semantics.MessageLockLost, semantics.SessionLockLost, semantics.SessionCannotBeLocked:
	default:
		r.t.Errorf("round %d, %s: %s: %v", r.number, r.loss, what, err)
	}
}

// destinations are where a message must come to, as far as that is known.
func (r *round) destinations(s *lossSend) (paths []string) {
	switch s.target {
	case from:
		return []string{archive}
	case news:
		for name := range r.changes {
			if chosen, known := r.choice(name, s.color, r.decided(s)); known && chosen && !r.isDeletedAfter(name, s.first) {
				paths = append(paths, semantics.SubscriptionPath(news, name))
			}
		}
		return paths
	default:
		return []string{s.target}
	}
}

// lossOutcome returns the outcome of a call by its error.
func lossOutcome(err error) outcome {
	switch e := semantics.AsError(err); {
	case err == nil:
		return done
	case e.Details[semantics.DetailOutcome] == semantics.OutcomeUnknown:
		return unknown
	case e.Code == semantics.MessageLockLost, e.Code == semantics.SessionLockLost:
		return lost
	case e.Code == semantics.SessionCannotBeLocked:
		return refused
	default:
		return nothing
	}
}

func (r *lossRun) text(worker, i int) string { return fmt.Sprintf("%d/%d/%d", r.number, worker, i) }
