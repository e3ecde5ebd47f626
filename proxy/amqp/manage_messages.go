package amqp

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// view is how messages of the node are shown.
func (m *management) view(isPeek bool) convert.View {
	return convert.View{IsPeek: isPeek, HasOrigin: m.entity.Kind == semantics.SubscriptionKind}
}

// peek shows messages. Nothing to show is a nil answer.
func (m *management) peek(ctx context.Context, args *arguments) (codec.Map, error) {
	from, ok := codec.Integer(args.Get("from-sequence-number"))
	if !ok {
		return nil, semantics.InvalidField("from-sequence-number", "must be a long")
	}
	count, err := args.count("message-count", 1)
	if err != nil {
		return nil, err
	}
	source := m.at.source()
	if id := args.text("session-id"); id != nil && !m.at.sub.IsDeadLetters() {
		source.Session = *id
	}
	messages, err := m.connection.server.Broker.Peek(ctx, source, max(from, 0), count, semantics.ShowAll)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	list := make(codec.List, len(messages))
	for i, one := range messages {
		list[i] = codec.Map{codec.Entry("message", convert.Encode(one, m.view(true)))}
	}
	return codec.Map{codec.Entry("messages", list)}, nil
}

// renewLocks extends locks, all or none as far as the client can tell.
func (m *management) renewLocks(ctx context.Context, args *arguments) (codec.Map, error) {
	tokens, err := args.tokens()
	if err != nil {
		return nil, err
	}
	source := m.at.source()
	renewals, err := m.connection.server.Broker.RenewLocks(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	ends := make([]time.Time, len(renewals))
	for i, r := range renewals {
		if r.Code != "" {
			m.connection.server.Metrics.LockLost(source, obs.Renew)
			return nil, codeError(source, r.Code)
		}
		ends[i] = r.LockedUntil
	}
	m.connection.noteRenewals(tokens, ends)
	return codec.Map{codec.Entry("expirations", timestamps(ends))}, nil
}

// receiveDeferred takes deferred messages by their numbers. Those that do not reach the client are given back.
func (m *management) receiveDeferred(ctx context.Context, args *arguments) (codec.Map, error) {
	numbers, err := args.numbers("sequence-numbers")
	if err != nil {
		return nil, err
	}
	source, err := m.source(args)
	if err != nil {
		return nil, err
	}
	mode := semantics.PeekLock
	if n, ok := codec.Integer(args.Get("receiver-settle-mode")); ok && n == 0 {
		mode = semantics.ReceiveAndDelete
	}
	taken, err := m.connection.server.Broker.ReceiveDeferred(ctx, source, numbers, mode)
	if err != nil {
		return nil, err
	}
	list := make(codec.List, len(taken.Messages))
	for i, one := range taken.Messages {
		entry := codec.Map{codec.Entry("message", convert.Encode(one, m.view(false)))}
		if !one.LockToken.IsZero() {
			entry = append(entry, codec.Entry("lock-token", codec.UUID(one.LockToken)))
		}
		list[i] = entry
	}
	m.connection.server.Metrics.Received(ctx, source, taken.Messages)
	args.ended = func(isDelivered bool) {
		end := taken.Undelivered
		if isDelivered {
			end = taken.Delivered
		}
		_ = end(m.connection.ctx) // what fails comes again when its lock ends
	}
	return codec.Map{codec.Entry("messages", list)}, nil
}

// updateDisposition settles messages by their tokens, from whichever connection.
func (m *management) updateDisposition(_ context.Context, args *arguments) (codec.Map, error) {
	tokens, err := args.tokens()
	if err != nil {
		return nil, err
	}
	source, err := m.source(args)
	if err != nil {
		return nil, err
	}
	changes, _ := args.Get("properties-to-modify").(codec.Map)
	properties, err := convert.Properties(changes)
	if err != nil {
		return nil, err
	}
	c := m.connection
	v := verb{method: "Messages.Complete", name: obs.Complete, do: c.server.Broker.Complete}
	status, _ := codec.Text(args.Get("disposition-status"))
	switch status {
	case "completed":
	case "abandoned":
		v = c.abandonment(properties)
	case "defered": // spelled so
		v = c.deferral(properties)
	case "suspended":
		v = c.deadLettering(broker.DeadLetterOptions{
			Reason: args.text("deadletter-reason"), Description: args.text("deadletter-description"), Properties: properties,
		})
	default:
		return nil, semantics.InvalidField("disposition-status", "must be completed, abandoned, defered or suspended")
	}
	codes, err := c.run(source, tokens, v)
	if err != nil {
		return nil, err
	}
	for _, code := range codes {
		if code != "" && code != semantics.DurabilityNotMet {
			return nil, codeError(source, code)
		}
	}
	return codec.Map{}, nil
}

// target is what is sent to through the node.
func (m *management) target() semantics.Target {
	return semantics.Target{Path: m.at.source().String(), IsTopic: m.entity.Kind == semantics.TopicKind}
}

// schedule stores messages for later. When, each message says itself.
func (m *management) schedule(ctx context.Context, args *arguments) (codec.Map, error) {
	items, ok := codec.Items(args.Get("messages"))
	if !ok {
		return nil, semantics.InvalidField("messages", "must be a list of maps")
	}
	messages := make([]*semantics.Message, len(items))
	for i, item := range items {
		entry, _ := item.(codec.Map)
		payload, ok := entry.Get("message").([]byte)
		if !ok {
			return nil, semantics.InvalidField("messages", "must have a binary message in each map")
		}
		var err error
		if messages[i], err = convert.Message(payload); err != nil {
			return nil, err
		}
	}
	results, err := m.connection.server.Broker.Send(ctx, m.target(), messages)
	if err != nil {
		return nil, err
	}
	m.connection.server.Metrics.Sent(m.target(), messages, results)
	numbers := make(codec.Array, len(results))
	for i, r := range results {
		numbers[i] = r.SequenceNumber
	}
	return codec.Map{codec.Entry("sequence-numbers", numbers)}, nil
}

// cancel removes scheduled messages.
func (m *management) cancel(ctx context.Context, args *arguments) (codec.Map, error) {
	numbers, err := args.numbers("sequence-numbers")
	if err != nil {
		return nil, err
	}
	count, err := m.connection.server.Broker.CancelScheduled(ctx, m.target(), numbers, nil)
	if err != nil {
		return nil, err
	}
	m.connection.server.Metrics.Removed(m.at.path, obs.Cancel, int64(count))
	return codec.Map{}, nil
}
