package history

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// lossSend is one message that was sent, or perhaps was.
type lossSend struct {
	span                          // of the last try
	first               time.Time // when the first one began
	target, text, color string
	session             string
	size                int
	due                 time.Time     // of a scheduled one, by the clock of the Redis
	life                time.Duration // of one that expires
	outcome             outcome
	batch               *lossBatch
}

// lossBatch is what was sent in one call.
type lossBatch struct{ sends []*lossSend }

// taking is one hand-out of one message.
type taking struct {
	span
	source, text, session string
	number                int64
	until                 time.Time // on the machine's clock
	token                 semantics.LockToken
	verb                  string // "" while it is not settled
	outcome               outcome
	settled               span
}

const (
	lossSenders   = 3
	lossReceivers = 2 // of each source
	lossHolders   = 2
)

func (r *lossRun) startAll(sending, changing, receiving *sync.WaitGroup) {
	worker := uint64(0)
	next := func() *rand.Rand {
		worker++
		return rand.New(rand.NewPCG(r.seed*1000+uint64(r.number), worker))
	}
	for i := range lossSenders {
		rng := next()
		sending.Go(func() { r.sendAll(i, rng) })
	}
	for _, name := range fickle {
		rng := next()
		changing.Go(func() { r.changeAll(name, rng) })
	}
	for _, path := range r.sources() {
		if path == from || path == inOrder {
			continue
		}
		source := semantics.Source{Path: path}
		if path == shelf {
			source.SubQueue = semantics.DeadLetterQueue
		}
		for range lossReceivers {
			rng := next()
			receiving.Go(func() { r.receiveAll(source, rng) })
		}
	}
	for range lossHolders {
		rng := next()
		receiving.Go(func() { r.holdAll(rng) })
	}
}

// sendAll sends messages, one or many at a time. Now and then it repeats some, as a client does that does not know what
// became of them.
func (r *lossRun) sendAll(sender int, rng *rand.Rand) {
	var last *lossBatch
	for i := 0; r.sending.Load(); i++ {
		b := r.newBatch(r.text(sender, i), rng)
		if last != nil && rng.IntN(6) == 0 {
			b = last.again()
		}
		if b.sends[0].target == work && b.sends[0].due.IsZero() {
			last = b
		}
		requestID := ""
		if rng.IntN(4) == 0 {
			requestID = r.text(sender, i)
		}
		r.send(rng, b, requestID)
		r.rest(time.Duration(1+rng.IntN(6)) * time.Millisecond)
	}
}

// newBatch draws what to send where.
func (r *lossRun) newBatch(text string, rng *rand.Rand) *lossBatch {
	like := lossSend{outcome: unknown}
	soon := time.Duration(20+rng.IntN(300)) * time.Millisecond
	switch rng.IntN(10) {
	case 0, 1:
		like.target = work
	case 2:
		like.target, like.due = work, r.clockNow().Add(soon)
	case 3:
		like.target = inOrder
	case 4, 5:
		like.target = from
	case 6:
		like.target, like.life = shelf, soon
	case 7:
		like.target, like.due = news, r.clockNow().Add(soon)
	default:
		like.target = news
	}
	b, n, bytes := &lossBatch{}, 1, 0
	r.add(func() {
		if rng.IntN(100) < batchPercent {
			n = draw(rng, maxBatch, &r.messagesLeft)
		}
		for i := range n {
			s := like
			s.text, s.color, s.batch = fmt.Sprintf("%s/%d", text, i), colors[rng.IntN(len(colors))], b
			if s.size = draw(rng, maxBody, &r.bytesLeft); n > 1 {
				s.size = min(s.size, 1+(batchBytes-bytes)/n)
			}
			bytes += s.size
			if s.target == inOrder {
				s.session = lossSessions[rng.IntN(len(lossSessions))]
			}
			r.sizes[s.text] = s.size
			b.sends = append(b.sends, &s)
		}
	})
	return b
}

// again is a batch that is sent again.
func (b *lossBatch) again() *lossBatch {
	next := &lossBatch{}
	for _, s := range b.sends {
		next.sends = append(next.sends, &lossSend{
			target: s.target, text: s.text, color: s.color, session: s.session, size: s.size, outcome: unknown, batch: next,
		})
	}
	return next
}

func (s *lossSend) message() *semantics.Message {
	m := &semantics.Message{
		MessageID: s.text, Subject: s.color, SessionID: s.session, ScheduledAt: s.due, Body: bodyOf(s.text, s.size),
	}
	if s.life > 0 {
		m.TimeToLive = &s.life
	}
	return m
}

// send sends a batch and records it. With a request id it repeats the send until the outcome is known, and sometimes
// again. The last answer counts.
func (r *lossRun) send(rng *rand.Rand, b *lossBatch, requestID string) {
	target := semantics.ToQueue(b.sends[0].target)
	if target.Path == news {
		target = semantics.ToTopic(news)
	}
	var messages []*semantics.Message
	for _, s := range b.sends {
		messages = append(messages, s.message())
	}
	var last span
	var got outcome
	first := time.Now()
	for range 20 {
		last.began = time.Now()
		err := r.any(rng).send(r.ctx, target, requestID, messages)
		last.ended, got = time.Now(), lossOutcome(err)
		r.unexpected("send to "+target.Path, err)
		if requestID == "" || got != unknown && rng.IntN(4) > 0 {
			break
		}
	}
	r.add(func() {
		for _, s := range b.sends {
			s.span, s.first, s.outcome = last, first, got
			r.timesSent[s.text]++
		}
		r.sends = append(r.sends, b.sends...)
		r.batches = append(r.batches, b)
	})
}

// receiveAll takes messages and settles them, not always as it should while others send.
func (r *lossRun) receiveAll(source semantics.Source, rng *rand.Rand) {
	for r.receiving.Load() {
		m := r.any(rng)
		mode := semantics.PeekLock
		if rng.IntN(12) == 0 {
			mode = semantics.ReceiveAndDelete
		}
		by := map[string][]*taking{}
		for _, d := range r.take(m, source, storetest.RandomLogUniform(rng, maxReceive), mode) {
			verb := "complete"
			if mode == semantics.ReceiveAndDelete {
				continue
			}
			if chance := rng.IntN(100); r.sending.Load() && source.SubQueue == semantics.MainQueue {
				switch {
				case chance < 6:
					verb = "abandon"
				case chance < 9:
					verb = "dead-letter"
				case chance < 12:
					verb = "defer"
				case chance < 15:
					continue // its lock must expire
				}
			}
			by[verb] = append(by[verb], d)
		}
		for _, verb := range slices.Sorted(maps.Keys(by)) {
			r.settle(r.any(rng), source, verb, by[verb]...)
		}
	}
}

// take receives some messages.
func (r *lossRun) take(m member, source semantics.Source, most int, mode semantics.Mode) []*taking {
	const wait = 50 * time.Millisecond
	return r.takeBy(source, mode, func() ([]*semantics.Received, func() error, error) {
		return m.receive(r.ctx, source, broker.ReceiveOptions{MaxMessages: most, MaxWait: wait, Mode: mode})
	})
}

func (r *lossRun) takeBy(source semantics.Source, mode semantics.Mode, receive func() ([]*semantics.Received, func() error, error)) (got []*taking) {
	r.quiet.RLock()
	defer r.quiet.RUnlock()
	asked := span{began: time.Now()}
	messages, delivered, err := receive()
	asked.ended = time.Now()
	if err != nil {
		r.unexpected("receive from "+source.String(), err)
		if mode == semantics.ReceiveAndDelete && lossOutcome(err) == unknown {
			r.add(func() { r.blind[source.Path] = append(r.blind[source.Path], asked) })
		}
		r.rest(5 * time.Millisecond)
		return nil
	}
	err = delivered()
	clock := r.slowNow()
	for _, one := range messages {
		got = append(got, &taking{
			span: asked, source: source.Path, text: one.MessageID, session: one.SessionID, number: one.SequenceNumber,
			until: clock.until(one.LockedUntil, workLock, asked), token: one.LockToken,
		})
		r.checkBody(one)
	}
	for _, d := range got {
		if mode == semantics.ReceiveAndDelete {
			d.verb, d.outcome, d.settled = "complete", lossOutcome(err), span{asked.ended, time.Now()}
			if d.settled.ended.Sub(asked.began) > workLock { // its lock may have ended before it was removed
				d.outcome = unknown
			}
			if d.outcome == unknown {
				d.settled.ended = d.settled.ended.Add(patience)
			}
		}
	}
	r.add(func() { r.deliveries = append(r.deliveries, got...) })
	return got
}

// checkBody checks that a body is the one that was sent.
func (r *lossRun) checkBody(m *semantics.Received) {
	size := 0
	r.add(func() { size = r.sizes[m.MessageID] })
	if want := bodyOf(m.MessageID, size); !bytes.Equal(m.Body, want) {
		r.t.Errorf("message %s has %d bytes %.20q, want %d %.20q", m.MessageID, len(m.Body), m.Body, size, want)
	}
}

// takeDeferred completes what is deferred.
func (r *lossRun) takeDeferred(path string) {
	source, m := semantics.Source{Path: path}, r.any(r.rng)
	rows, _ := r.store.Peek(r.ctx, source, 1, broker.MaxPeekMessages, semantics.ShowAll)
	for _, row := range rows {
		if row.State != semantics.Deferred || row.Locked {
			continue
		}
		for _, d := range r.takeBy(source, semantics.PeekLock, func() ([]*semantics.Received, func() error, error) {
			return m.receiveDeferred(r.ctx, source, []int64{row.SequenceNumber})
		}) {
			r.settle(m, source, "complete", d)
		}
	}
}

// settle settles messages in one call. It returns what became of the first.
func (r *lossRun) settle(m member, source semantics.Source, verb string, which ...*taking) outcome {
	var tokens []semantics.LockToken
	for _, d := range which {
		tokens = append(tokens, d.token)
	}
	began := time.Now()
	codes, err := m.settle(r.ctx, source, verb, tokens)
	r.settled(verb, began, codes, err, which...)
	return which[0].outcome
}

// settled notes what became of messages that were settled in one call, which began at the given time and ends now.
func (r *lossRun) settled(verb string, began time.Time, codes []semantics.Code, err error, which ...*taking) {
	settled := span{began, time.Now()}
	r.unexpected(verb, err)
	for i, d := range which {
		got := lossOutcome(err)
		if err == nil && codes[i] != "" {
			got = lost
			if codes[i] != semantics.MessageLockLost && codes[i] != semantics.SessionLockLost {
				r.t.Errorf("%s of %s: %s", verb, d.text, codes[i])
			}
		}
		r.add(func() { d.verb, d.outcome, d.settled = verb, got, settled })
	}
}

// turn completes a message of a session, and takes the next one in the same step.
func (r *lossRun) turn(m member, source semantics.Source, d *taking) []*taking {
	return r.takeBy(source, semantics.PeekLock, func() ([]*semantics.Received, func() error, error) {
		began := time.Now()
		codes, next, failure, err := m.turn(r.ctx, source, d.token)
		r.settled("complete", began, codes, err, d)
		if err == nil {
			err = failure
		}
		return next, func() error { return nil }, err
	})
}

// hoard takes messages and keeps their locks.
func (r *lossRun) hoard() []*taking {
	return r.take(r.any(r.rng), semantics.Source{Path: work}, 20, semantics.PeekLock)
}

// settleHoard completes messages whose locks are from before the loss.
func (r *lossRun) settleHoard(hoard []*taking) {
	r.t.Helper()
	for _, d := range hoard {
		var got outcome
		for range 20 { // old connections fail once each
			if got = r.settle(r.any(r.rng), semantics.Source{Path: work}, "complete", d); got != unknown && got != nothing {
				break
			}
		}
		stays, maybe := r.stays(d.span)
		inTime := d.settled.ended.Before(d.until)
		switch {
		case maybe:
		case got == done && !stays:
			r.t.Errorf("%s was completed by a lock that %s has forgotten", d.text, r.loss)
		case got == lost && stays && inTime:
			r.t.Errorf("%s has lost its lock, which %s has not forgotten", d.text, r.loss)
		}
	}
}
