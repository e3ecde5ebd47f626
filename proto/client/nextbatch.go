package client

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// CompleteAndReceiveOptions changes one CompleteAndReceive.
type CompleteAndReceiveOptions struct {
	// MaxWait is as in [ReceiveMessagesOptions].
	MaxWait *time.Duration
}

// NextBatch is what CompleteAndReceive did.
type NextBatch struct {
	// Messages are the next ones. They are empty if none came within MaxWait.
	Messages []*ReceivedMessage
	// Completed has an entry for each message to complete: nil, or why it was not completed, as CompleteMessage returns
	// it. errors.Join(Completed...) is nil if all were. It is nil if the call failed and the outcome is not known.
	Completed []error
}

// CompleteAndReceive completes messages that were received before, up to 1000, and then receives the next ones, in one
// call: a loop that handles one batch after the other makes half the calls. completed may be empty. It otherwise works
// as CompleteMessage and then ReceiveMessages, with whose errors it fails. options may be nil.
//
// The messages are completed before the wait for the next ones, and each on its own: the next ones are received also if
// one was not completed. If only the receiving fails, there is an error, and Completed is set all the same.
//
// If ctx is cancelled during the wait, Completed is nil although the messages were probably completed. Give ctx a
// deadline, or set MaxWait, to avoid that.
func (r *receiver) CompleteAndReceive(
	ctx context.Context, completed []*ReceivedMessage, maxMessages int, options *CompleteAndReceiveOptions,
) (NextBatch, error) {
	if options == nil {
		options = &CompleteAndReceiveOptions{}
	}
	most := int32(min(maxMessages, math.MaxInt32))
	request := &sidebusv1.CompleteAndReceiveRequest{
		Source: r.source, MaxMessages: &most, Mode: r.mode, SubQueue: r.subQueue, SessionLockToken: r.session,
	}
	for _, m := range completed {
		request.LockTokens = append(request.LockTokens, m.LockToken)
	}
	var next NextBatch
	mayBeDone := false
	err := r.life.await(ctx, options.MaxWait, longestWait, func(ctx context.Context, wait time.Duration) (bool, error) {
		request.MaxWait = durationpb.New(wait)
		response, err := r.life.client.messages.CompleteAndReceive(ctx, request)
		if err != nil {
			mayBeDone = mayBeDone || ErrorOf(err).OutcomeUnknown
			return false, err
		}
		if len(request.GetLockTokens()) > 0 {
			next.Completed = r.completed(response.GetResults(), mayBeDone)
			request.LockTokens = nil // what follows only receives
		}
		if failure := response.GetFailure(); failure != nil {
			return false, errorOfFailure(failure)
		}
		next.Messages = received(response.GetMessages())
		return len(next.Messages) > 0, nil
	})
	if err != nil {
		return next, err
	}
	r.renewals.add(next.Messages)
	return next, nil
}

// completed returns what became of each message, and ends the renewal of those that have no lock any more.
func (r *receiver) completed(rows []*sidebusv1.SettleResponse_Result, mayBeDone bool) []error {
	outcomes := make([]error, len(rows))
	for i, row := range rows {
		err := settled(rows[i:i+1], mayBeDone)
		if endsLock(err) {
			r.renewals.remove(row.GetLockToken())
		}
		outcomes[i] = err
	}
	return outcomes
}
