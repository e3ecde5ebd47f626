package amqp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Descriptors of what a client sends to a coordinator.
const (
	declare   = 0x31
	discharge = 0x32
)

var coordinatorNames = map[codec.Symbol]uint64{"amqp:declare:list": declare, "amqp:discharge:list": discharge}

// transaction is what this connection knows of a transaction that is not discharged. Its operations come over several
// links, each with a worker of its own, so one that the client has sent before the discharge may be added later.
type transaction struct {
	pending   int // operations that have arrived and are not added yet
	hasFailed bool
	changed   *sync.Cond // with the mutex of the connection
}

// arrived notes an operation of a transaction, in the order in which the client has sent it. It returns how to note
// what became of it; nil if the state is not that of a transaction.
func (c *connection) arrived(state frame.State) (done func(err error)) {
	in, isIn := state.(frame.Transactional)
	if !isIn {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.transactions[string(in.ID)]
	if t == nil {
		return func(error) {} // it will be refused
	}
	t.pending++
	return func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		t.pending--
		t.hasFailed = t.hasFailed || err != nil
		t.changed.Broadcast()
	}
}

// dropped notes that an operation of a transaction will not be added, so that its discharge rolls back: the client may
// have sent the discharge already.
func (c *connection) dropped(state frame.State) {
	if done := c.arrived(state); done != nil {
		done(errRefusedPart)
	}
}

// await waits until all operations of a transaction that have arrived are added. It reports whether one was refused.
func (c *connection) await(id []byte) (hasFailed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.transactions[string(id)]
	if t == nil {
		return false
	}
	for t.pending > 0 {
		t.changed.Wait()
	}
	return t.hasFailed
}

// forget forgets a transaction.
func (c *connection) forget(id []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.transactions, string(id))
}

// coordinator is a link to the coordinator of transactions (TX-1). Those that the client has declared on it and not
// discharged are rolled back when it ends.
type coordinator struct {
	connection *connection
	open       map[string][]byte // ids as AMQP has them, by ids of the broker
	work       worker[*engine.Message]
}

// attachCoordinator accepts a link to the coordinator. Who may do what, each operation and the commit ask.
func (c *connection) attachCoordinator(l *engine.Link) *frame.Error {
	co := &coordinator{connection: c, open: map[string][]byte{}}
	co.work.run, co.work.begin = co.handle, c.begin
	l.Accept(engine.Accepted{
		MaxMessageSize: maxCoordinatorMessage, MaxTransfer: maxCoordinatorMessage, Credit: requestCredit,
		OnMessage: co.work.add,
	})
	<-l.Context().Done()
	co.work.wait()
	for id, token := range co.open {
		c.await(token)
		c.forget(token)
		_ = co.connection.server.Broker.Rollback(c.ctx, id) // what fails is rolled back when its time has expired
	}
	return nil
}

// maxCoordinatorMessage is more than a declaration or a discharge takes.
const maxCoordinatorMessage = 4 << 10

// handle declares and discharges transactions, in the order in which the client asks for it.
func (co *coordinator) handle(messages []*engine.Message) {
	for _, m := range messages {
		state, err := co.run(m)
		if err != nil {
			state = frame.Rejected{Error: transactionError(err)}
		}
		m.Settle(state)
	}
}

func (co *coordinator) run(m *engine.Message) (frame.State, error) {
	if err := refusalOf(m, "message to the coordinator", maxCoordinatorMessage); err != nil {
		return nil, err
	}
	code, fields, err := convert.Command(m.Payload, coordinatorNames)
	if err != nil {
		return nil, err
	}
	switch code {
	case declare:
		return co.declare()
	case discharge:
		token, _ := convert.Field(fields, 0).([]byte)
		isRollback, _ := convert.Field(fields, 1).(bool)
		return frame.Accepted{}, co.discharge(token, isRollback)
	default:
		return nil, semantics.InvalidField("body", "must be an amqp-value with a declare or a discharge")
	}
}

// client is who has a share of the transactions (TX-9). Connections without a token share one: what they declare they
// cannot commit.
func (c *connection) client() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, always := c.server.Authorizer.(access.AllowAll); len(c.callers) == 0 && !always {
		return "amqp without a token"
	}
	return fmt.Sprintf("amqp %p", c)
}

func (co *coordinator) declare() (frame.State, error) {
	c := co.connection
	var id string
	err := c.call(c.ctx, "Transactions.Begin", "", func(context.Context) (err error) {
		id, err = c.server.Broker.Begin(c.client())
		return err
	})
	if err != nil {
		return nil, err
	}
	token, err := semantics.ParseLockToken(id) // a UUID as well: an id of AMQP has at most 32 bytes
	if err != nil {
		return nil, err
	}
	co.open[id] = token[:]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transactions[string(token[:])] = &transaction{changed: sync.NewCond(&c.mu)}
	return frame.Declared{ID: token[:]}, nil
}

// discharge ends a transaction with all that the client has sent before. If a part of it was refused, nothing is done.
func (co *coordinator) discharge(token []byte, isRollback bool) error {
	id, err := transactionID(token)
	if err != nil {
		return err
	}
	hasFailed := co.connection.await(token)
	if isRollback || hasFailed {
		if err := co.rollback(id); err != nil {
			return err
		}
		co.end(id)
		if !isRollback {
			return errRefusedPart
		}
		return nil
	}
	return co.commit(id)
}

// errRefusedPart is why a transaction was rolled back that the client wanted to commit.
var errRefusedPart = &semantics.Error{
	Code: semantics.InvalidOperation, Message: "an operation of the transaction was refused, so it was rolled back",
}

func (co *coordinator) end(id string) {
	co.connection.forget(co.open[id])
	delete(co.open, id)
}

func (co *coordinator) rollback(id string) error {
	c := co.connection
	return c.call(c.ctx, "Transactions.Rollback", "", func(ctx context.Context) error {
		return c.server.Broker.Rollback(ctx, id)
	})
}

// commit runs what the client has added (TX-4, TX-5). If the client may repeat the discharge, the transaction stays
// open. A client that repeats one that has failed for good gets the answer of the broker again.
func (co *coordinator) commit(id string) error {
	c := co.connection
	return c.call(c.ctx, "Transactions.Commit", "", func(ctx context.Context) error {
		result, err := c.server.Broker.Commit(ctx, id, c.permitAll)
		if err == nil || !mayRepeat(err) {
			co.end(id)
		}
		if err != nil {
			return err
		}
		c.server.Metrics.Transacted(result)
		return nil
	})
}

// mayRepeat reports whether a commit that has failed may still succeed.
func mayRepeat(err error) bool {
	switch code := semantics.CodeOf(err); code {
	case semantics.Unauthenticated, semantics.PermissionDenied, semantics.DurabilityNotMet:
		return true
	default:
		return code.Retryable() || semantics.IsOutcomeUnknown(err)
	}
}

// permitAll checks that the client may still run the operations of a transaction (AUTH-3).
func (c *connection) permitAll(operations []semantics.Operation) error {
	for i, o := range operations {
		if err := c.permit(access.RightOf(o)); err != nil {
			return semantics.RefusedOperation(err, i)
		}
	}
	return nil
}

// add adds an operation to a transaction, which runs when the client discharges it.
func (c *connection) add(id []byte, operation semantics.Operation) error {
	text, err := transactionID(id)
	if err != nil {
		return err
	}
	return c.call(c.ctx, "Transactions.Add", operation.Source.String(), func(ctx context.Context) error {
		_, err := c.server.Broker.Add(ctx, text, []semantics.Operation{operation})
		return err
	})
}

// transactionID returns an id as the broker has it. TRANSACTION_NOT_FOUND for what cannot be one.
func transactionID(b []byte) (string, error) {
	if len(b) != len(semantics.LockToken{}) {
		return "", semantics.Errorf(semantics.TransactionNotFound, "no coordinator has returned this transaction id")
	}
	return semantics.LockToken(b).String(), nil
}

// sendInTransaction adds the messages of a transfer to a transaction.
func (s *sender) sendInTransaction(state frame.Transactional, messages []*semantics.Message) error {
	return s.connection.add(state.ID, semantics.Operation{
		Verb: semantics.OperationSend, Source: semantics.Source{Path: s.target.Path}, IsTopic: s.target.IsTopic,
		Messages: messages,
	})
}

// settleInTransaction adds a settlement to a transaction. The messages stay locked until it is discharged.
func (r *receiver) settleInTransaction(s settling, state frame.Transactional) {
	operation, err := operationOf(state.Outcome)
	if err == nil {
		operation.Source, operation.Tokens = r.source, s.tokens()
		err = r.connection.add(state.ID, operation)
	}
	s.done(err)
	switch {
	case !s.isAsked:
	case err != nil:
		r.link.Acknowledge(s.all, frame.Rejected{Error: transactionError(err)})
	default:
		r.link.Acknowledge(s.all, frame.Transactional{ID: state.ID, Outcome: echo(state.Outcome)})
	}
}

// operationOf returns the settlement of an outcome as an operation, without what it settles.
func operationOf(outcome frame.State) (o semantics.Operation, err error) {
	switch s := outcome.(type) {
	case frame.Accepted:
		o.Verb = semantics.OperationComplete
	case frame.Modified:
		if o.Verb = semantics.OperationAbandon; s.UndeliverableHere {
			o.Verb = semantics.OperationDefer
		}
		o.Properties, err = convert.Properties(s.Annotations)
	case frame.Rejected:
		var options broker.DeadLetterOptions
		options, err = deadLetterOptions(s.Error)
		o.Verb, o.Properties = semantics.OperationDeadLetter, options.Properties
		o.Texts = semantics.DeadLetterTexts{Reason: options.Reason, Description: options.Description}
	default:
		err = semantics.Errorf(semantics.InvalidOperation, "a transaction cannot release a message; release it outside")
	}
	return o, err
}

// Error conditions of transactions that clients know.
const (
	unknownTransaction = "amqp:transaction:unknown-id"
	rolledBack         = "amqp:transaction:rollback"
	transactionTimeout = "amqp:transaction:timeout"
)

// transactionError returns an error of a transaction. If a lock or a message is lost, it is that of a transaction that
// was rolled back.
func transactionError(err error) *frame.Error {
	e := linkError(err)
	switch obs.Failure(err).Code {
	case semantics.TransactionNotFound:
		e.Condition = unknownTransaction
	case semantics.TransactionTimedOut:
		e.Condition = transactionTimeout
	case semantics.MessageLockLost, semantics.SessionLockLost, semantics.MessageNotFound:
		e.Condition = rolledBack
	default:
		if errors.Is(err, errRefusedPart) {
			e.Condition = rolledBack
		}
	}
	return e
}
