package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Bounds of one send script, in units of a message or a KiB.
const (
	fullSend = 128
	mostSend = 256
)

// sendCall is one Send on its way to the script.
type sendCall struct {
	path     string
	place    int // in the outcomes of its SendEach
	messages []*semantics.Message
	payloads [][]byte
	once     *semantics.Once // nil: without a request id
	stored   []semantics.Stored
	repeats  *semantics.Repetition
	err      error
}

// sendCalls are the Sends of one caller that share one script, so that they keep their order.
type sendCalls []*sendCall

func (calls sendCalls) weight() int {
	n := 0
	for _, c := range calls {
		n += len(c.messages)
		for _, p := range c.payloads {
			n += len(p) >> 10
		}
	}
	return n
}

// needsKeys reports whether the script must know more about the messages than size and lifetime.
func (c *sendCall) needsKeys() bool {
	for _, m := range c.messages {
		if !m.ScheduledAt.IsZero() {
			return true
		}
	}
	return false
}

// isInSessions reports whether each of the messages has a session.
func (c *sendCall) isInSessions() bool {
	return !slices.ContainsFunc(c.messages, func(m *semantics.Message) bool { return m.SessionID == "" })
}

// expires reports whether one of the messages has a time to live of its own.
func (c *sendCall) expires() bool {
	return slices.ContainsFunc(c.messages, func(m *semantics.Message) bool { return ttlMillis(m.TimeToLive) >= 0 })
}

// Send implements semantics.Sender.
func (s *Store) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	buffer := takeBuffer()
	defer returnBuffer(buffer)
	call, err := s.newSendCall(path, messages, buffer)
	if err != nil {
		return nil, err
	}
	if err := s.sends.do(ctx, semantics.Fold(path), sendCalls{call}); err != nil {
		return nil, err
	}
	return call.stored, call.err
}

// SendEach implements semantics.Sender. If one script does not take all, further ones follow, each after the answer to
// the last, until one fails.
func (s *Store) SendEach(ctx context.Context, path string, calls [][]*semantics.Message) []semantics.SendOutcome {
	outcomes := make([]semantics.SendOutcome, len(calls))
	ready := make(sendCalls, 0, len(calls))
	buffer := takeBuffer()
	defer returnBuffer(buffer)
	for i, messages := range calls {
		call, err := s.newSendCall(path, messages, buffer)
		if outcomes[i].Err = err; err == nil {
			call.place = i
			ready = append(ready, call)
		}
	}
	var stop error
	for _, some := range piecesOf(ready, sendCalls.weight, mostSend) {
		err := stop
		if err == nil {
			err = s.sends.do(ctx, semantics.Fold(path), some)
		}
		for _, c := range some {
			outcomes[c.place] = semantics.SendOutcome{Stored: c.stored, Err: cmp.Or(err, c.err)}
		}
		stop = cmp.Or(stop, stopAfter(outcomes[some[len(some)-1].place].Err))
	}
	return outcomes
}

// SendOnce implements semantics.Sender.
func (s *Store) SendOnce(
	ctx context.Context, path string, once semantics.Once, messages []*semantics.Message,
) semantics.SendOutcome {
	buffer := takeBuffer()
	defer returnBuffer(buffer)
	call, err := s.newSendCall(path, messages, buffer)
	if err == nil {
		call.once = &once
		err = s.sends.do(ctx, semantics.Fold(path), sendCalls{call})
	}
	if err != nil {
		return semantics.SendOutcome{Err: err}
	}
	return semantics.SendOutcome{Stored: call.stored, Repeats: call.repeats, Err: call.err}
}

// stopAfter returns the error of the calls of one caller that follow one with this outcome, nil if they are made. They
// are not made if the first may be repeated, so that they do not overtake it. One to a partition that is missing is
// repeated when that has been created.
func stopAfter(outcome error) error {
	switch {
	case errors.Is(outcome, semantics.ErrRoutesChanged), semantics.CodeOf(outcome) == semantics.EntityNotFound:
		return outcome
	case semantics.CodeOf(outcome) == semantics.StoreUnavailable:
		notSent := unavailable(
			outcome, "an earlier message was not sent, and so this one was not",
		).With(semantics.DetailCause, "redis_unreachable")
		notSent.RetryAfter = passing
		return notSent
	default:
		return nil
	}
}

// newSendCall returns a call whose payloads are in the buffer.
func (s *Store) newSendCall(path string, messages []*semantics.Message, buffer *[]byte) (*sendCall, error) {
	call := &sendCall{path: path, messages: messages, payloads: make([][]byte, len(messages))}
	for i, m := range messages {
		longer, err := s.sealing.append(*buffer, m)
		if err != nil {
			return nil, err
		}
		call.payloads[i] = longer[len(*buffer):len(longer):len(longer)]
		*buffer = longer
	}
	return call, nil
}

// runSends runs the script for the calls of several callers and sets their outcomes.
func (s *Store) runSends(ctx context.Context, groups []sendCalls) {
	calls := slices.Concat(groups...)
	path := calls[0].path
	r, together, err := s.send(ctx, groups, calls)
	isStored, first := err == nil && r.status == "OK", int64(0)
	if isStored {
		s.apply(ctx, path, r)
	}
	if isStored && together {
		first = r.number()
		err = r.failure()
	}
	for _, c := range calls {
		switch {
		case err != nil:
			c.err = err
		case !isStored:
			s.keyed.forget(semantics.Fold(path))
			c.err = semantics.NotFound(c.path)
		case together:
			c.stored = consecutive(first, len(c.messages))
			first += int64(len(c.messages))
			c.err = r.unmet
		default:
			c.read(r)
			c.err = cmp.Or(c.err, r.unmet)
		}
	}
}

// send runs the script: for all messages together if none has options and the queue permits it, else with each message
// for itself.
func (s *Store) send(ctx context.Context, groups []sendCalls, calls []*sendCall) (r *reply, together bool, err error) {
	path := calls[0].path
	folded := semantics.Fold(path)
	keyed, _ := s.keyed.get(folded)
	hasOptions, needsKeys, hasRequests, inSessions := false, false, false, true
	for _, c := range calls {
		hasOptions, needsKeys = hasOptions || c.expires(), needsKeys || c.needsKeys()
		hasRequests, inSessions = hasRequests || c.once != nil, inSessions && c.isInSessions()
	}
	keys := with(s.keys(path))
	if hasRequests {
		keys.more = s.keys(path).group("answers")
	}
	isPlain := !hasOptions && !needsKeys && !hasRequests && (!keyed || inSessions)
	if isPlain && s.sendsTogether(folded) {
		buffer := takeBuffer()
		args := chunkArgs
		if keyed {
			args = sessionArgs
		}
		r, err = s.run(s.lasting(ctx), "send", keys, args(s.now(), groups, buffer)...)
		returnBuffer(buffer)
		if err != nil || r.status != "NEEDS_EACH" {
			return r, true, err
		}
		s.separate.put(folded, time.Now().Add(separateFor))
	}
	keyed = keyed || needsKeys
	ctx = s.lastingAgain(ctx) // duplicates and repeats are stored already
	r, err = s.run(ctx, "send", keys, sendArgs(s.now(), keyed, calls)...)
	if err == nil && r.status == "NEEDS_KEYS" {
		s.keyed.put(folded, true)
		s.separate.forget(folded) // in sessions the queue may take them together
		r, err = s.run(ctx, "send", keys, sendArgs(s.now(), true, calls)...)
	}
	return r, false, err
}

// read reads the outcome of a call whose messages were not sent together.
func (c *sendCall) read(r *reply) {
	if r.isText() { // all stored, with consecutive numbers
		c.stored = consecutive(r.number(), len(c.messages))
		c.err = r.failure()
		return
	}
	result := r.list()
	c.stored, c.repeats, c.err = readRepetition(c.path, len(c.messages), c.once, result)
	if c.repeats == nil && c.err == nil {
		c.stored, c.err = readSendResult(c.path, len(c.messages), result)
	}
	if broken := result.failure(); broken != nil {
		c.err = broken
	}
}

// sessionArgs is chunkArgs for messages with sessions, which share no entries and so need no buffer.
func sessionArgs(now string, groups []sendCalls, _ *[]byte) []any {
	var all load
	args := append(make([]any, 0, 16), now, "sessions", nil, nil, nil, nil, nil)
	for _, call := range slices.Concat(groups...) {
		all.add(call)
		for i, m := range call.messages {
			args = append(args, m.Size(), sessionKey(m.SessionID), call.payloads[i])
		}
	}
	all.describe(args[2:])
	return args
}

func sendArgs(now string, keyed bool, calls []*sendCall) []any {
	args := []any{now, formOf(keyed)}
	for _, c := range calls {
		args = append(args, headOf(len(c.messages), c.once))
		for i, m := range c.messages {
			args = append(args, sizeAndLifetime(m))
			if keyed {
				args = append(args, dueMillis(m.ScheduledAt), m.MessageID, m.Partition(), sessionKey(m.SessionID))
			}
			args = append(args, c.payloads[i])
		}
	}
	return args
}

// formOf returns the form in which send.lua gets messages that are not sent together.
func formOf(keyed bool) string {
	if keyed {
		return "keyed"
	}
	return "each"
}

// separateFor is how long messages of a queue are sent one by one after they could not be sent together.
const separateFor = time.Second

// sendsTogether reports whether the script may get messages of a queue together: it did not refuse the last ones.
func (s *Store) sendsTogether(folded string) bool { return isOver(s.separate, folded) }

// isOver reports whether what was remembered of an entity until some instant is not to be remembered any more.
func isOver(times *learnt[time.Time], folded string) bool {
	until, ok := times.get(folded)
	if ok && !time.Now().Before(until) {
		times.forget(folded)
		ok = false
	}
	return !ok
}

func consecutive(first int64, messages int) []semantics.Stored {
	stored := make([]semantics.Stored, messages)
	for i := range stored {
		stored[i].SequenceNumber = first + int64(i)
	}
	return stored
}

func readSendResult(path string, messages int, r *reply) ([]semantics.Stored, error) {
	switch code := semantics.Code(r.text()); code {
	case "EACH":
		stored := make([]semantics.Stored, messages)
		for i := range stored {
			stored[i] = readStored(r.number())
		}
		return stored, nil
	case semantics.MessageSizeExceeded:
		index, actual, limit := r.number(), r.number(), r.number()
		if index < 0 {
			return nil, semantics.BatchTooLarge(actual, limit)
		}
		return nil, semantics.MessageTooLarge(actual, limit).With(semantics.DetailIndex, strconv.FormatInt(index, 10))
	case semantics.EntityDisabled:
		return nil, semantics.Disabled(path, r.text())
	case semantics.SessionIDMissing:
		return nil, semantics.SessionMissing(path, int(r.number()))
	case semantics.PartitionKeyMismatch:
		return nil, semantics.PartitionsMixed(path, false, int(r.number()))
	case semantics.EntityFull:
		what, actual, limit, dead := r.text(), r.number(), r.number(), r.number()
		return nil, semantics.Full(path, semantics.Bound(what), actual, limit, dead)
	case semantics.QuotaExceeded:
		return nil, semantics.HistoryFull(path, r.number())
	default:
		return nil, semantics.Errorf(semantics.Internal, "entity %q has used all sequence numbers", path)
	}
}

// readStored parses a number, which is negative for a duplicate of that number.
func readStored(number int64) semantics.Stored {
	if number < 0 {
		return semantics.Stored{SequenceNumber: -number, Deduplicated: true}
	}
	return semantics.Stored{SequenceNumber: number}
}

// sizeAndLifetime returns "<size>", or "<size>:<ttl_ms>" for a message with a time to live of its own.
func sizeAndLifetime(m *semantics.Message) string {
	text := strconv.FormatInt(m.Size(), 10)
	if ttl := ttlMillis(m.TimeToLive); ttl >= 0 {
		text += ":" + strconv.FormatInt(ttl, 10)
	}
	return text
}

// ttlMillis returns a time to live for scripts: -1 for none or never.
func ttlMillis(ttl *time.Duration) int64 {
	if ttl == nil || *ttl == semantics.Never {
		return -1
	}
	return ttl.Milliseconds()
}

// dueMillis returns an instant for scripts, 0 for none.
func dueMillis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return max(at.UnixMilli(), 1)
}
