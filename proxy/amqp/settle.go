package amqp

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// settling is a settlement that the client asks for.
type settling struct {
	all     []engine.Settlement
	state   frame.State
	isAsked bool
	done    func(err error) // notes what became of it if it is in a transaction; nil if not
}

func (s settling) tokens() []semantics.LockToken {
	tokens := make([]semantics.LockToken, len(s.all))
	for i, one := range s.all {
		tokens[i] = one.Ref.(lock).token
	}
	return tokens
}

func (r *receiver) onSettled(all []engine.Settlement, state frame.State, isAsked bool) {
	r.settling.add(settling{all, state, isAsked, r.connection.arrived(state)})
}

// settle settles in the order of arrival. Neighbours with the same plain outcome are settled together.
func (r *receiver) settle(asked []settling) {
	for len(asked) > 0 {
		one := asked[0]
		asked = asked[1:]
		for len(asked) > 0 && canJoin(one, asked[0]) {
			one.all = append(one.all, asked[0].all...)
			asked = asked[1:]
		}
		if state, ok := one.state.(frame.Transactional); ok {
			r.settleInTransaction(one, state)
			r.link.Release(one.all)
			continue
		}
		for piece := range slices.Chunk(one.all, semantics.MaxSettleTokens) {
			r.settleOne(settling{piece, one.state, one.isAsked, nil})
			r.link.Release(piece)
		}
	}
}

// canJoin reports whether two settlements are the same completion or release.
func canJoin(a, b settling) bool {
	if a.isAsked != b.isAsked {
		return false
	}
	switch a.state.(type) {
	case frame.Accepted:
		_, ok := b.state.(frame.Accepted)
		return ok
	case frame.Released:
		_, ok := b.state.(frame.Released)
		return ok
	default:
		return false
	}
}

// echo is the answer to a settlement that has succeeded: the outcome that the client has asked for. The SDKs for Python
// and Java take another one for a failure, and rejected with an error too.
func echo(asked frame.State) frame.State {
	switch asked.(type) {
	case frame.Modified:
		return frame.Modified{}
	case frame.Rejected:
		return frame.Rejected{}
	case nil:
		return frame.Released{}
	default:
		return asked
	}
}

// settleOne runs one settlement and answers it.
func (r *receiver) settleOne(s settling) {
	codes, err := r.settlePatiently(s)
	if !s.isAsked {
		return
	}
	byCode := map[semantics.Code][]engine.Settlement{}
	for i, code := range codes {
		if code == semantics.DurabilityNotMet { // it is settled
			code = ""
		}
		byCode[code] = append(byCode[code], s.all[i])
	}
	for code, all := range byCode {
		state := echo(s.state)
		switch {
		case code != "" && code == semantics.CodeOf(err):
			state = frame.Rejected{Error: finalError(err)}
		case code != "":
			state = frame.Rejected{Error: finalError(codeError(r.source, code))}
		}
		r.link.Acknowledge(all, state)
	}
}

// defaultPatience is how long a settlement is tried again while it may still succeed. SDKs wait for a minute.
const defaultPatience = 30 * time.Second

// settlePause is the longest pause between two tries: locks end meanwhile.
const settlePause = time.Second

// settlePatiently settles messages. What may still succeed, such as when Redis is away, it tries again: if a settlement
// is rejected, the SDK for Go takes the message for settled whatever the reason, and its own second try does nothing
// and succeeds. Once settled, a message has lost its lock, so a try after an unknown outcome changes nothing twice. If
// one partition is away, only its messages are tried again (PART-7).
// An error is that of the last try; messages that have its code failed with it.
func (r *receiver) settlePatiently(s settling) (codes []semantics.Code, err error) {
	deadline, pause := time.Now().Add(r.connection.server.patience()), firstPause
	tokens := s.tokens()
	codes = make([]semantics.Code, len(tokens))
	open := make([]int, len(tokens)) // places of those to try
	for i := range open {
		open[i] = i
	}
	for {
		err = r.try(s.state, tokens, open, codes)
		open = slices.DeleteFunc(open, func(at int) bool { return !codes[at].Retryable() })
		wait := pause
		if err != nil {
			wait = max(pause, semantics.AsError(err).RetryAfter)
		}
		if pause = min(2*pause, settlePause); len(open) == 0 || time.Until(deadline) < wait {
			return codes, err
		}
		select {
		case <-time.After(wait):
		case <-r.link.Context().Done():
			return codes, err
		}
	}
}

// try settles the tokens at some places, and notes their codes there.
func (r *receiver) try(state frame.State, tokens []semantics.LockToken, places []int, codes []semantics.Code) error {
	some := make([]semantics.LockToken, len(places))
	for i, at := range places {
		some[i] = tokens[at]
	}
	tried, err := r.connection.settle(r.source, some, state)
	for i, at := range places {
		if codes[at] = semantics.CodeOf(err); err == nil {
			codes[at] = tried[i]
		}
	}
	return err
}

// finalError returns an error after which no SDK settles again over the link. What could have succeeded later is a lost
// lock: the message comes again, unless it was settled after all.
func finalError(err error) *frame.Error {
	e := linkError(err)
	if semantics.AsError(err).Code.Retryable() {
		e.Description = "it is unknown whether the message was settled; if not, it comes again when its lock ends: " +
			e.Description
		e.Condition = messageLockLost
	}
	return e
}

// verb is a settlement of the broker with its name.
type verb struct {
	method, name, reason string
	do                   semantics.Settlement
}

// settle settles messages with the state that the client has given them.
func (c *connection) settle(
	source semantics.Source, tokens []semantics.LockToken, state frame.State,
) (codes []semantics.Code, err error) {
	v, err := c.verbOf(state)
	if err != nil {
		return nil, err
	}
	return c.run(source, tokens, v)
}

// run runs a settlement and counts it.
func (c *connection) run(
	source semantics.Source, tokens []semantics.LockToken, v verb,
) (codes []semantics.Code, err error) {
	err = c.call(c.ctx, v.method, source.String(), func(ctx context.Context) error {
		if codes, err = v.do(ctx, source, tokens); err != nil {
			return err
		}
		s := obs.Settlement{Source: source, Verb: v.name, Tokens: tokens, Reason: v.reason}
		c.server.Metrics.Settled(ctx, s, codes)
		return nil
	})
	return codes, err
}

// verbOf returns the settlement of a state.
func (c *connection) verbOf(state frame.State) (verb, error) {
	b := c.server.Broker
	switch s := state.(type) {
	case frame.Accepted:
		return verb{method: "Messages.Complete", name: obs.Complete, do: b.Complete}, nil
	case frame.Released, nil:
		return verb{method: "Messages.Release", name: obs.Release, do: b.Release}, nil
	case frame.Modified:
		properties, err := convert.Properties(s.Annotations)
		if err != nil {
			return verb{}, err
		}
		if s.UndeliverableHere {
			return c.deferral(properties), nil
		}
		return c.abandonment(properties), nil
	case frame.Rejected:
		options, err := deadLetterOptions(s.Error)
		return c.deadLettering(options), err
	default:
		return verb{}, semantics.Errorf(semantics.InvalidOperation, "a message cannot be settled with this state")
	}
}

func (c *connection) abandonment(properties map[string]semantics.Value) verb {
	options := semantics.AbandonOptions{Properties: properties}
	do := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return c.server.Broker.Abandon(ctx, source, tokens, options)
	}
	return verb{method: "Messages.Abandon", name: obs.Abandon, do: do}
}

func (c *connection) deferral(properties map[string]semantics.Value) verb {
	do := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return c.server.Broker.Defer(ctx, source, tokens, properties)
	}
	return verb{method: "Messages.Defer", name: obs.Defer, do: do}
}

func (c *connection) deadLettering(options broker.DeadLetterOptions) verb {
	do := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return c.server.Broker.DeadLetter(ctx, source, tokens, options)
	}
	v := verb{method: "Messages.DeadLetter", name: obs.DeadLetter, do: do}
	if options.Reason != nil {
		v.reason = *options.Reason
	}
	return v
}

// deadLetterOptions returns why a client rejects a message. With the condition of Service Bus, the texts and further
// properties are in the map of the error; with another one, the error itself is the reason.
func deadLetterOptions(e *frame.Error) (options broker.DeadLetterOptions, err error) {
	const (
		deadLetter  = "com.microsoft:dead-letter"
		reason      = semantics.PropertyDeadLetterReason
		description = semantics.PropertyDeadLetterDescription
	)
	if e == nil {
		return options, nil
	}
	if e.Condition != deadLetter {
		return broker.DeadLetterOptions{Reason: &e.Condition, Description: &e.Description}, nil
	}
	var rest codec.Map
	for _, p := range e.Info {
		name, _ := codec.Text(p.Key)
		told, isText := codec.Text(p.Value)
		switch {
		case name == reason && isText:
			options.Reason = &told
		case name == description && isText:
			options.Description = &told
		case p.Value != nil || name != reason && name != description: // null stands for no text
			rest = append(rest, p)
		}
	}
	options.Properties, err = convert.Properties(rest)
	return options, err
}
