package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// run is one history in the making.
type run struct {
	t    testing.TB
	ctx  context.Context
	rng  *rand.Rand // of the faults
	seed uint64

	namespace string
	sockets   string            // a folder
	store     *redisstore.Store // past all sidecars: makes the queue, and looks at it in the end
	lock      time.Duration
	most      int // MaxDeliveryCount
	inFlight  int
	sessions  []string

	record record
	posts  []*post // of the holders, then of the senders
	all    []*process
	stop   chan struct{} // closed when no client sends any more
	calm   atomic.Bool   // from now on everything is done right
	over   atomic.Bool

	deferredMu sync.Mutex
	deferred   map[string][]int64
}

// post is where an application finds its sidecar, which may be replaced.
type post struct {
	run *run
	now atomic.Pointer[process]
}

func (s *post) take() *process { return s.now.Load() }

// any returns the sidecar of any post.
func (s *post) any(rng *rand.Rand) *process { return s.run.posts[rng.IntN(len(s.run.posts))].take() }

const (
	holders = 4
	senders = 2
)

func newRun(t testing.TB, seed uint64) *run {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	r := &run{
		t: t, ctx: t.Context(), rng: rng, seed: seed, namespace: redistest.Namespace(), stop: make(chan struct{}),
		lock: time.Duration(500+100*rng.IntN(4)) * time.Millisecond, most: 3 + rng.IntN(3), deferred: map[string][]int64{},
	}
	r.sockets = t.TempDir()
	r.store = redistest.Open(t, redisstore.Options{Namespace: r.namespace})
	for i := range 3 + rng.IntN(4) {
		r.sessions = append(r.sessions, fmt.Sprintf("session %d", i))
	}
	options := semantics.DefaultOptions()
	options.RequiresSession, options.LockDuration, options.MaxDeliveryCount = true, r.lock, int64(r.most)
	r.inFlight = 1 + rng.IntN(3)
	options.SessionInFlight = int64(r.inFlight)
	if _, _, err := r.store.CreateEntity(r.ctx, semantics.QueueKind, queue, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range r.all {
			_ = p.conn.Close()
		}
	})
	for range holders + senders {
		s := &post{run: r}
		r.posts = append(r.posts, s)
		r.launch(s)
	}
	return r
}

// launch puts a new sidecar on a post.
func (r *run) launch(s *post) {
	r.t.Helper()
	// A socket of its own: the port of a sidecar that is gone may become that of another one, which its clients would
	// then find.
	socket := "unix://" + filepath.Join(r.sockets, strconv.Itoa(len(r.all)))
	sidecar := sidecartest.Launch(r.t, "--store", redistest.URL(r.t), "--namespace", r.namespace, "--grpc-addr", socket, "--drain-timeout", "150ms")
	p, err := connect(sidecar)
	if err != nil {
		r.t.Fatal(err)
	}
	r.all = append(r.all, p)
	s.now.Store(p)
}

// pause waits, but not longer than the run lasts.
func (r *run) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

func (r *run) takeDeferred(session string) (number int64) {
	r.deferredMu.Lock()
	defer r.deferredMu.Unlock()
	if numbers := r.deferred[session]; len(numbers) > 0 {
		number, r.deferred[session] = numbers[0], numbers[1:]
	}
	return number
}

func (r *run) putDeferred(session string, number int64) {
	r.deferredMu.Lock()
	defer r.deferredMu.Unlock()
	r.deferred[session] = append(r.deferred[session], number)
}

// send sends one message after the other, each once, until it is told to stop.
func (r *run) send(sender int, s *post) {
	rng := rand.New(rand.NewPCG(r.seed, uint64(100+sender)))
	for i := 0; ; i++ {
		select {
		case <-r.stop:
			return
		default:
		}
		p, session, text := s.take(), r.sessions[rng.IntN(len(r.sessions))], fmt.Sprintf("%d/%d", sender, i)
		ctx, cancel := context.WithTimeout(r.ctx, patience)
		response, err := p.messages.Send(ctx, &sidebusv1.SendRequest{Target: source, Messages: []*sidebusv1.Message{{
			SessionId: &session, MessageId: proto.String(text), Content: &sidebusv1.Message_Text{Text: text},
		}}})
		cancel()
		if got, _ := outcomeOf(err); got == done {
			number := response.GetResults()[0].GetSequenceNumber()
			r.record.add(func() { r.record.sent[sender] = append(r.record.sent[sender], sent{session, text, number}) })
		}
		r.pause(time.Duration(rng.IntN(25)) * time.Millisecond)
	}
}

// play lets all work, with faults for a while and then without, until nothing is left to receive.
func (r *run) play(span time.Duration) {
	r.t.Helper()
	r.record.sent = make([][]sent, senders)
	var sending, holding sync.WaitGroup
	for i, s := range r.posts {
		if i < holders {
			h := &holder{run: r, rng: rand.New(rand.NewPCG(r.seed, uint64(1+i))), post: s, name: fmt.Sprintf("holder %d", i)}
			holding.Go(h.work)
		} else {
			sending.Go(func() { r.send(i-holders, s) })
		}
	}
	r.injectFaults(span)
	close(r.stop)
	sending.Wait()
	r.calm.Store(true)
	sidecartest.Eventually(r.t, "everything is received", func() bool {
		counts, err := r.store.Runtime(r.ctx, semantics.QueueKind, queue)
		return err == nil && counts.Available+counts.Locked == 0
	})
	r.over.Store(true)
	holding.Wait()
}
