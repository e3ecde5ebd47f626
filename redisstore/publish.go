package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// Bounds of one publish script, in units of Store.weigh: it takes some milliseconds.
const (
	fullPublish = 128
	mostPublish = 1000
)

// publishCall is one call of a Publish on its way to the script.
type publishCall struct {
	place        int // in the outcomes of its Publish
	topic        string
	version      int64
	publications []semantics.Publication
	fanOuts      []*fanOut
	once         *semantics.Once // nil: without a request id
	stored       []semantics.Stored
	repeats      *semantics.Repetition
	err          error
}

// publishCalls are calls of one caller that share one script, so that they keep their order.
type publishCalls []*publishCall

func (calls publishCalls) weight() int {
	n := 0
	for _, c := range calls {
		for _, f := range c.fanOuts {
			n += f.weight
		}
	}
	return n
}

// Publish implements semantics.Topics. If one script does not take all, further ones follow, each after the answer to
// the last, until one fails.
func (s *Store) Publish(
	ctx context.Context, topic string, version int64, calls [][]semantics.Publication,
) []semantics.SendOutcome {
	outcomes := make([]semantics.SendOutcome, len(calls))
	var ready publishCalls
	for i, publications := range calls {
		call := &publishCall{place: i, topic: topic, version: version, publications: publications}
		if outcomes[i].Err = s.encode(call); outcomes[i].Err == nil {
			ready = append(ready, call)
		}
	}
	var stop error
	for _, some := range piecesOf(ready, publishCalls.weight, mostPublish) {
		err := stop
		if err == nil {
			err = s.publishes.do(ctx, semantics.Fold(topic), some)
		}
		for _, c := range some {
			outcomes[c.place] = semantics.SendOutcome{Stored: c.stored, Err: cmp.Or(err, c.err)}
		}
		stop = cmp.Or(stop, stopAfter(outcomes[some[len(some)-1].place].Err))
	}
	return outcomes
}

// PublishOnce implements semantics.Topics.
func (s *Store) PublishOnce(
	ctx context.Context, topic string, version int64, once semantics.Once, publications []semantics.Publication,
) semantics.SendOutcome {
	call := &publishCall{topic: topic, version: version, publications: publications, once: &once}
	err := s.encode(call)
	if err == nil {
		err = s.publishes.do(ctx, semantics.Fold(topic), publishCalls{call})
	}
	if err != nil {
		return semantics.SendOutcome{Err: err}
	}
	return semantics.SendOutcome{Stored: call.stored, Repeats: call.repeats, Err: call.err}
}

func (s *Store) encode(c *publishCall) error {
	c.fanOuts = make([]*fanOut, len(c.publications))
	for i, p := range c.publications {
		var err error
		if c.fanOuts[i], err = s.sealing.newFanOut(p, !p.Message.ScheduledAt.IsZero()); err != nil {
			return err
		}
		c.fanOuts[i].weight = s.weigh(c.topic, c.fanOuts[i])
	}
	return nil
}

// runPublishes runs calls on one topic. Calls with routes of different versions cannot share a script.
func (s *Store) runPublishes(ctx context.Context, groups []publishCalls) {
	calls := slices.Concat(groups...)
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && calls[n].version == calls[0].version {
			n++
		}
		s.publishTogether(ctx, calls[:n])
		calls = calls[n:]
	}
}

func (s *Store) publishTogether(ctx context.Context, calls publishCalls) {
	r, d, err := s.publishScript(s.lastingAgain(ctx), calls)
	var alarms []alarm
	if err == nil {
		if at := s.readNotifications(calls[0].topic, r); at > 0 {
			alarms = append(alarms, alarm{name: semantics.Fold(calls[0].topic), at: at})
		}
		notifications := r.list()
		alarms = append(alarms, s.applyCopies(d, notifications)...)
		r.adopt(notifications)
	}
	for _, c := range calls {
		switch {
		case err != nil:
			c.err = err
		case r.isText(): // all stored, with consecutive numbers
			c.stored = consecutive(r.number(), len(c.publications))
			c.err = r.failure()
		default:
			result := r.list()
			if c.stored, c.repeats, c.err = readRepetition(c.topic, len(c.publications), c.once,
				result); c.repeats == nil &&
				c.err == nil {
				c.stored, c.err = readPublishResult(c, d, result)
			}
			if broken := result.failure(); broken != nil {
				c.err = broken
			}
		}
		if err == nil {
			c.err = cmp.Or(c.err, r.unmet)
		}
	}
	s.setAlarms(ctx, alarms...)
}

// publishScript runs the script for calls of one version. If the script needs more keys it changes nothing, and
// publishScript runs it again with them.
func (s *Store) publishScript(ctx context.Context, calls publishCalls) (*reply, destinations, error) {
	topic, version := calls[0].topic, strconv.FormatInt(calls[0].version, 10)
	var fanOuts []*fanOut
	hasRequests := false
	for _, c := range calls {
		fanOuts = append(fanOuts, c.fanOuts...)
		hasRequests = hasRequests || c.once != nil
	}
	d := destinationsOf(topic, fanOuts)
	var all []string // the entities of the topic and of every subscription, where they are needed
	for {
		more, levels := s.appendKeys(slices.Clone(all), d)
		if hasRequests {
			more = append(more, s.keys(topic).group("answers")...)
		}
		args := []any{s.now(), version, bytesOf(calls), len(all), levels}
		for _, c := range calls {
			args = c.append(args, d)
		}
		r, err := s.run(ctx, "publish", with(s.keys(topic), more...), args...)
		if err != nil {
			return nil, d, err
		}
		switch r.status {
		case "NEEDS_KEYS":
			err = s.learnLevels(d, r)
		case "NEEDS_ALL":
			all, err = s.everyEntity(ctx, topic, version)
		case "ROUTES_CHANGED":
			err = semantics.ErrRoutesChanged
		case string(semantics.EntityNotFound):
			err = semantics.NotFound(topic)
		default: // OK
			return r, d, nil
		}
		if err != nil {
			return nil, d, err
		}
	}
}

// everyEntity returns the entities of a topic and of all its subscriptions by a version of its routes.
func (s *Store) everyEntity(ctx context.Context, topic, version string) ([]string, error) {
	found, err := s.presentRoster(ctx, topic)
	if err == nil && found.version != version {
		err = semantics.ErrRoutesChanged
	}
	return s.entities(topic, found.names), err
}

// bytesOf returns how many bytes the calls add to the topic at most.
func bytesOf(calls publishCalls) int64 {
	n := int64(0)
	for _, c := range calls {
		for i, p := range c.publications {
			n += max(p.Message.Size(), c.fanOuts[i].bytes)
		}
	}
	return n
}

func (c *publishCall) append(args []any, d destinations) []any {
	args = append(args, headOf(len(c.publications), c.once))
	for i, p := range c.publications {
		m, f := p.Message, c.fanOuts[i]
		args = append(args, sizeAndLifetime(m), dueMillis(m.ScheduledAt), m.MessageID, m.Partition(), f.bytes)
		args = f.append(args, d.index)
	}
	return args
}

// readPublishResult reads the result of a call that was not stored as a whole with consecutive numbers.
func readPublishResult(c *publishCall, d destinations, r *reply) ([]semantics.Stored, error) {
	switch code, _ := r.items[0].(string); semantics.Code(code) {
	case semantics.NoMatchingSubscription:
		_, index := r.text(), r.number()
		return nil, semantics.Unmatched(c.topic, int(index))
	case "TOO_MANY_COPIES":
		_, load, limit, index := r.text(), semantics.CopyLoad{
			Copies: r.number(),
			Bytes:  r.number(),
		}, r.number(), r.number()
		return nil, load.Refusal(c.topic, limit, int(index))
	case semantics.EntityFull:
		_, what, actual, limit, dead, which := r.text(), r.text(), r.number(), r.number(), r.number(), r.number()
		path := c.topic
		if which > 0 && int(which) <= len(d.names) {
			path = d.path(int(which) - 1)
		}
		return nil, semantics.Full(path, semantics.Bound(what), actual, limit, dead)
	default:
		return readSendResult(c.topic, len(c.publications), r)
	}
}
