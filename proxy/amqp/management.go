package amqp

import (
	"context"
	"net/http"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// operation is what a client can ask the management of an entity for.
type operation struct {
	claims access.Claims
	// settles: see access.Right.
	settles bool
	method  string // the RPC that does the same
	do      func(*management, context.Context, *arguments) (codec.Map, error)
}

// operations are all of them, by their names without "com.microsoft:".
var operations = map[string]operation{
	"peek-message": {access.Listen, false, "Messages.Peek", (*management).peek},
	"renew-lock":   {access.Listen, false, "Messages.RenewLocks", (*management).renewLocks},
	"receive-by-sequence-number": {
		access.Listen, false, "Messages.ReceiveDeferred", (*management).receiveDeferred,
	},
	"update-disposition":       {access.Listen, true, "Messages.Settle", (*management).updateDisposition},
	"schedule-message":         {access.Send, false, "Messages.Send", (*management).schedule},
	"cancel-scheduled-message": {access.Send, false, "Messages.CancelScheduled", (*management).cancel},
	"renew-session-lock":       {access.Listen, false, "Sessions.RenewLock", (*management).renewSession},
	"get-session-state":        {access.Listen, false, "Sessions.GetState", (*management).sessionState},
	"set-session-state":        {access.Listen, false, "Sessions.SetState", (*management).setSessionState},
	"get-message-sessions":     {access.Listen, false, "Sessions.List", (*management).listSessions},
	"add-rule":                 {access.Manage, false, "Admin.CreateRule", (*management).addRule},
	"remove-rule":              {access.Manage, false, "Admin.DeleteRule", (*management).removeRule},
	"enumerate-rules":          {access.Listen, false, "Admin.ListRules", (*management).listRules},
}

// management is the management node of an entity.
type management struct {
	connection *connection
	at         node
	entity     semantics.Entity
}

// arguments are the body of a request.
type arguments struct {
	codec.Map

	link  string                 // name of the link that the request belongs to; empty: none is named
	ended func(isDelivered bool) // set by an operation, see answer
}

// attachManagement accepts a link to or from the management of an entity.
func (c *connection) attachManagement(l *engine.Link, at node) *frame.Error {
	if denied := c.permit(at.right(access.Listen)); denied != nil &&
		c.permit(at.right(access.Send)) != nil {
		return linkError(denied)
	}
	if l.IsToClient {
		c.attachReplies(l, at.key())
		return nil
	}
	entity, err := c.entity(l.Context(), at)
	if err != nil {
		return linkError(err)
	}
	m := &management{connection: c, at: at, entity: entity}
	c.serve(l, at.key(), convert.MaxRequest, m.handle)
	return nil
}

// handle runs a request and returns its answer.
func (m *management) handle(request convert.Request) answer {
	name, _ := codec.Text(request.Args.Get("operation"))
	body, _ := request.Body.(codec.Map)
	link, _ := codec.Text(request.Args.Get("associated-link-name"))
	args := &arguments{Map: body, link: link}
	result, err := m.run(name, args)
	if err != nil {
		return failure(err)
	}
	status := int32(http.StatusOK)
	if result == nil {
		status, result = http.StatusNoContent, codec.Map{}
	}
	return answer{application: codec.Map{
		codec.Entry("statusCode", status), codec.Entry("statusDescription", "OK"),
	}, body: result, ended: args.ended}
}

// failure is the answer to a request that has failed.
func failure(err error) answer {
	e := obs.Failure(err)
	o := outcomeOf(e)
	return answer{application: codec.Map{
		codec.Entry("statusCode", int32(o.status)), codec.Entry("statusDescription", text(e)),
		codec.Entry("errorCondition", codec.Symbol(o.condition)),
	}, body: codec.Map{}}
}

const operationPrefix = "com.microsoft:"

func (m *management) run(name string, args *arguments) (result codec.Map, err error) {
	if len(name) > len(operationPrefix) && name[:len(operationPrefix)] == operationPrefix {
		name = name[len(operationPrefix):]
	}
	op, ok := operations[name]
	if !ok {
		return nil, semantics.Errorf(
			semantics.InvalidOperation, "the operation %q does not exist, or is not supported yet", semantics.Shorten(name),
		)
	}
	c := m.connection
	right := m.at.right(op.claims)
	right.Settles = op.settles
	if err := c.permit(right); err != nil {
		return nil, err
	}
	err = c.call(c.ctx, op.method, m.at.path, func(ctx context.Context) error {
		result, err = op.do(m, ctx, args)
		return err
	})
	return result, err
}

// source is what the messages of the node are received from. If the request names a session, this connection must hold
// it. Some clients name the link of the session instead.
func (m *management) source(args *arguments) (semantics.Source, error) {
	source := m.at.source()
	id, isNamed := codec.Text(args.Get("session-id"))
	switch {
	case m.at.sub.IsDeadLetters():
		return source, nil
	case isNamed:
		s, err := m.connection.sessionOf(m.at.path, id)
		if err != nil {
			return source, err
		}
		return s.source, nil
	}
	if s := m.connection.sessionOfLink(m.at.path, args.link); s != nil {
		return s.source, nil
	}
	return source, nil
}

// numbers returns an argument that is a list of sequence numbers.
func (a *arguments) numbers(name string) ([]int64, error) {
	items, ok := codec.Items(a.Get(name))
	if !ok {
		return nil, semantics.InvalidField(name, "must be an array of long")
	}
	numbers := make([]int64, len(items))
	for i, item := range items {
		if numbers[i], ok = codec.Integer(item); !ok {
			return nil, semantics.InvalidField(name, "must be an array of long")
		}
	}
	return numbers, nil
}

// tokens returns the lock tokens.
func (a *arguments) tokens() ([]semantics.LockToken, error) {
	const name = "lock-tokens"
	items, ok := codec.Items(a.Get(name))
	if !ok {
		return nil, semantics.InvalidField(name, "must be an array of uuid")
	}
	tokens := make([]semantics.LockToken, len(items))
	for i, item := range items {
		id, ok := item.(codec.UUID)
		if !ok {
			return nil, semantics.InvalidField(name, "must be an array of uuid")
		}
		tokens[i] = semantics.LockToken(id)
	}
	return tokens, nil
}

// count returns an argument that is a number, which may be absent.
func (a *arguments) count(name string, absent int) (int, error) {
	value := a.Get(name)
	if value == nil {
		return absent, nil
	}
	n, ok := codec.Integer(value)
	if !ok || n < 0 || n > 1<<31-1 {
		return 0, semantics.InvalidField(name, "must be a number that is not negative")
	}
	return int(n), nil
}

// text returns an argument that is a string; nil: absent.
func (a *arguments) text(name string) *string {
	text, ok := codec.Text(a.Get(name))
	if !ok {
		return nil
	}
	return &text
}

// timestamps returns instants as an array.
func timestamps(all []time.Time) codec.Array {
	array := make(codec.Array, len(all))
	for i, at := range all {
		array[i] = convert.Timestamp(at)
	}
	return array
}
