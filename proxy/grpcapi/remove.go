package grpcapi

import (
	"context"
	"time"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// workBudget is how long one Purge or Resubmit works, so that it answers before clients and proxies time out. The
// answer reports whether messages are left, and the client calls again.
const workBudget = 20 * time.Second

// DeleteBySequence removes messages by number; see broker.Broker.DeleteBySequence.
func (s *Messages) DeleteBySequence(
	ctx context.Context, request *sidebusv1.DeleteBySequenceRequest,
) (*sidebusv1.DeleteBySequenceResponse, error) {
	source, err := s.sourceOf(ctx, request)
	if err != nil {
		return nil, err
	}
	codes, err := s.broker.DeleteBySequence(ctx, source, request.GetSequenceNumbers())
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.DeleteBySequenceResponse{
		Results: make([]*sidebusv1.DeleteBySequenceResponse_Result, len(codes)),
	}
	removed := 0
	for i := range codes {
		response.Results[i] = &sidebusv1.DeleteBySequenceResponse_Result{
			SequenceNumber: request.GetSequenceNumbers()[i], Reason: wire.Present((*string)(&codes[i])),
		}
		if codes[i] == "" {
			removed++
		}
	}
	s.metrics.Removed(source.String(), obs.Delete, int64(removed))
	return response, nil
}

// Purge removes messages for at most workBudget; see broker.Broker.Purge.
func (s *Messages) Purge(ctx context.Context, request *sidebusv1.PurgeRequest) (*sidebusv1.PurgeResponse, error) {
	source, err := s.sessionSourceOf(ctx, request, request.SessionLockToken, request.SessionId)
	if err != nil {
		return nil, err
	}
	options := broker.PurgeOptions{}
	if options.Before, err = wire.InstantOf("before", request.GetBefore()); err != nil {
		return nil, err
	}
	if options.MaxMessages, err = bound("maxMessages", request.MaxMessages,
		broker.MaxPurgeMessages); err != nil { //nolint:protogetter // nil and 0 differ
		return nil, err
	}
	for _, group := range request.GetInclude() {
		switch group {
		case sidebusv1.PurgeRequest_AVAILABLE: // always
		case sidebusv1.PurgeRequest_DEFERRED:
			options.Deferred = true
		case sidebusv1.PurgeRequest_SCHEDULED:
			options.Scheduled = true
		case sidebusv1.PurgeRequest_DEAD_LETTER:
			options.DeadLetters = true
		default:
			return nil, semantics.InvalidField("include", "must have AVAILABLE, DEFERRED, SCHEDULED and DEAD_LETTER only")
		}
	}
	work, cancel := context.WithTimeout(ctx, workBudget)
	defer cancel()
	result, err := s.broker.Purge(work, source, options)
	if err != nil {
		return nil, budgetError(ctx, work, err)
	}
	s.metrics.Removed(source.String(), obs.Purge, result.Deleted)
	return &sidebusv1.PurgeResponse{
		Deleted: result.Deleted, More: result.More, Before: wire.TimestampFrom(result.Before),
	}, nil
}

// Resubmit sends dead letters again for at most workBudget; see broker.Broker.Resubmit.
func (s *Messages) Resubmit(
	ctx context.Context, request *sidebusv1.ResubmitRequest,
) (*sidebusv1.ResubmitResponse, error) {
	subQueue := sidebusv1.SubQueue_DEAD_LETTER
	if request.SubQueue != nil {
		subQueue = request.GetSubQueue()
	}
	source, err := sourceOf(request, request.GetSource(), subQueue)
	if err = s.receivable(ctx, request.GetSource(), err); err != nil {
		return nil, err
	}
	options, err := resubmitOptionsOf(request)
	if err != nil {
		return nil, err
	}
	work, cancel := context.WithTimeout(ctx, workBudget)
	defer cancel()
	results, more, err := s.broker.Resubmit(work, source, options)
	if err != nil {
		return nil, budgetError(ctx, work, err)
	}
	response := &sidebusv1.ResubmitResponse{
		Results: make([]*sidebusv1.ResubmitResponse_Result, len(results)),
		More:    more,
	}
	moved := 0
	for i := range results {
		r := &results[i]
		response.Results[i] = &sidebusv1.ResubmitResponse_Result{
			SequenceNumber: r.SequenceNumber, Deduplicated: r.Deduplicated, Reason: wire.Present((*string)(&r.Code)),
		}
		if r.Code == "" {
			moved++
			if !options.TargetIsTopic {
				response.Results[i].NewSequenceNumber = &r.Stored.SequenceNumber
			}
		}
	}
	s.metrics.Resubmitted(source, moved)
	return response, nil
}

func resubmitOptionsOf(request *sidebusv1.ResubmitRequest) (options broker.ResubmitOptions, err error) {
	options = broker.ResubmitOptions{
		Numbers: request.GetSequenceNumbers(), NewMessageIDs: request.GetNewMessageIds(),
		KeepExpiry:       request.GetKeepExpiry(),
		BypassDuplicates: request.GetBypassDuplicateDetection(),
	}
	if options.Max, err = bound("max", request.Max,
		broker.MaxResubmitMessages); err != nil { //nolint:protogetter // nil and 0 differ
		return options, err
	}
	if options.Target, options.TargetIsTopic, err = resubmitTarget(request); err != nil {
		return options, err
	}
	if request.Filter != nil {
		options.Matches, err = selector(request.GetFilter())
	}
	return options, err
}

// resubmitTarget returns the path of the queue or topic that gets the dead letters, empty for the source itself.
func resubmitTarget(request *sidebusv1.ResubmitRequest) (path string, isTopic bool, err error) {
	if request.GetTarget() == "" {
		return "", false, nil
	}
	path, kind, ok := parseResource(request.GetTarget())
	source, ofSource, _ := parseResource(request.GetSource())
	switch {
	case ok && kind == ofSource && semantics.Fold(path) == semantics.Fold(source):
		return "", false, nil
	case ok && kind == semantics.SubscriptionKind:
		return "", false, semantics.Errorf(semantics.InvalidOperation,
			"dead letters cannot be resubmitted to another subscription; leave target out, or name a queue or a topic").
			With(semantics.DetailField, "target")
	case !ok || path == "": // which would mean the source
		return "", false, semantics.InvalidField("target", `must be "queues/{queue}" or "topics/{topic}"`)
	default:
		return path, kind == semantics.TopicKind, nil
	}
}

// selector returns a function that reports whether a SQL filter selects a message. If the filter has no result for a
// message, the function returns an error, because both to select and to skip the message would be a guess.
func selector(text string) (func(*semantics.Received) (bool, error), error) {
	parsed, err := filter.Parse(text, nil)
	if err != nil {
		return nil, err
	}
	return func(m *semantics.Received) (bool, error) {
		isSelected, err := parsed.Matches(filter.OfReceived(m))
		if err != nil {
			return false, semantics.Errorf(semantics.FilterInvalid, "filter has no result for sequence number %d: %v",
				m.SequenceNumber, err).
				With(semantics.DetailField, "filter")
		}
		return isSelected, nil
	}, nil
}

// bound translates an optional bound. For the Broker 0 means absent, so a bound that is present and 0 is an error.
func bound(field string, n *int32, most int) (int, error) {
	if n == nil {
		return 0, nil
	}
	if *n == 0 {
		return 0, semantics.Errorf(semantics.ArgumentOutOfRange, "%s is 0, must be 1 to %d", field, most).
			With(semantics.DetailField, field)
	}
	return int(*n), nil
}

// budgetError returns the error of work whose context was derived from ctx. If only the derived context has ended, that
// is SERVICE_TIMEOUT: the caller still waits and nothing was done.
func budgetError(ctx, work context.Context, err error) error {
	if ctx.Err() != nil || work.Err() == nil || wireerror.Of(err).Code != semantics.Cancelled {
		return err
	}
	return semantics.Errorf(semantics.ServiceTimeout, "nothing could be done within %s", workBudget)
}
