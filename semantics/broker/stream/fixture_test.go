package stream_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// errAway is a store that cannot be reached.
var errAway = &semantics.Error{Code: semantics.StoreUnavailable, Message: "away"}

// testLock is the LockDuration of the queues of these tests.
const testLock = 30 * time.Second

// stand is a Broker in a bubble with a queue "orders" and a queue with sessions, "tales".
type stand struct {
	*broker.Broker

	t     *testing.T
	store *pliantStore
}

// inBubble runs a test in a bubble, where time passes only when all goroutines wait.
func inBubble(t *testing.T, test func(t *testing.T, s *stand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stand{t: t, store: &pliantStore{Store: memstore.New()}}
		s.Broker = broker.New(s.store)
		t.Cleanup(s.Close)
		s.create("orders", semantics.Options{})
		s.create("tales", semantics.Options{RequiresSession: true}, "requiresSession")
		test(t, s)
	})
}

func (s *stand) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) create(name string, options semantics.Options, given ...string) {
	s.t.Helper()
	options.LockDuration = testLock
	_, err := s.CreateEntity(s.t.Context(), semantics.QueueKind, name, options, append(given, "lockDuration"))
	s.ok(err)
}

func (s *stand) change(name string, options semantics.Options, given ...string) {
	s.t.Helper()
	_, err := s.UpdateEntity(s.t.Context(), semantics.QueueKind, name, options, given)
	s.ok(err)
}

// send stores one message for each text; "a/1" is of session "a".
func (s *stand) send(queue string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		session, _, isOfSession := strings.Cut(text, "/")
		if !isOfSession {
			session = ""
		}
		_, err := s.Send(s.t.Context(), semantics.ToQueue(queue), []*semantics.Message{{SessionID: session, Body: []byte(text)}})
		s.ok(err)
	}
}

// sendMany stores n messages "prefix1" to "prefixn".
func (s *stand) sendMany(queue, prefix string, n int) {
	s.t.Helper()
	for i := range n {
		s.send(queue, fmt.Sprint(prefix, i+1))
	}
}

// counts shows how many messages of a queue are in which state.
func (s *stand) counts(queue string) string {
	s.t.Helper()
	r, err := s.Runtime(s.t.Context(), semantics.QueueKind, queue)
	s.ok(err)
	return fmt.Sprintf("available %d locked %d dead %d", r.Available, r.Locked, r.DeadLetter)
}

func (s *stand) wantCounts(queue, want string) {
	s.t.Helper()
	if got := s.counts(queue); got != want {
		s.t.Errorf("%s: %s, want %s", queue, got, want)
	}
}

// peeked shows the messages of a queue with their delivery counts.
func (s *stand) peeked(queue string) string {
	s.t.Helper()
	messages, err := s.Peek(s.t.Context(), semantics.Source{Path: queue}, 0, 250, 0)
	s.ok(err)
	var all []string
	for _, m := range messages {
		all = append(all, fmt.Sprintf("%s:%d", m.Body, m.DeliveryCount))
	}
	return strings.Join(all, " ")
}

func (s *stand) wantPeeked(queue, want string) {
	s.t.Helper()
	if got := s.peeked(queue); got != want {
		s.t.Errorf("%s has %q, want %q", queue, got, want)
	}
}

// client is the client of a subscription. What it was delivered and has not settled is in hand.
type client struct {
	*stream.Subscription

	t         *testing.T
	stand     *stand
	unsettled map[string]semantics.LockToken // by text
	opened    map[string]semantics.LockToken // sessions, by id
	texts     map[semantics.LockToken]string // of all that was ever in hand

	carried []stream.Event // that are on their way to the client
}

// subscribe opens a subscription; options begin with the defaults.
func (s *stand) subscribe(queue string, change func(o *stream.Options)) *client {
	s.t.Helper()
	options := stream.DefaultOptions()
	if change != nil {
		change(&options)
	}
	sub, err := s.Subscribe(s.t.Context(), semantics.Source{Path: queue}, options)
	s.ok(err)
	p := &client{
		Subscription: sub, t: s.t, stand: s, unsettled: map[string]semantics.LockToken{}, opened: map[string]semantics.LockToken{},
		texts: map[semantics.LockToken]string{},
	}
	s.t.Cleanup(func() {
		for _, e := range p.carried {
			p.Undelivered(context.Background(), e)
		}
		p.Close(context.Background())
	})
	return p
}

// credits subscribes with so many credits.
func credits(n int) func(o *stream.Options) {
	return func(o *stream.Options) { o.Credits = n }
}

// event gives what there is for the client now. The caller says what became of it, or the end of the test does.
func (p *client) event() (stream.Event, error) {
	// which does not pass while something is going on
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Nanosecond)
	defer cancel()
	e, err := p.Next(ctx)
	p.carried = append(p.carried, e)
	return e, err
}

func (p *client) delivered(e stream.Event) {
	p.carried = slices.DeleteFunc(p.carried, func(other stream.Event) bool { return other.Delivery == e.Delivery })
	p.Delivered(p.t.Context(), e)
}

// takes reads all there is for the client now and shows it in one line. Session tokens are shown by their ids.
func (p *client) takes() string {
	p.t.Helper()
	var all []string
	for {
		e, err := p.event()
		if semantics.CodeOf(err) == semantics.Cancelled {
			return strings.Join(all, " ")
		}
		if err != nil {
			return strings.Join(append(all, "end:"+string(codeOrEOF(err))), " ")
		}
		all = append(all, p.note(e)...)
		p.delivered(e)
	}
}

func codeOrEOF(err error) semantics.Code {
	if err.Error() == "EOF" {
		return "EOF"
	}
	return semantics.CodeOf(err)
}

// note takes an event down and shows it.
func (p *client) note(e stream.Event) (all []string) {
	switch {
	case e.Delivery != nil:
		for _, m := range e.Delivery.Messages {
			all = append(all, string(m.Body))
			p.unsettled[string(m.Body)], p.texts[m.LockToken] = m.LockToken, string(m.Body)
		}
	case e.SessionOpened != nil:
		p.opened[e.SessionOpened.ID] = e.SessionOpened.Lock
		all = append(all, "+"+e.SessionOpened.ID)
	case e.SessionClosed != nil:
		delete(p.opened, e.SessionClosed.ID)
		all = append(all, fmt.Sprintf("-%s(%s)", e.SessionClosed.ID, ends[e.SessionClosed.Why]))
	case e.LocksLost != nil:
		for _, lost := range e.LocksLost {
			all = append(all, "lost:"+p.texts[lost])
		}
	default:
		all = append(all, "failure:"+string(e.Failure.Code))
	}
	return all
}

var ends = map[stream.SessionEnd]string{
	stream.SessionIdle: "idle", stream.SessionYielded: "yielded", stream.SessionClosed: "closed",
	stream.SessionLost: "lost", stream.SessionDrained: "drained", stream.SessionPaused: "paused",
}

// wants fails the test unless that is what there is for the client now. Between sessions there is no order.
func (p *client) wants(want string) {
	p.t.Helper()
	if got := p.takes(); !maps.EqualFunc(bySession(got), bySession(want), slices.Equal) {
		p.t.Fatalf("got %q, want %q", got, want)
	}
}

// bySession takes apart what takes has shown.
func bySession(shown string) map[string][]string {
	apart := map[string][]string{}
	for _, word := range strings.Fields(shown) {
		id, _, isOfSession := strings.Cut(strings.ReplaceAll(word, "(", "/"), "/")
		if !isOfSession && word[0] != '+' {
			id = ""
		}
		id = strings.Trim(id, "+-")
		apart[id] = append(apart[id], word)
	}
	return apart
}

// settle settles messages in hand and gives the codes.
func (p *client) settle(verb semantics.Settlement, texts ...string) string {
	p.t.Helper()
	tokens := make([]semantics.LockToken, len(texts))
	for i, text := range texts {
		tokens[i] = p.unsettled[text]
	}
	codes, err := p.Settle(p.t.Context(), tokens, verb)
	p.stand.ok(err)
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(codes), "[]")), " ")
}

func (p *client) complete(texts ...string) {
	p.t.Helper()
	if codes := p.settle(p.stand.Complete, texts...); codes != "" {
		p.t.Fatalf("complete %v: %s", texts, codes)
	}
}

func (p *client) abandon(texts ...string) {
	p.t.Helper()
	if codes := p.settle(p.stand.abandonment, texts...); codes != "" {
		p.t.Fatalf("abandon %v: %s", texts, codes)
	}
}

func (s *stand) abandonment(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.Abandon(ctx, source, tokens, semantics.AbandonOptions{})
}

// pass lets time pass.
func (s *stand) pass(d time.Duration) { <-time.After(d) }

// pliantStore is a memstore that a test can break and hold up.
type pliantStore struct {
	*memstore.Store

	mu     sync.Mutex
	outage error          // what calls fail with
	only   string         // the method that fails; empty: all
	lost   error          // what settlements fail with when their work is done
	calls  map[string]int // by method
	// a call of the method stops here until the test lets it go, after its work is done
	barrier map[string]chan struct{}
	gate    map[string]chan struct{} // the same before its work
}

// before counts a call and gives the outage, if there is one.
func (s *pliantStore) before(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[method]++
	if s.only != "" && s.only != method {
		return nil
	}
	return s.outage
}

// after stops a call whose work is done.
func (s *pliantStore) after(method string) {
	s.mu.Lock()
	barrier := s.barrier[method]
	s.mu.Unlock()
	if barrier != nil {
		<-barrier
	}
}

// stop makes the calls of a method stop, each until go is sent to.
func (s *pliantStore) stop(method string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.barrier == nil {
		s.barrier = map[string]chan struct{}{}
	}
	s.barrier[method] = make(chan struct{})
	return s.barrier[method]
}

// stopBefore makes the next call of a method stop before its work. It sends when it is there, and goes on when it is
// sent to.
func (s *pliantStore) stopBefore(method string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate == nil {
		s.gate = map[string]chan struct{}{}
	}
	s.gate[method] = make(chan struct{})
	return s.gate[method]
}

func (s *pliantStore) passGate(method string) {
	s.mu.Lock()
	gate := s.gate[method]
	delete(s.gate, method)
	s.mu.Unlock()
	if gate != nil {
		gate <- struct{}{}
		<-gate
	}
}

// loseAnswers makes completions fail when their work is done; nil: no more.
func (s *pliantStore) loseAnswers(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = err
}

func (s *pliantStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = err
}

func (s *pliantStore) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

func (s *pliantStore) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	if err := s.before("GetEntity"); err != nil {
		return semantics.Entity{}, err
	}
	return s.Store.GetEntity(ctx, kind, path)
}

func (s *pliantStore) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if err := s.before("Receive"); err != nil {
		return semantics.Batch{}, err
	}
	batch, err := s.Store.Receive(ctx, source, limit, register)
	if len(batch.Messages) > 0 {
		s.after("Receive")
	}
	return batch, err
}

func (s *pliantStore) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	if err := s.before("AcceptNextSession"); err != nil {
		return nil, 0, err
	}
	s.passGate("AcceptNextSession")
	session, recheck, err := s.Store.AcceptNextSession(ctx, path, register)
	if session != nil {
		s.after("AcceptNextSession")
	}
	return session, recheck, err
}

func (s *pliantStore) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	if err := s.before("RenewLocks"); err != nil {
		return nil, err
	}
	s.passGate("RenewLocks")
	return s.Store.RenewLocks(ctx, source, tokens)
}

func (s *pliantStore) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	if err := s.before("RenewSessionLock"); err != nil {
		return time.Time{}, err
	}
	return s.Store.RenewSessionLock(ctx, source)
}

func (s *pliantStore) CloseSession(ctx context.Context, source semantics.Source) error {
	if err := s.before("CloseSession"); err != nil {
		return err
	}
	err := s.Store.CloseSession(ctx, source)
	s.after("CloseSession")
	return err
}

func (s *pliantStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if err := s.before("Complete"); err != nil {
		return nil, err
	}
	codes, err := s.Store.Complete(ctx, source, tokens)
	s.after("Complete")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return nil, s.lost
	}
	return codes, err
}

func (s *pliantStore) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if err := s.before("Release"); err != nil {
		return nil, err
	}
	return s.Store.Release(ctx, source, tokens)
}

func (s *stand) deadLettering(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.DeadLetter(ctx, source, tokens, broker.DeadLetterOptions{})
}

func (s *stand) deferral(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.Defer(ctx, source, tokens, nil)
}
