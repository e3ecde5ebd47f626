package client

import (
	"context"
	"math"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// ReceiveMode says what receiving does to a message.
type ReceiveMode int

const (
	// ReceiveModePeekLock locks the message until it is settled or the lock expires. It is the default.
	ReceiveModePeekLock ReceiveMode = iota
	// ReceiveModeReceiveAndDelete removes the message once it was sent to the client. A message that gets lost on the
	// way is lost.
	ReceiveModeReceiveAndDelete
)

func (m ReceiveMode) wire() sidebusv1.ReceiveRequest_Mode {
	if m == ReceiveModeReceiveAndDelete {
		return sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE
	}
	return sidebusv1.ReceiveRequest_PEEK_LOCK
}

// SubQueue names a queue that lies below a queue or subscription.
type SubQueue int

const (
	// SubQueueNone is the queue or subscription itself.
	SubQueueNone SubQueue = iota
	// SubQueueDeadLetter is its dead-letter queue.
	SubQueueDeadLetter
	// SubQueueTransfer is its transfer dead-letter queue: what could not be forwarded.
	SubQueueTransfer
)

func (q SubQueue) wire() sidebusv1.SubQueue_Kind {
	switch q {
	case SubQueueDeadLetter:
		return sidebusv1.SubQueue_DEAD_LETTER
	case SubQueueTransfer:
		return sidebusv1.SubQueue_TRANSFER_DEAD_LETTER
	default:
		return sidebusv1.SubQueue_NONE
	}
}

// ReceiverOptions changes a [Receiver].
type ReceiverOptions struct {
	// ReceiveMode says what receiving does to a message.
	ReceiveMode ReceiveMode
	// SubQueue receives from the dead-letter queue or the transfer dead-letter queue instead.
	SubQueue SubQueue
	// MaxAutoRenew is how long after it was received the lock of a message is renewed in the background, unless it is
	// settled first. 0: not at all. [Receiver.Handle] does not look at it.
	MaxAutoRenew time.Duration
}

// Receiver receives from a queue or subscription, and settles what it received. All methods may be called concurrently.
// Calls that fail because no sidecar answers, Redis is away or the rate limit is reached are repeated, for as long as
// the context and Options.RetryTimeout permit.
type Receiver struct{ receiver }

// receiver is what Receiver and SessionReceiver share.
type receiver struct {
	life     *lifetime
	source   string
	mode     sidebusv1.ReceiveRequest_Mode
	subQueue sidebusv1.SubQueue_Kind
	session  *string // token of its lock; nil: none
	renewals *renewals

	mu     sync.Mutex
	peeked int64 // the number to peek from next
}

// NewReceiverForQueue makes a Receiver for a queue. options may be nil. It makes no call: whether the queue exists
// shows with the first one. On a queue with sessions only Handle and PeekMessages work, and SubQueue; accept a session
// for the others. It fails with [CodeClosed].
func (c *Client) NewReceiverForQueue(queue string, options *ReceiverOptions) (*Receiver, error) {
	return c.newReceiver(queueSource(queue), options)
}

// NewReceiverForSubscription makes a Receiver for a subscription of a topic. It is otherwise as NewReceiverForQueue.
func (c *Client) NewReceiverForSubscription(topic, subscription string, options *ReceiverOptions) (*Receiver, error) {
	return c.newReceiver(subscriptionSource(topic, subscription), options)
}

func subscriptionSource(topic, subscription string) string {
	return "topics/" + topic + "/subscriptions/" + subscription
}

func (c *Client) newReceiver(source string, options *ReceiverOptions) (*Receiver, error) {
	if options == nil {
		options = &ReceiverOptions{}
	}
	life, err := c.newLifetime()
	if err != nil {
		return nil, err
	}
	r := &Receiver{
		receiver{life: life, source: source, mode: options.ReceiveMode.wire(), subQueue: options.SubQueue.wire()},
	}
	if options.MaxAutoRenew > 0 {
		r.renewals = newRenewals(life, options.MaxAutoRenew, r.renew)
	}
	return r, nil
}

// Close ends the receiver: its locks are renewed no longer, calls in progress and later ones fail with [CodeClosed],
// and Handle returns. Messages that were not settled become available when their locks expire. It does not block and
// always returns nil; ctx is not looked at.
func (r *Receiver) Close(context.Context) error {
	r.life.close()
	return nil
}

// ReceiveMessagesOptions changes one ReceiveMessages.
type ReceiveMessagesOptions struct {
	// MaxWait is how long to wait for the first message; 0 takes what is there. If none comes, the result is empty and
	// there is no error. Nil: until the context ends.
	MaxWait *time.Duration
}

const (
	longestWait = time.Minute // of one call
	// waitMargin is by how much a wait ends before the deadline of its context, so that an answer on its way is not cut
	// off.
	waitMargin = 100 * time.Millisecond
)

// ReceiveMessages receives 1 to maxMessages messages, at most 1000. It blocks until there is one, and does not wait for
// more. It fails with [CodeCancelled] when ctx ends before that; the error wraps that of ctx. options may be nil.
//
// If ctx is cancelled at the moment a message is on its way, that message stays locked until its lock expires, or is
// lost in [ReceiveModeReceiveAndDelete]. Give ctx a deadline, or set MaxWait, to avoid that.
//
// Errors: [CodeEntityNotFound]; [CodeSessionRequired] on a queue with sessions; [CodeSessionLockLost] when the session
// of a SessionReceiver was lost; [CodeArgumentOutOfRange]; [CodeInvalidOperation] if the queue forwards its messages.
func (r *receiver) ReceiveMessages(
	ctx context.Context, maxMessages int, options *ReceiveMessagesOptions,
) ([]*ReceivedMessage, error) {
	most := int32(min(maxMessages, math.MaxInt32))
	request := &sidebusv1.ReceiveRequest{
		Source: r.source, MaxMessages: &most, Mode: r.mode, SubQueue: r.subQueue, SessionLockToken: r.session,
	}
	var messages []*ReceivedMessage
	err := r.life.await(
		ctx,
		maxWait(options),
		longestWait,
		func(ctx context.Context, wait time.Duration) (bool, error) {
			request.MaxWait = durationpb.New(wait)
			response, err := r.life.client.messages.Receive(ctx, request)
			messages = received(response.GetMessages())
			return len(messages) > 0, err
		},
	)
	if err != nil {
		return nil, err
	}
	r.renewals.add(messages)
	return messages, nil
}

func maxWait(options *ReceiveMessagesOptions) *time.Duration {
	if options == nil {
		return nil
	}
	return options.MaxWait
}

// await makes a call that waits for something, again and again until it comes. most bounds that; without it only ctx
// does.
func (l *lifetime) await(
	ctx context.Context, most *time.Duration, each time.Duration,
	try func(ctx context.Context, wait time.Duration) (bool, error),
) error {
	began := time.Now()
	for {
		wait := each
		if most != nil {
			wait = max(min(wait, *most-time.Since(began)), 0)
		}
		deadline, hasDeadline := ctx.Deadline()
		if hasDeadline {
			wait = max(min(wait, time.Until(deadline)-waitMargin), 0)
		}
		came := false
		err := l.call(ctx, repeatable, func(ctx context.Context, _ bool) (err error) {
			came, err = try(ctx, wait)
			return err
		})
		switch {
		case err != nil:
			return err
		case came, most != nil && time.Since(began) >= *most:
			return nil
		case hasDeadline && time.Until(deadline) <= waitMargin:
			select {
			case <-ctx.Done():
				return cancelled(ctx, nil)
			case <-l.ctx.Done():
				return errClosed
			}
		}
	}
}

// PeekMessagesOptions changes one PeekMessages.
type PeekMessagesOptions struct {
	// FromSequenceNumber is where to begin. Nil: after the last message that this receiver has peeked, or with the
	// first.
	FromSequenceNumber *int64
}

// PeekMessages looks at 1 to maxMessages messages, at most 250, in order of sequence number and whatever their state,
// and changes nothing: no lock, no delivery. It does not wait: the result is empty when there is none. A
// SessionReceiver looks at its session only. options may be nil.
func (r *receiver) PeekMessages(
	ctx context.Context, maxMessages int, options *PeekMessagesOptions,
) ([]*ReceivedMessage, error) {
	r.mu.Lock()
	from := max(r.peeked, 1)
	r.mu.Unlock()
	if options != nil && options.FromSequenceNumber != nil {
		from = *options.FromSequenceNumber
	}
	most := int32(min(maxMessages, math.MaxInt32))
	var response *sidebusv1.PeekResponse
	err := r.life.call(ctx, repeatable, func(ctx context.Context, _ bool) (err error) {
		response, err = r.life.client.messages.Peek(ctx, &sidebusv1.PeekRequest{
			Source: r.source, SubQueue: r.subQueue, FromSequenceNumber: &from, MaxMessages: &most,
			SessionLockToken: r.session,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	messages := received(response.GetMessages())
	if n := len(messages); n > 0 {
		r.mu.Lock()
		r.peeked = messages[n-1].SequenceNumber + 1
		r.mu.Unlock()
	}
	return messages, nil
}

// ReceiveDeferredMessagesOptions is for options to come.
type ReceiveDeferredMessagesOptions struct{}

// ReceiveDeferredMessages receives deferred messages by their sequence numbers, up to 250, all or none, and does not
// wait. If a number is unknown, not deferred, locked or expired it fails with [CodeMessageNotFound];
// Details["sequenceNumbers"] names them. A message that is then abandoned is deferred again. options may be nil.
func (r *receiver) ReceiveDeferredMessages(
	ctx context.Context, sequenceNumbers []int64, _ *ReceiveDeferredMessagesOptions,
) ([]*ReceivedMessage, error) {
	var response *sidebusv1.ReceiveResponse
	err := r.life.call(ctx, once, func(ctx context.Context, _ bool) (err error) {
		response, err = r.life.client.messages.ReceiveDeferred(ctx, &sidebusv1.ReceiveDeferredRequest{
			Source: r.source, SubQueue: r.subQueue, Mode: r.mode, SequenceNumbers: sequenceNumbers,
			SessionLockToken: r.session,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	messages := received(response.GetMessages())
	r.renewals.add(messages)
	return messages, nil
}
