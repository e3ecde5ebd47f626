package redisstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Due implements semantics.Topics.
func (s *Store) Due(ctx context.Context, topic string, limit int) ([]*semantics.Received, error) {
	r, err := s.run(ctx, "due", s.keys(topic), s.now(), limit, semantics.MaxAnswerBytes)
	if err != nil {
		return nil, err
	}
	if r.status != "OK" {
		return nil, semantics.NotFound(topic)
	}
	var found []*semantics.Received
	for r.more() {
		e := readEntry(r)
		e.scheduled = true
		e.dead, e.sessionSequence = nil, 0 // its further fields are not those of a dead letter
		if err := r.failure(); err != nil {
			return nil, err
		}
		m := e.received(s.sealing)
		m.VisibleAt = time.Time{} // is for peeks
		found = append(found, m)
	}
	return found, r.failure()
}

// activation is a message on its way to the script.
type activation struct {
	semantics.Activation
	*fanOut
}

func weightOf(activations []activation) int {
	n := 0
	for _, a := range activations {
		n += a.weight
	}
	return n
}

// Activate implements semantics.Topics. If one script does not take all, further ones follow.
func (s *Store) Activate(ctx context.Context, topic string, version int64, activations []semantics.Activation) error {
	ready := make([]activation, len(activations))
	for i, a := range activations {
		f, err := s.sealing.newFanOut(a.Publication, false)
		if err != nil {
			return err
		}
		f.weight = s.weigh(topic, f)
		ready[i] = activation{Activation: a, fanOut: f}
	}
	for _, some := range piecesOf(ready, weightOf, mostPublish) {
		if err := s.activateTogether(ctx, topic, version, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) activateTogether(ctx context.Context, topic string, version int64, activations []activation) error {
	fanOuts := make([]*fanOut, len(activations))
	for i, a := range activations {
		fanOuts[i] = a.fanOut
	}
	d := destinationsOf(topic, fanOuts)
	for {
		copies, levels := s.appendKeys(nil, d)
		args := []any{s.now(), version, levels}
		for _, a := range activations {
			args = append(args, a.SequenceNumber, a.EnqueuedAt.UnixMilli(), a.Message.MessageID)
			args = a.append(args, d.index)
		}
		r, err := s.run(ctx, "activate", with(s.keys(topic), copies...), args...)
		if err != nil {
			return err
		}
		switch r.status {
		case "NEEDS_KEYS":
			err = s.learnLevels(d, r)
		case "ROUTES_CHANGED":
			err = semantics.ErrRoutesChanged
		case string(semantics.EntityNotFound):
			err = semantics.NotFound(topic)
		default: // OK
			notifications := r.list()
			s.setAlarms(ctx, s.applyCopies(d, notifications)...)
			r.adopt(notifications)
			return r.failure()
		}
		if err != nil {
			return err
		}
	}
}
