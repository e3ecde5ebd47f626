package client

import (
	"context"
	"crypto/rand"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Tx collects the operations of a transaction. Its methods only note what to do; [Client.Transact] runs it. Use it in
// one goroutine, and not after Transact has returned.
type Tx struct {
	operations []*sidebusv1.Operation
	ended      []func() // of each message that is settled: its lock is renewed no longer
	err        error    // the first
}

// TransactOptions changes one transaction.
type TransactOptions struct {
	// RequestID makes this transaction the same as an earlier one with the same operations, within two minutes: it gets
	// the answer of the first and does nothing. 1 to 128 UTF-16 units. Empty: a new random id.
	RequestID string
}

// Transact calls collect and then runs the operations that it has noted, all in one step or none. If collect fails,
// Transact returns its error and does nothing. options may be nil.
//
// It returns a row for each operation, with the messages that it sent. When the connection breaks or Redis is away, it
// makes the same call again as a send does. Errors: those of the operations, with Details["operation"], the position of
// the first that cannot run; [CodeMessageLockLost] and [CodeSessionLockLost] if a lock is lost.
func (c *Client) Transact(
	ctx context.Context, collect func(tx *Tx) error, options *TransactOptions,
) ([][]SentMessage, error) {
	var tx Tx
	if err := collect(&tx); err != nil {
		return nil, err
	}
	if tx.err != nil {
		return nil, tx.err
	}
	life, err := c.newLifetime()
	if err != nil {
		return nil, err
	}
	defer life.close()
	id := rand.Text()
	if options != nil && options.RequestID != "" {
		id = options.RequestID
	}
	request := &sidebusv1.TransactRequest{Operations: tx.operations, RequestId: &id}
	var response *sidebusv1.TransactResponse
	err = life.call(ctx, repeatable, func(ctx context.Context, _ bool) (err error) {
		response, err = sidebusv1.NewTransactionsClient(c.conn).Transact(ctx, request)
		return err
	})
	if err != nil {
		failure := *ErrorOf(err)
		failure.RequestID = id
		return nil, &failure
	}
	for _, end := range tx.ended {
		end()
	}
	rows := make([][]SentMessage, len(response.GetResults()))
	for i, r := range response.GetResults() {
		for _, s := range r.GetSent() {
			rows[i] = append(rows[i], SentMessage{
				SequenceNumber: s.GetSequenceNumber(), MessageID: s.GetMessageId(), IsDuplicate: s.GetDeduplicated(),
			})
		}
	}
	return rows, nil
}

// MessageSource is a [Receiver] or [SessionReceiver].
type MessageSource interface{ own() *receiver }

func (r *receiver) own() *receiver { return r }

// SendToQueue sends messages to a queue. One with a ScheduledEnqueueTime is scheduled.
func (tx *Tx) SendToQueue(queue string, messages ...*Message) { tx.send("queues/"+queue, messages) }

// SendToTopic sends messages to a topic. Its subscriptions get their copies in a step that follows at once.
func (tx *Tx) SendToTopic(topic string, messages ...*Message) { tx.send("topics/"+topic, messages) }

func (tx *Tx) send(target string, messages []*Message) {
	request := &sidebusv1.SendRequest{Target: target}
	for _, m := range messages {
		w, err := m.wire()
		tx.note(err)
		request.Messages = append(request.Messages, w)
	}
	tx.add(&sidebusv1.Operation{Operation: &sidebusv1.Operation_Send{Send: request}})
}

// CancelScheduledMessages removes messages of a queue that are still scheduled.
func (tx *Tx) CancelScheduledMessages(queue string, sequenceNumbers ...int64) {
	request := &sidebusv1.CancelScheduledRequest{Target: "queues/" + queue, SequenceNumbers: sequenceNumbers}
	tx.add(&sidebusv1.Operation{Operation: &sidebusv1.Operation_CancelScheduled{CancelScheduled: request}})
}

// CompleteMessage removes a message, as [Receiver.CompleteMessage].
func (tx *Tx) CompleteMessage(from MessageSource, message *ReceivedMessage) {
	r := from.own()
	request := &sidebusv1.CompleteRequest{
		Source: r.source, SubQueue: r.subQueue, LockTokens: []string{message.LockToken}, SessionLockToken: r.session,
	}
	tx.settle(r, message, &sidebusv1.Operation{Operation: &sidebusv1.Operation_Complete{Complete: request}})
}

// AbandonMessage makes a message available again, as [Receiver.AbandonMessage]. options may be nil.
func (tx *Tx) AbandonMessage(from MessageSource, message *ReceivedMessage, options *AbandonMessageOptions) {
	r := from.own()
	request, err := abandonRequest(options)
	tx.note(err)
	request.Source, request.SubQueue, request.SessionLockToken = r.source, r.subQueue, r.session
	request.LockTokens = []string{message.LockToken}
	tx.settle(r, message, &sidebusv1.Operation{Operation: &sidebusv1.Operation_Abandon{Abandon: request}})
}

// DeferMessage sets a message aside, as [Receiver.DeferMessage]. options may be nil.
func (tx *Tx) DeferMessage(from MessageSource, message *ReceivedMessage, options *DeferMessageOptions) {
	r := from.own()
	request, err := deferRequest(options)
	tx.note(err)
	request.Source, request.SubQueue, request.SessionLockToken = r.source, r.subQueue, r.session
	request.LockTokens = []string{message.LockToken}
	tx.settle(r, message, &sidebusv1.Operation{Operation: &sidebusv1.Operation_Defer{Defer: request}})
}

// DeadLetterMessage moves a message to the dead-letter queue, as [Receiver.DeadLetterMessage]. options may be nil.
func (tx *Tx) DeadLetterMessage(from MessageSource, message *ReceivedMessage, options *DeadLetterOptions) {
	r := from.own()
	request, err := deadLetterRequest(options)
	tx.note(err)
	request.Source, request.SubQueue, request.SessionLockToken = r.source, r.subQueue, r.session
	request.LockTokens = []string{message.LockToken}
	tx.settle(r, message, &sidebusv1.Operation{Operation: &sidebusv1.Operation_DeadLetter{DeadLetter: request}})
}

// SetSessionState replaces the state that is kept with a session; nil clears it.
func (tx *Tx) SetSessionState(of *SessionReceiver, state []byte) {
	request := &sidebusv1.SessionsSetStateRequest{Source: of.source, LockToken: *of.session, State: state}
	tx.add(&sidebusv1.Operation{Operation: &sidebusv1.Operation_SetSessionState{SetSessionState: request}})
}

func (tx *Tx) settle(r *receiver, message *ReceivedMessage, operation *sidebusv1.Operation) {
	tx.ended = append(tx.ended, func() { r.renewals.remove(message.LockToken) })
	tx.add(operation)
}

func (tx *Tx) add(operation *sidebusv1.Operation) { tx.operations = append(tx.operations, operation) }

func (tx *Tx) note(err error) {
	if tx.err == nil {
		tx.err = err
	}
}
