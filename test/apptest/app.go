package apptest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// App is the app behind a wire, and the record of all messages. It is safe for concurrent use.
type App struct {
	t            *testing.T
	wire         Wire
	hasSessions  bool
	atATime      int
	mostFailures int64
	raw          semantics.Store // past the sidecars
	sender       *broker.Broker
	auditor      *audit.Auditor
	gate         sync.RWMutex // held by each call of the store, and by readers of what it stores

	work sync.WaitGroup // settlements by the app itself

	mu       sync.Mutex // guards the fields below; methods whose names end in Locked run while it is locked
	changed  *sync.Cond
	random   *rand.Rand
	messages []*message // by number
	tokens   map[semantics.LockToken]delivery
	takes    int
	verbs    []Verb
	most     int             // messages that the app works on
	hand     []chan struct{} // those it works on
	isOver   bool            // no message is to come
	letGo    chan struct{}   // closed when the sidecar has ended
}

// message is the record of one message.
type message struct {
	number   int
	session  string
	body     []byte
	isOut    bool // the app has it
	answer   Verb // the app's answer, None before it has answered
	failed   int64
	isEnding bool   // a call that settles it for good has begun
	ended    string // where it ends; "": not settled for good
	endedBy  int    // the delivery whose settlement ended it
	times    int    // it was delivered
}

// delivery is one of a message: the first, the second and so on.
type delivery struct {
	*message

	ordinal int
}

// Where a message stays.
const (
	isDone     = "done"
	isDead     = "dead"
	isDeferred = "deferred"
)

func newApp(t *testing.T, wire Wire, random *rand.Rand, hasSessions bool) *App {
	t.Helper()
	a := &App{
		t: t, wire: wire, random: random, hasSessions: hasSessions, atATime: 1 + random.IntN(mostAtATime),
		mostFailures: []int64{2, 1000}[random.IntN(2)], tokens: map[semantics.LockToken]delivery{},
	}
	a.changed = sync.NewCond(&a.mu)
	return a
}

// begin permits another sidecar. The app works on at most so many messages before it answers one of them.
func (a *App) begin(most int, verbs []Verb) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.most, a.verbs, a.isOver, a.letGo, a.hand = most, verbs, false, make(chan struct{}), nil
	for _, m := range a.messages {
		m.isOut = false // the last sidecar has released what it had delivered
	}
}

// LetGo takes back all messages that the app works on. A wire calls it when its sidecar has ended.
func (a *App) LetGo() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.letGo)
}

// over ends a round after its sidecar has stopped.
func (a *App) over() {
	a.mu.Lock()
	a.isOver = true
	a.changed.Broadcast()
	a.mu.Unlock()
	a.work.Wait()
}

// awaitTaken waits until the app has taken so many messages.
func (a *App) awaitTaken(enough int) {
	a.t.Helper()
	a.await("the app has taken enough", func() bool { return a.takes >= enough })
}

// awaitAllSettled waits until every message is settled for good.
func (a *App) awaitAllSettled() {
	a.t.Helper()
	a.await("all is settled", func() bool { return a.openLocked() == 0 })
}

// await waits until a condition holds. It checks the condition whenever the record changes, with the mutex locked.
func (a *App) await(what string, holds func() bool) {
	a.t.Helper()
	late := false
	timer := time.AfterFunc(redistest.Patience, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		late = true
		a.changed.Broadcast()
	})
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for !holds() && !late {
		a.changed.Wait()
	}
	if late {
		a.t.Errorf("not within %s: %s; %d are not settled, the app works on %d", redistest.Patience, what, a.openLocked(), len(a.hand))
	}
}

func (a *App) taken() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.takes
}

// openLocked returns the number of messages that are not settled for good.
func (a *App) openLocked() (n int) {
	for _, m := range a.messages {
		if m.ended == "" {
			n++
		}
	}
	return n
}

// Take runs the app's work on a message. It returns the answer when other messages have come or the sidecar has ended.
func (a *App) Take(id string, body []byte) Verb {
	a.mu.Lock()
	if a.enterLocked(id, body); a.takes%auditEvery == 0 {
		a.mu.Unlock()
		a.audit()
		a.mu.Lock()
	}
	mine, letGo := make(chan struct{}), a.letGo
	if a.hand = append(a.hand, mine); len(a.hand) > a.most {
		a.answerOneLocked()
	}
	a.changed.Broadcast()
	a.mu.Unlock()
	select {
	case <-mine:
	case <-letGo:
		return None
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	verb := a.verbs[a.random.IntN(len(a.verbs))]
	if m := a.find(id); m != nil {
		m.isOut, m.answer = false, verb
	}
	return verb
}

// enterLocked records that a message was delivered, and checks that it may be.
func (a *App) enterLocked(id string, body []byte) {
	m := a.find(id)
	switch {
	case m == nil:
		a.t.Errorf("message %q was never sent", id)
		return
	case m.ended != "":
		a.t.Errorf("message %d came again after it was %s", m.number, m.ended)
	case m.isOut:
		a.t.Errorf("message %d came again while the app had it", m.number)
	case !bytes.Equal(m.body, body):
		a.t.Errorf("message %d came with %d bytes, it was sent with %d", m.number, len(body), len(m.body))
	}
	for _, earlier := range a.messages[:m.number] {
		if a.hasSessions && earlier.session == m.session && !earlier.isEnding {
			a.t.Errorf("message %d of session %s came before %d", m.number, m.session, earlier.number)
		}
	}
	m.isOut, m.answer = true, None
	a.takes++
}

func (a *App) find(id string) *message {
	number := 0
	if _, err := fmt.Sscanf(id, "m%d", &number); err != nil || number >= len(a.messages) {
		return nil
	}
	return a.messages[number]
}

// answerOneLocked makes the app answer one of the messages that it works on.
func (a *App) answerOneLocked() {
	if n := len(a.hand); n > 0 {
		i := a.random.IntN(n)
		close(a.hand[i])
		a.hand[i] = a.hand[n-1]
		a.hand = a.hand[:n-1]
	}
}

func (a *App) answerSome(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range n {
		a.answerOneLocked()
	}
}

// handedOut records messages that a sidecar has received.
func (a *App) handedOut(messages []*semantics.Received) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, received := range messages {
		m := a.find(received.MessageID)
		m.times++
		a.tokens[received.LockToken] = delivery{m, m.times}
	}
}

// settling records that a settlement begins, and checks that it agrees with the app's answer. to is as in store.settle.
func (a *App) settling(tokens []semantics.LockToken, verb Verb, to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, token := range tokens {
		if m, is := a.tokens[token]; is {
			if !m.answer.permits(verb) {
				a.t.Errorf("message %d, which the app has answered with %q, meets with %q", m.number, m.answer, verb)
			}
			m.isEnding = m.isEnding || a.fate(m.message, to) != ""
		}
	}
}

// settled records the outcome of a settlement. What releases a message may be recorded after what ended its next
// delivery: that one can begin before the answer to this settlement is here.
func (a *App) settled(tokens []semantics.LockToken, to string, codes []semantics.Code, err error) {
	if err != nil && semantics.CodeOf(err) != semantics.SessionLockLost {
		a.t.Errorf("settle: %v", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, token := range tokens {
		m, is := a.tokens[token]
		if !is {
			a.t.Errorf("%s was not handed out and is settled", token)
			continue
		}
		if err != nil || codes[i] != "" {
			m.isEnding = m.ended != ""
			continue
		}
		fate := a.fate(m.message, to)
		m.failed++ // has no effect on messages that are settled for good
		if m.ended != "" {
			if isOlder := m.ordinal < m.endedBy; to != "" || !isOlder { // an older one that failed was not the last
				a.t.Errorf("message %d was %s and is %s now", m.number, m.ended, fate)
			}
			continue
		}
		if m.ended = fate; fate != "" {
			m.endedBy, m.body = m.ordinal, nil
		}
	}
	a.changed.Broadcast()
}

// fate returns where a message ends after a settlement that moves it to a place, or after a failed one if to is "".
func (a *App) fate(m *message, to string) string {
	if to == "" && m.failed+1 >= a.mostFailures {
		return isDead
	}
	return to
}

// permits reports whether a message may get a settlement after this answer of its app.
func (v Verb) permits(settled Verb) bool {
	switch settled {
	case Complete:
		return v == Complete || v == Leave
	case Abandon:
		return v == Abandon || v == DeadLetter // when that failed
	default:
		return v == settled
	}
}

// CompleteLater completes a message by a call of the app's own. It does not block.
func (a *App) CompleteLater(broker *broker.Broker, source semantics.Source, token semantics.LockToken) {
	a.work.Go(func() {
		ctx := context.WithoutCancel(a.t.Context())
		if _, err := broker.Complete(ctx, source, []semantics.LockToken{token}); err != nil && semantics.CodeOf(err) != semantics.SessionLockLost {
			a.t.Errorf("complete by a call: %v", err)
		}
	})
}

// sendUntilOver sends messages until the round is over, but never far ahead of the app.
func (a *App) sendUntilOver() {
	for {
		batch := a.nextBatch()
		if batch == nil {
			return
		}
		if _, err := a.sender.Send(context.WithoutCancel(a.t.Context()), semantics.ToQueue(queue), batch); err != nil {
			a.t.Errorf("send: %v", err)
			return
		}
	}
}

// nextBatch creates messages and records them before they are sent. It returns nil when the round is over.
func (a *App) nextBatch() (batch []*semantics.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.isOver && a.openLocked() >= mostOpen {
		a.answerOneLocked() // all open messages may be of the sessions that the app works on
		a.changed.Wait()
	}
	if a.isOver {
		return nil
	}
	n := logUniform(a.random, 20)
	for range n {
		m := &message{number: len(a.messages)}
		sent := &semantics.Message{MessageID: fmt.Sprint("m", m.number)}
		if a.hasSessions {
			m.session = fmt.Sprint("s", a.random.IntN(sessions))
			sent.SessionID = m.session
		}
		m.body = bytes.Repeat([]byte{byte(m.number)}, logUniform(a.random, bodyLimit/n-int(sent.HeaderSize())))
		sent.Body = m.body
		a.messages, batch = append(a.messages, m), append(batch, sent)
	}
	return batch
}

// logUniform draws 1 to most, as often from 1 to 10 as from 10 to 100. It sometimes draws most itself.
func logUniform(random *rand.Rand, most int) int {
	if random.IntN(50) == 0 {
		return most
	}
	return int(math.Exp(random.Float64() * math.Log(float64(most))))
}
