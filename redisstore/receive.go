package redisstore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// How many requested messages share one receive script.
const (
	fullReceive = 64
	mostReceive = maxScriptMessages
)

// receiveCall is one Receive on its way to the script.
type receiveCall struct {
	source semantics.Source
	answer
	recheck time.Duration
	err     error
}

// Receive implements semantics.Receiver.
func (s *Store) Receive(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (semantics.Batch, error) {
	if !source.SessionLock.IsZero() {
		return s.receiveInSession(ctx, source, limit, register)
	}
	call := &receiveCall{source: source, answer: answer{limit: limit, register: register}}
	if err := s.receives.do(ctx, source.Fold().String(), call); err != nil {
		return semantics.Batch{}, err
	}
	if call.err != nil {
		return semantics.Batch{}, call.err
	}
	return s.batchFor(ctx, source, call.entries, call.recheck)
}

// batchFor decodes the messages locked for a caller. If ctx has ended it releases them (RECV-7).
func (s *Store) batchFor(
	ctx context.Context, source semantics.Source, entries []entry, recheck time.Duration,
) (semantics.Batch, error) {
	messages, all := make([]*semantics.Received, len(entries)), make([]semantics.Received, len(entries))
	for i := range entries {
		messages[i] = &all[i]
		entries[i].receive(messages[i], s.sealing)
		messages[i].DeliveryCount++ // this one (MSG-10)
	}
	if ctx.Err() != nil {
		s.giveBack(ctx, source, entries)
		return semantics.Batch{}, semantics.CancelledBy(ctx)
	}
	return semantics.Batch{Messages: messages, RecheckAfter: recheck}, nil
}

// runReceives fills the calls in order of arrival, with as many scripts as that takes.
func (s *Store) runReceives(ctx context.Context, calls []*receiveCall) {
	for len(calls) > 0 {
		calls = served(calls)(s.receiveOnce(ctx, calls))
	}
}

// served returns a function that notes how a script has served the calls, and returns those that go on.
func served(calls []*receiveCall) func(left bool, recheck time.Duration, err error) []*receiveCall {
	return func(left bool, recheck time.Duration, err error) []*receiveCall {
		for _, c := range calls {
			// A caller keeps what it got from an earlier script; a failure is returned to the callers with nothing.
			if err != nil && len(c.entries) == 0 {
				c.err = err
			}
			c.recheck = recheck
		}
		if err != nil || !left || recheck == 0 {
			return nil
		}
		return slices.DeleteFunc(calls, (*receiveCall).isFull)
	}
}

// receiveBounds are what a script must know of all calls that share it: docs/decisions/0012.
type receiveBounds struct {
	limit, registerBelow int
	safe                 int64
}

func boundsOf(calls []*receiveCall) receiveBounds {
	b := receiveBounds{safe: math.MaxInt64}
	for _, c := range calls {
		switch {
		case c.register == semantics.RegisterAlways:
			b.registerBelow = math.MaxInt32
		case c.waits():
			b.registerBelow = max(b.registerBelow, b.limit+1) // it gets nothing if the calls before it take all
		}
		b.limit, b.safe = b.limit+c.open(), min(b.safe, c.safe())
	}
	b.limit = min(b.limit, maxScriptMessages)
	if b.limit > 1 {
		b.safe = min(b.safe, maxScriptBytes/int64(b.limit))
	}
	if b.safe == math.MaxInt64 {
		b.safe = 0
	}
	return b
}

// receiveArgs returns the arguments of receive.lua from the limit on.
func (s *Store) receiveArgs(calls []*receiveCall, nonce uint64) []any {
	b := boundsOf(calls)
	args := append(
		make([]any, 0, 6+3*len(calls)), b.limit, b.safe, maxScriptBytes, nonce, b.registerBelow, s.sidecar,
	)
	for _, c := range calls {
		args = append(args, c.open(), c.bytesLeftText(), registerNumber(c.registersAs()))
	}
	return args
}

// receiveOnce runs the script for the calls that are not full and adds to them what it locked. left reports whether
// more messages are available; a recheck of zero, that nothing was found only because too much was due first.
func (s *Store) receiveOnce(ctx context.Context, calls []*receiveCall) (left bool, recheck time.Duration, err error) {
	source, nonce := calls[0].source, newNonce()
	args := append([]any{s.now(), prefixOf(source.SubQueue)}, s.receiveArgs(calls, nonce)...)
	r, err := s.runOn(ctx, source, "receive", s.keysOf(source), args...)
	if err != nil {
		return false, 0, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return false, 0, err
	}
	return s.handOut(ctx, source, nonce, calls, r)
}

// handOut adds to the calls what a script locked for them. r is its reply from the instant to look again on; the
// results are those of receiveOnce.
func (s *Store) handOut(
	ctx context.Context, source semantics.Source, nonce uint64, calls []*receiveCall, r *reply,
) (left bool, recheck time.Duration, err error) {
	recheck = time.Duration(r.number()) * time.Millisecond
	left = r.number() == 1
	lockedUntil := r.instant()
	back := readBackAgain(r)
	spans, counts := r.list(), r.list()
	back.from, back.entries = r.text(), r.list()
	if err := r.failure(); err != nil {
		return false, 0, err
	}
	found, err := s.readLocked(ctx, source, nonce, back, spans)
	for i := range found {
		found[i].lockedUntil = lockedUntil
	}
	s.giveBack(ctx, source, shareOut(calls, found, counts)) // nothing is left over, unless the script was wrong
	if len(found) == 0 && left {
		recheck = 0
	}
	return left, recheck, errors.Join(err, counts.failure())
}

// shareOut adds to the calls, in order, what was found for them, as the script divided it: by its counts, or by the
// limits of the calls if it returned none. The result is what no call gets.
func shareOut(calls []*receiveCall, found []entry, counts *reply) []entry {
	divided := counts.more()
	complete := 0
	if divided {
		complete = int(counts.number())
	}
	for i, c := range calls {
		open := c.open()
		n := c.limit - len(c.entries)
		if divided {
			n = 0
			if counts.more() {
				n = int(counts.number())
			}
		}
		n = min(n, len(found))
		c.add(found[:n]...)
		c.complete = c.complete || i < complete && n < open
		found = found[n:]
	}
	return found
}

// backAgain is what the script returned about locked messages: the positions of those that were delivered before, and
// what is known of these and of fresh ones.
type backAgain struct {
	positions *reply
	known     known
	from      string // of the only span: see receive.lua
	entries   *reply // of the only span; nil or empty: they must be read
}

func readBackAgain(r *reply) backAgain { return backAgain{positions: r.list(), known: readKnown(r)} }

// readLocked reads the messages that a script has just locked. It releases those that it cannot read.
func (s *Store) readLocked(
	ctx context.Context, source semantics.Source, nonce uint64, back backAgain, spans *reply,
) ([]entry, error) {
	toRead, err := back.spans(spans)
	if err != nil || len(toRead) == 0 {
		return nil, err
	}
	found, err := s.readFound(ctx, source, back, toRead)
	if err != nil {
		s.giveBack(ctx, source, entriesIn(toRead, nonce))
		return nil, err
	}
	for i := range found {
		found[i].nonce = nonce
	}
	return found, nil
}

// spans returns what to read: messages that were delivered before one by one, then spans of fresh messages.
func (back *backAgain) spans(fresh *reply) ([]span, error) {
	var spans []span
	for back.positions.more() {
		position := back.positions.text()
		spans = append(spans, span{first: position, last: position})
	}
	for fresh.more() {
		spans = append(spans, span{first: fresh.text(), last: fresh.text(), from: back.from})
	}
	back.positions.adopt(fresh)
	return spans, back.positions.failure()
}

// read returns the messages of the only span, if they came with the reply of the script, else nil.
func (back *backAgain) read(spans []span) ([][]entry, error) {
	if back.entries == nil || !back.entries.more() {
		return nil, nil
	}
	entries, err := readEntries(back.entries)
	if err == nil {
		entries, err = spans[0].withoutChunks(entries)
	}
	return [][]entry{entries}, err
}

// readFound reads messages that only an operator or the deletion of the queue can remove meanwhile. The result is in
// order of position.
func (s *Store) readFound(
	ctx context.Context, source semantics.Source, back backAgain, spans []span,
) ([]entry, error) {
	keys := s.keysOf(source).of(source.SubQueue)
	read, err := back.read(spans)
	switch {
	case err != nil:
	case read == nil:
		read, err = s.readSpans(ctx, keys, spans)
	default:
		err = s.addBodies(ctx, keys, read)
	}
	if err != nil {
		return nil, err
	}
	found := slices.Concat(read...)
	for i := range found {
		back.known.addTo(&found[i])
	}
	if ones := len(back.positions.items); ones > 0 && len(spans) > ones {
		slices.SortFunc(found, func(a, b entry) int { return cmp.Compare(a.position, b.position) })
	}
	return found, nil
}

// ReceiveByNumber implements semantics.Receiver.
func (s *Store) ReceiveByNumber(
	ctx context.Context, source semantics.Source, state semantics.State, numbers []int64,
) ([]*semantics.Received, error) {
	nonce := newNonce()
	word := "active"
	if state == semantics.Deferred {
		word = "deferred"
	}
	args := appendNumbers(
		[]any{s.now(), prefixOf(source.SubQueue), word, nonce, sessionToken(source), semantics.MaxAnswerBytes},
		onceEach(numbers),
	)
	r, err := s.runOn(ctx, source, "receive_by_number", s.keysOf(source), args...)
	if err != nil {
		return nil, err
	}
	if err := s.onNumbers(ctx, source, state, r); err != nil {
		return nil, err
	}
	if r.status == "TOO_LARGE" {
		fitting := r.number()
		return nil, cmp.Or(
			r.failure(), error(semantics.TooLargeAnswer(onceEach(numbers)[:min(int(fitting), len(numbers))])),
		)
	}
	// The messages are locked, so what follows does not end with the caller's context.
	background, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockedTimeout)
	defer cancel()
	lockedUntil := r.instant()
	back := readBackAgain(r)
	if err := r.failure(); err != nil {
		return nil, err
	}
	found, err := s.readLocked(background, source, nonce, back, &reply{})
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].lockedUntil = lockedUntil
	}
	batch, err := s.batchFor(ctx, source, found, 0)
	for _, m := range batch.Messages {
		m.State = state
	}
	return batch.Messages, err
}

// Reactivate implements semantics.Receiver.
func (s *Store) Reactivate(ctx context.Context, source semantics.Source, numbers []int64) error {
	args := appendNumbers([]any{s.now(), prefixOf(source.SubQueue), sessionToken(source)}, onceEach(numbers))
	r, err := s.runOn(ctx, source, "reactivate", s.keysOf(source), args...)
	if err != nil {
		return err
	}
	return s.onNumbers(ctx, source, semantics.Deferred, r)
}

// PassOn implements semantics.Receiver.
func (s *Store) PassOn(ctx context.Context, source semantics.Source) error {
	if !source.SessionLock.IsZero() || source.Session != "" {
		return nil // no other waiter is concerned
	}
	return s.passOn(ctx, source, "")
}

// passOn is PassOn; leaving is the name of a sidecar to remove from the waiting list, "" for one that still waits.
func (s *Store) passOn(ctx context.Context, source semantics.Source, leaving string) error {
	keys := s.keysOf(source).of(source.SubQueue)
	_, err := s.run(ctx, "pass_on", keys, s.now(), prefixOf(source.SubQueue), leaving)
	return err
}
