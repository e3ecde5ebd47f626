package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// What shares one send script, in units of a message or a KiB, so that it stays short.
const (
	fullSend = 128
	mostSend = 256
)

// sendCall is one Send on its way to the script.
type sendCall struct {
	path     string
	messages []*semantics.Message
	payloads [][]byte
	first    int64
	err      error
}

func (c *sendCall) weight() int {
	n := len(c.messages)
	for _, p := range c.payloads {
		n += len(p) >> 10
	}
	return n
}

// Send implements semantics.Sender.
func (s *Store) Send(ctx context.Context, path string, messages []*semantics.Message) (int64, error) {
	call := &sendCall{path: path, messages: messages, payloads: make([][]byte, len(messages))}
	for i, m := range messages {
		payload, err := encodePayload(m)
		if err != nil {
			return 0, err
		}
		call.payloads[i] = payload
	}
	if err := s.sends.do(ctx, semantics.Fold(path), call); err != nil {
		return 0, err
	}
	return call.first, call.err
}

func (s *Store) runSends(ctx context.Context, calls []*sendCall) {
	keys := s.keys(calls[0].path)
	args := []any{s.now()}
	for _, c := range calls {
		args = append(args, len(c.messages))
		for i, m := range c.messages {
			args = append(args, sizeAndLifetime(m), c.payloads[i])
		}
	}
	r, err := s.run(ctx, "send", []string{keys.entity, keys.log, keys.expiry, keys.waiting}, args...)
	for _, c := range calls {
		switch {
		case err != nil:
			c.err = err
		case r.status != "OK":
			c.err = semantics.NotFound(c.path)
		default:
			result := r.list()
			c.first, c.err = readSendResult(c.path, result)
			if broken := result.failure(); broken != nil {
				c.err = broken
			}
		}
	}
}

func readSendResult(path string, r *reply) (int64, error) {
	switch code := semantics.Code(r.text()); code {
	case "OK":
		return r.number(), nil
	case semantics.MessageSizeExceeded:
		index, actual, limit := r.number(), r.number(), r.number()
		if index < 0 {
			return 0, semantics.SizeExceeded("batch", actual, limit)
		}
		return 0, semantics.SizeExceeded("message", actual, limit).With(semantics.DetailIndex, strconv.FormatInt(index, 10))
	case semantics.EntityDisabled:
		return 0, disabled(path, r.text())
	case semantics.EntityFull:
		what, actual, limit, dead := r.text(), r.number(), r.number(), r.number()
		return 0, full(path, what, actual, limit, dead)
	default:
		return 0, semantics.Errorf(semantics.Internal, "entity %q has given out all sequence numbers", path)
	}
}

func disabled(path, status string) error {
	return semantics.Errorf(semantics.EntityDisabled, "entity %q has status %s, which forbids this; set its status", path, status).
		With(semantics.DetailEntity, path)
}

func full(path, what string, actual, limit, dead int64) error {
	return semantics.Errorf(semantics.EntityFull, "entity %q would hold %d %s, at most %d are allowed (%d bytes are dead letters); receive some or raise its limit",
		path, actual, what, limit, dead).
		With(semantics.DetailEntity, path).With(semantics.DetailActual, strconv.FormatInt(actual, 10)).
		With(semantics.DetailLimit, strconv.FormatInt(limit, 10)).With(semantics.DetailDeadSize, strconv.FormatInt(dead, 10))
}

// sizeAndLifetime gives "<size>", or "<size>:<ttl_ms>" for a message with a time to live of its own.
func sizeAndLifetime(m *semantics.Message) string {
	text := strconv.FormatInt(m.Size(), 10)
	if ttl := ttlMillis(m.TimeToLive); ttl >= 0 {
		text += ":" + strconv.FormatInt(ttl, 10)
	}
	return text
}

// ttlMillis gives a time to live for scripts: -1 for none or never.
func ttlMillis(ttl *time.Duration) int64 {
	if ttl == nil || *ttl == semantics.Never {
		return -1
	}
	return ttl.Milliseconds()
}
