package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// RunIdleModel uses a queue with several partitions through several sidecars at random, and deletes it when it is idle.
// The model knows when it must be deleted and when it must not, and which messages it has then: also if a removal is cut
// off, or other sidecars act between its steps. open is called once; every run uses a queue of its own.
func RunIdleModel(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	harness, runs := open(t), 0
	below := withoutPartitions(harness.Store)
	sidecars := []*partitioned.Store{partitioned.New(below), partitioned.New(below), partitioned.New(below)}
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		m := &idleModel{
			ctx: t.Context(), below: below, sidecars: sidecars, advanceBy: harness.Advance,
			path: fmt.Sprintf("idle-%d", runs), now: harness.Now(),
		}
		m.partitions = rapid.IntRange(2, 4).Draw(rt, "partitions")
		m.span = units(4, 10).Draw(rt, "span")
		m.keepsDead = rapid.Bool().Draw(rt, "keeps dead letters")
		m.create(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"send": m.send, "send again": m.send, "schedule": m.schedule, "receive": m.receive, "hold": m.hold,
			"complete": m.complete, "dead-letter": m.deadLetter, "receive dead letters": m.receiveDead, "peek": m.peek,
			"update": m.update, "note use": m.noteUse, "look": m.look, "create": m.create, "delete": m.deleteQueue,
			"advance": m.advance, "advance again": m.advance, "advance and again": m.advance,
			"remove": m.remove, "remove again": m.remove, "removal cut off": m.cutOff, "cut off again": m.cutOff,
			"removal and another call": m.removeWithin, "another call again": m.removeWithin,
		})
		m.look(rt)
		_ = m.any(rt).DeleteEntity(m.ctx, semantics.QueueKind, m.path)
	})
}

// idleModel is one run.
type idleModel struct {
	ctx        context.Context
	below      partitioned.Below
	sidecars   []*partitioned.Store
	advanceBy  func(time.Duration)
	path       string
	partitions int
	span       time.Duration
	keepsDead  bool

	now       time.Time
	isThere   bool
	usedAt    time.Time
	free      int         // messages that can be received
	dead      int         // dead letters
	scheduled []time.Time // when they are due
	held      []heldOnce
	sent      int
}

// heldOnce is a message that was received and not settled.
type heldOnce struct {
	token semantics.LockToken
	until time.Time
}

const idleLock = 3 * unit

func (m *idleModel) any(rt *rapid.T) *partitioned.Store {
	return m.sidecars[rapid.IntRange(0, len(m.sidecars)-1).Draw(rt, "sidecar")]
}

func (m *idleModel) source() semantics.Source { return semantics.Source{Path: m.path} }

// used checks the outcome of a call that uses the queue, and notes the use.
func (m *idleModel) used(rt *rapid.T, what string, err error) (ok bool) {
	rt.Helper()
	want := semantics.Code("")
	if !m.isThere {
		want = semantics.EntityNotFound
	}
	if got := semantics.CodeOf(err); got != want {
		rt.Fatalf("%s: got %q (%v), want %q", what, got, err, want)
	}
	if m.isThere {
		m.usedAt = m.now
	}
	return m.isThere
}

func (m *idleModel) advance(rt *rapid.T) {
	by := rapid.SampledFrom([]time.Duration{ms, unit, idleLock, m.span - ms, m.span, m.span, 2 * m.span}).Draw(rt, "by")
	m.advanceBy(by)
	m.now = m.now.Add(by)
	later := slices.DeleteFunc(slices.Clone(m.scheduled), func(due time.Time) bool { return !due.After(m.now) })
	activated := len(m.scheduled) - len(later)
	m.scheduled, m.free = later, m.free+activated
	m.held = slices.DeleteFunc(m.held, func(h heldOnce) bool {
		isOver := !h.until.After(m.now)
		if isOver {
			m.free++
			m.usedAt = latest(m.usedAt, h.until)
		}
		return isOver
	})
	if activated > 0 { // as by a sweeper; until now it had scheduled messages
		m.look(rt)
		m.usedAt = m.now
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (m *idleModel) create(rt *rapid.T) {
	options := semantics.DefaultOptions()
	options.Partitions, options.AutoDeleteOnIdle, options.LockDuration = int64(m.partitions), m.span, idleLock
	options.AutoDeleteKeepsDeadLetters, options.MaxDeliveryCount = m.keepsDead, 1000
	_, created, err := m.any(rt).CreateEntity(m.ctx, semantics.QueueKind, m.path, options)
	if err != nil || created == m.isThere {
		rt.Fatalf("create: created %t, %v; it was there: %t", created, err, m.isThere)
	}
	if created {
		m.isThere, m.usedAt = true, m.now
	}
}

func (m *idleModel) deleteQueue(rt *rapid.T) {
	if m.used(rt, "delete", m.any(rt).DeleteEntity(m.ctx, semantics.QueueKind, m.path)) {
		m.gone()
	}
}

// gone notes that the queue is deleted with all it had.
func (m *idleModel) gone() { m.isThere, m.free, m.dead, m.scheduled, m.held = false, 0, 0, nil, nil }

// message returns a message with a key, or without, so that any partition may get it.
func (m *idleModel) message(rt *rapid.T) *semantics.Message {
	m.sent++
	key := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(rt, "key")
	return &semantics.Message{MessageID: fmt.Sprint(m.sent), PartitionKey: key}
}

func (m *idleModel) send(rt *rapid.T) {
	_, err := m.any(rt).Send(m.ctx, m.path, []*semantics.Message{m.message(rt)})
	if m.used(rt, "send", err) {
		m.free++
	}
}

func (m *idleModel) schedule(rt *rapid.T) {
	message := m.message(rt)
	message.ScheduledAt = m.now.Add(units(1, 3, 12).Draw(rt, "due"))
	_, err := m.any(rt).Send(m.ctx, m.path, []*semantics.Message{message})
	if m.used(rt, "schedule", err) {
		m.scheduled = append(m.scheduled, message.ScheduledAt)
	}
}

// take receives some messages; ok reports whether the queue is there.
func (m *idleModel) take(rt *rapid.T, from semantics.Source, there int) (tokens []semantics.LockToken, ok bool) {
	limit := rapid.IntRange(1, 3).Draw(rt, "limit")
	batch, err := m.any(rt).Receive(m.ctx, from, limit, semantics.RegisterNever)
	if !m.used(rt, "receive", err) {
		return nil, false
	}
	if want := min(limit, there); len(batch.Messages) != want {
		rt.Fatalf("received %d messages of %s, want %d", len(batch.Messages), from, want)
	}
	for _, message := range batch.Messages {
		tokens = append(tokens, message.LockToken)
	}
	return tokens, true
}

func (m *idleModel) receive(rt *rapid.T) {
	if tokens, ok := m.take(rt, m.source(), m.free); ok {
		m.settle(rt, m.source(), tokens)
		m.free -= len(tokens)
	}
}

func (m *idleModel) receiveDead(rt *rapid.T) {
	from := m.source()
	from.SubQueue = semantics.DeadLetterQueue
	if tokens, ok := m.take(rt, from, m.dead); ok {
		m.settle(rt, from, tokens)
		m.dead -= len(tokens)
	}
}

func (m *idleModel) settle(rt *rapid.T, from semantics.Source, tokens []semantics.LockToken) {
	if len(tokens) == 0 {
		return
	}
	codes, err := m.any(rt).Complete(m.ctx, from, tokens)
	m.wantSettled(rt, codes, err)
}

func (m *idleModel) wantSettled(rt *rapid.T, codes []semantics.Code, err error) {
	rt.Helper()
	if m.used(rt, "settle", err); slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" }) {
		rt.Fatalf("settle: %q", codes)
	}
}

func (m *idleModel) hold(rt *rapid.T) {
	tokens, _ := m.take(rt, m.source(), m.free)
	for _, token := range tokens {
		m.held = append(m.held, heldOnce{token, m.now.Add(idleLock)})
		m.free--
	}
}

// heldTokens forgets what is held, and returns it.
func (m *idleModel) heldTokens() (tokens []semantics.LockToken) {
	for _, h := range m.held {
		tokens = append(tokens, h.token)
	}
	m.held = nil
	return tokens
}

func (m *idleModel) complete(rt *rapid.T) { m.settle(rt, m.source(), m.heldTokens()) }

func (m *idleModel) deadLetter(rt *rapid.T) {
	tokens := m.heldTokens()
	if len(tokens) == 0 {
		return
	}
	codes, err := m.any(rt).DeadLetter(m.ctx, m.source(), tokens, semantics.DeadLetterTexts{}, nil)
	m.wantSettled(rt, codes, err)
	m.dead += len(tokens)
}

func (m *idleModel) peek(rt *rapid.T) {
	_, err := m.any(rt).Peek(m.ctx, m.source(), 0, 1, semantics.ShowAll)
	m.used(rt, "peek", err)
}

func (m *idleModel) update(rt *rapid.T) {
	options := semantics.DefaultOptions()
	options.MaxDeliveryCount = rapid.Int64Range(1000, 1003).Draw(rt, "max delivery count")
	_, err := m.any(rt).UpdateEntity(m.ctx, semantics.QueueKind, m.path, options, []string{"maxDeliveryCount"})
	if !m.used(rt, "update", err) {
		return
	}
	fresh := partitioned.New(m.below)
	if _, err := fresh.Runtime(m.ctx, semantics.QueueKind, m.path); err != nil {
		rt.Fatalf("counts: %v", err)
	}
	for p := range m.partitions { // none has missed it
		part, err := m.below.GetEntity(m.ctx, semantics.QueueKind, fresh.Path(m.path, p))
		if err != nil || part.Options.MaxDeliveryCount != options.MaxDeliveryCount {
			rt.Fatalf("partition %d: %+v, %v; want that %d deliveries are permitted", p, part.Options, err, options.MaxDeliveryCount)
		}
	}
}

// noteUse notes a wait that ended some time ago, as sidecars do. Of a queue that is gone none is noted.
func (m *idleModel) noteUse(rt *rapid.T) {
	ago := units(0, 1, 3).Draw(rt, "ago")
	if err := m.any(rt).NoteUse(m.ctx, []semantics.Use{{Path: m.path, Ago: ago}}); err != nil {
		rt.Fatalf("note use: %v", err)
	}
	m.usedAt = latest(m.usedAt, m.now.Add(-ago))
}

// look counts the messages, which does not count as use. No message that was acknowledged is missing, and none is there that went
// with an earlier queue.
func (m *idleModel) look(rt *rapid.T) {
	usedAt := m.usedAt
	counts, err := m.any(rt).Runtime(m.ctx, semantics.QueueKind, m.path)
	if !m.used(rt, "counts", err) {
		return
	}
	m.usedAt = usedAt
	got := []int64{counts.Available, counts.Locked, counts.Scheduled, counts.DeadLetter}
	want := []int64{int64(m.free), int64(len(m.held)), int64(len(m.scheduled)), int64(m.dead)}
	if !slices.Equal(got, want) {
		rt.Fatalf("available, locked, scheduled and dead are %d, want %d", got, want)
	}
}

// isIdle reports whether the queue must be deleted now.
func (m *idleModel) isIdle() bool {
	return m.isThere && len(m.scheduled)+len(m.held) == 0 && !(m.keepsDead && m.dead > 0) &&
		!m.now.Before(m.usedAt.Add(m.span))
}

// removeBy lets a sidecar delete the queue if it is idle, step by step.
func (m *idleModel) removeBy(by stepwise) (time.Duration, error) {
	by.Below = m.below
	return partitioned.New(by.inTurn()).RemoveUnused(m.ctx, m.path)
}

// wantThere checks whether the queue is there, as its record says.
func (m *idleModel) wantThere(rt *rapid.T, want bool) {
	rt.Helper()
	_, err := m.below.GetEntity(m.ctx, semantics.QueueKind, m.path)
	if code := semantics.CodeOf(err); code != "" && code != semantics.EntityNotFound || (code == "") != want {
		rt.Fatalf("the queue is there: %t (%v), want %t; now %v, used at %v, span %v", err == nil, err, want, m.now, m.usedAt, m.span)
	}
	if m.isThere && !want {
		m.gone()
	}
}

func (m *idleModel) remove(rt *rapid.T) {
	wait, err := m.removeBy(stepwise{})
	if err != nil {
		rt.Fatalf("remove: %v", err)
	}
	stays := m.isThere && !m.isIdle()
	m.wantThere(rt, stays)
	if (wait > 0) != stays {
		rt.Fatalf("removed: %t, but look again in %v", !stays, wait)
	}
}

// cutOff lets a sidecar be killed at some step of a removal, before it or with its answer lost.
func (m *idleModel) cutOff(rt *rapid.T) {
	at, isLost, isCut := rapid.SampledFrom(stepsOf(m.partitions)).Draw(rt, "at"), rapid.Bool().Draw(rt, "lost"), false
	before := func(step string) error {
		if isCut = isCut || !isLost && step == at; isCut {
			return errFailing
		}
		return nil
	}
	after := func(step string) error {
		if isCut = isCut || step == at; isCut {
			return errFailing
		}
		return nil
	}
	by := stepwise{before: before}
	if isLost {
		by.after = after
	}
	_, err := m.removeBy(by)
	if isCut && semantics.CodeOf(err) != semantics.StoreUnavailable || !isCut && err != nil {
		rt.Fatalf("cut off: %t, %v", isCut, err)
	}
	isGone := m.isIdle() && (at == "complete" && isLost || strings.HasPrefix(at, "delete"))
	m.wantThere(rt, m.isThere && !isGone)
}

// removeWithin lets another sidecar act before some step of a removal.
func (m *idleModel) removeWithin(rt *rapid.T) {
	at := rapid.SampledFrom(stepsOf(m.partitions)).Draw(rt, "at")
	calls := map[string]func(*rapid.T){
		"send": m.send, "receive": m.receive, "peek": m.peek, "update": m.update, "delete": m.deleteQueue,
		"look": m.look, "create": m.create, "remove": m.remove,
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(calls))).Draw(rt, "call")
	isDone, wasIdle, decides := false, m.isIdle(), false
	_, err := m.pausedAt(rt, at, func() {
		isDone = true
		if strings.HasPrefix(at, "delete") {
			m.gone()
		}
		// What does not count as use may end the removal, or not.
		decides = !m.isThere || name != "look" && name != "create"
		calls[name](rt)
	})
	if err != nil {
		rt.Fatalf("remove: %v", err)
	}
	switch {
	case !isDone:
		m.wantThere(rt, m.isThere && !wasIdle)
	case decides || !wasIdle:
		m.wantThere(rt, m.isThere)
	default:
		_, err := m.below.GetEntity(m.ctx, semantics.QueueKind, m.path)
		m.wantThere(rt, err == nil)
	}
}

// pausedAt lets a sidecar delete the queue if it is idle, and acts before a step of it, if it comes so far.
func (m *idleModel) pausedAt(rt *rapid.T, at string, act func()) (wait time.Duration, err error) {
	paused, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	isPaused := false
	by := stepwise{before: func(step string) error {
		if step == at && !isPaused {
			isPaused = true
			close(paused)
			<-goOn
		}
		return nil
	}}
	go func() {
		defer close(ended)
		wait, err = m.removeBy(by)
	}()
	select {
	case <-paused:
		func() {
			defer close(goOn) // also if it fails
			act()
		}()
		<-ended
	case <-ended:
	}
	return wait, err
}
