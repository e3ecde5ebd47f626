package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// CompleteMessageOptions is for options to come.
type CompleteMessageOptions struct{}

// AbandonMessageOptions changes an abandonment.
type AbandonMessageOptions struct {
	// PropertiesToModify are set over the ApplicationProperties of the message. Bounds as there.
	PropertiesToModify map[string]any
	// Delay is how long the message stays invisible, 0 to 7 days. Nil: the queue's redeliveryDelay. A deferred message
	// has none.
	Delay *time.Duration
	// SkipOrder lets the messages behind a delayed one in a session come first. Otherwise they wait for it.
	SkipOrder bool
}

// DeferMessageOptions changes a deferral.
type DeferMessageOptions struct {
	// PropertiesToModify are set over the ApplicationProperties of the message. Bounds as there.
	PropertiesToModify map[string]any
}

// DeadLetterOptions says why a message is dead-lettered.
type DeadLetterOptions struct {
	// Reason and ErrorDescription have at most 4096 characters each.
	Reason, ErrorDescription *string
	// PropertiesToModify are set over the ApplicationProperties of the message. Bounds as there.
	PropertiesToModify map[string]any
}

// ReleaseMessageOptions is for options to come.
type ReleaseMessageOptions struct{}

// settlement is the call of one verb.
type settlement[Q any] func(sidebusv1.MessagesClient, context.Context, Q, ...grpc.CallOption) (
	*sidebusv1.SettleResponse, error,
)

// CompleteMessage removes a message for good. options may be nil.
//
// This and the other methods that settle block until it is done. They fail with [CodeMessageLockLost] if the lock has
// expired or the message was settled before, with [CodeSessionLockLost] if that of the session has, and with
// [CodeInvalidOperation] if the message has no lock because it was peeked or received in ReceiveModeReceiveAndDelete.
// In each case nothing has changed. If an earlier try of the same call may have settled it, a lost lock counts as
// success.
func (r *receiver) CompleteMessage(ctx context.Context, message *ReceivedMessage, _ *CompleteMessageOptions) error {
	request := &sidebusv1.CompleteRequest{
		Source: r.source, SubQueue: r.subQueue, LockTokens: []string{message.LockToken}, SessionLockToken: r.session,
	}
	return settle(ctx, r, message, sidebusv1.MessagesClient.Complete, request)
}

// AbandonMessage makes a message available again, with one delivery more; after the last delivery that the queue
// permits it is dead-lettered instead. options may be nil. Errors as of CompleteMessage.
func (r *receiver) AbandonMessage(ctx context.Context, message *ReceivedMessage, options *AbandonMessageOptions) error {
	request, err := abandonRequest(options)
	if err != nil {
		return err
	}
	request.Source, request.SubQueue, request.SessionLockToken = r.source, r.subQueue, r.session
	request.LockTokens = []string{message.LockToken}
	return settle(ctx, r, message, sidebusv1.MessagesClient.Abandon, request)
}

// DeferMessage sets a message aside until it is received by its sequence number, with ReceiveDeferredMessages; nothing
// is counted. options may be nil. Errors as of CompleteMessage.
func (r *receiver) DeferMessage(ctx context.Context, message *ReceivedMessage, options *DeferMessageOptions) error {
	request, err := deferRequest(options)
	if err != nil {
		return err
	}
	request.Source, request.SubQueue, request.SessionLockToken = r.source, r.subQueue, r.session
	request.LockTokens = []string{message.LockToken}
	return settle(ctx, r, message, sidebusv1.MessagesClient.Defer, request)
}

// DeadLetterMessage moves a message to the dead-letter queue; receive from there with [SubQueueDeadLetter]. options may
// be nil. Errors as of CompleteMessage, and [CodeInvalidOperation] in a dead-letter queue.
func (r *receiver) DeadLetterMessage(ctx context.Context, message *ReceivedMessage, options *DeadLetterOptions) error {
	request, err := deadLetterRequest(options)
	if err != nil {
		return err
	}
	request.Source, request.SubQueue, request.SessionLockToken = r.source, r.subQueue, r.session
	request.LockTokens = []string{message.LockToken}
	return settle(ctx, r, message, sidebusv1.MessagesClient.DeadLetter, request)
}

// ReleaseMessage makes a message available again and counts nothing: for one that you did not begin with. options may
// be nil. Errors as of CompleteMessage.
func (r *receiver) ReleaseMessage(ctx context.Context, message *ReceivedMessage, _ *ReleaseMessageOptions) error {
	request := &sidebusv1.ReleaseRequest{
		Source: r.source, SubQueue: r.subQueue, LockTokens: []string{message.LockToken}, SessionLockToken: r.session,
	}
	return settle(ctx, r, message, sidebusv1.MessagesClient.Release, request)
}

func settle[Q any](
	ctx context.Context, r *receiver, message *ReceivedMessage, verb settlement[Q], request Q,
) error {
	err := r.life.call(ctx, repeatable, func(ctx context.Context, mayBeDone bool) error {
		response, err := verb(r.life.client.messages, ctx, request)
		if err != nil {
			return err
		}
		return settled(response.GetResults(), mayBeDone)
	})
	if endsLock(err) {
		r.renewals.remove(message.LockToken)
	}
	return err
}

// endsLock reports whether a message has no lock any more after a settlement with this outcome.
func endsLock(err error) bool {
	return err == nil || errors.Is(err, CodeMessageLockLost) || errors.Is(err, CodeSessionLockLost) ||
		errors.Is(err, CodeDurabilityNotMet)
}

// settled returns the first failure in the rows of a settlement. After a try whose outcome is unknown, that the lock
// is lost means that it was settled (ERR-6).
func settled(rows []*sidebusv1.SettleResponse_Result, mayBeDone bool) error {
	for _, result := range rows {
		switch reason := Code(result.GetReason()); {
		case reason == "", reason == CodeMessageLockLost && mayBeDone:
		default:
			return refusal(reason, "the message was not settled; its lock still holds")
		}
	}
	return nil
}

// refusal is the error of one message whose lock is lost, or that was refused otherwise.
func refusal(reason Code, otherwise string) *Error {
	switch reason {
	case CodeMessageLockLost, CodeSessionLockLost:
		otherwise = "the lock has expired or the message was settled; if it is still there, it is delivered again"
	case CodeDurabilityNotMet:
		otherwise = "the message is settled, but its durability is not confirmed"
	default: // the caller's sentence
	}
	return &Error{Code: reason, Message: otherwise}
}

// RenewMessageLockOptions is for options to come.
type RenewMessageLockOptions struct{}

// RenewMessageLock makes the lock of a message last for the queue's lockDuration from now, as often as you like, and
// sets LockedUntil of the message. If the lock has expired it fails with [CodeMessageLockLost]. Do not read LockedUntil
// at the same time. options may be nil.
func (r *Receiver) RenewMessageLock(ctx context.Context, message *ReceivedMessage, _ *RenewMessageLockOptions) error {
	results, err := r.renewLocks(ctx, []string{message.LockToken})
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.GetReason() != "" {
			return refusal(Code(result.GetReason()), "the lock was not renewed")
		}
		message.LockedUntil = instant(result.GetLockedUntil())
	}
	return nil
}

func (r *Receiver) renewLocks(ctx context.Context, tokens []string) ([]*sidebusv1.RenewLocksResponse_Result, error) {
	var response *sidebusv1.RenewLocksResponse
	err := r.life.call(ctx, repeatable, func(ctx context.Context, _ bool) (err error) {
		response, err = r.life.client.messages.RenewLocks(ctx, &sidebusv1.RenewLocksRequest{
			Source: r.source, SubQueue: r.subQueue, LockTokens: tokens,
		})
		return err
	})
	return response.GetResults(), err
}

// renew renews locks for renewals: it returns the ends of those that still hold, by token.
func (r *Receiver) renew(ctx context.Context, tokens []string) (map[string]time.Time, error) {
	results, err := r.renewLocks(ctx, tokens)
	ends := map[string]time.Time{}
	for _, result := range results {
		if result.GetReason() == "" {
			ends[result.GetLockToken()] = result.GetLockedUntil().AsTime()
		}
	}
	return ends, err
}

func abandonRequest(options *AbandonMessageOptions) (*sidebusv1.AbandonRequest, error) {
	if options == nil {
		return &sidebusv1.AbandonRequest{}, nil
	}
	properties, err := toProperties(options.PropertiesToModify)
	request := &sidebusv1.AbandonRequest{Properties: properties, SkipOrder: options.SkipOrder}
	if options.Delay != nil {
		request.Delay = durationpb.New(*options.Delay)
	}
	return request, err
}

func deferRequest(options *DeferMessageOptions) (*sidebusv1.DeferRequest, error) {
	if options == nil {
		return &sidebusv1.DeferRequest{}, nil
	}
	properties, err := toProperties(options.PropertiesToModify)
	return &sidebusv1.DeferRequest{Properties: properties}, err
}

func deadLetterRequest(options *DeadLetterOptions) (*sidebusv1.DeadLetterRequest, error) {
	if options == nil {
		return &sidebusv1.DeadLetterRequest{}, nil
	}
	properties, err := toProperties(options.PropertiesToModify)
	return &sidebusv1.DeadLetterRequest{
		Reason: options.Reason, Description: options.ErrorDescription, Properties: properties,
	}, err
}
