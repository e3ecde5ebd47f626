package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Handler processes one message. Its ctx ends when that of Handle ends, when the stream breaks, and when the lock of
// the message is lost. What it returns settles the message, unless the handler has done so itself: nil completes it,
// [DeadLetter] or a [DeadLetterError] dead-letters it, and any other error abandons it, or, once ctx has ended,
// releases it, which counts nothing.
//
// In [ReceiveModeReceiveAndDelete] the message was removed before the handler began: its ctx does not end, what it
// returns settles nothing, and the methods that settle fail with [CodeInvalidOperation].
type Handler func(ctx context.Context, m *HandledMessage) error

// HandleOptions changes how [Receiver.Handle] works. In all fields 0 is the default.
type HandleOptions struct {
	// Concurrency is how many handlers run at a time, 1 to 1000. Default 1. On a queue with sessions one handler of
	// each session.
	Concurrency int
	// MaxAutoRenew is how long after its delivery the lock of a message is renewed, at most 24 h. Default 5 min; less
	// than 0: never. The sidecar does that.
	MaxAutoRenew time.Duration
	// MaxConcurrentSessions is how many sessions are held at a time, 1 to 1000. Default 8.
	MaxConcurrentSessions int
	// SessionInFlight is how many messages of a session are delivered ahead, 1 to 1000, so that the next one is at
	// hand; they are still handled one by one. If one of them fails, the session is closed, so that all of them are
	// delivered again, in order. Default 1.
	SessionInFlight int
	// SessionIdle is after how long without a message a session is given up, at most 24 h. Default 1 min.
	SessionIdle time.Duration
	// Prefetch is how many messages the sidecar fetches beyond Concurrency, 0 to 1000, for handlers that take
	// milliseconds. Not for queues with sessions.
	Prefetch int
	// StreamID names this Handle, at most 128 characters: a sidecar runs one of a name at a time. Default: no name.
	StreamID string
	// ManualSettlement leaves every message to its methods: what a handler returns settles nothing, and an error goes
	// to OnError. A message may be settled after its handler has returned; until then it counts against Concurrency.
	// With SessionInFlight > 1 the next message of its session is handled meanwhile. If you then abandon or release the
	// first one, also with an unknown outcome, the session is closed: the locks of all its messages that are not
	// settled are lost.
	ManualSettlement bool
	// OnError is told what goes wrong and does not end Handle: a stream that breaks, a settlement that fails for good.
	// Several goroutines call it. Default: such errors are dropped.
	OnError func(error)
}

// Handle calls handler with each message of the queue or subscription until ctx ends. It blocks until then. options may
// be nil. It works over one stream and needs no receive loop: locks are renewed, and a settlement that fails for a
// reason that passes is repeated until it succeeds or the lock is lost. On a queue with sessions it accepts them as
// they become ready, and handles the messages of each one after the other, in order, also when one fails and comes
// again.
//
// When the stream breaks, the handlers that run find their ctx ended, and the stream is opened again, after 100 ms to 5
// s. When ctx ends, no handler begins any more, Handle waits for those that run, and what was not settled is available
// again, with nothing counted; then it returns nil. After Close it does the same and returns [CodeClosed]. It returns
// any error that no later try would avoid, such as [CodeEntityNotFound] or an option that is out of range.
//
// In [ReceiveModeReceiveAndDelete] each message is locked until there is a handler for it, and removed just before that
// begins. A message is lost only if the process ends, the stream breaks or Redis fails between the two.
func (r *Receiver) Handle(ctx context.Context, handler Handler, options *HandleOptions) error {
	if r.life.ctx.Err() != nil {
		return errClosed
	}
	ctx, release := r.life.with(ctx)
	defer release()
	h := newHandling(ctx, r, handler, options)
	if err := h.run(ctx); err != nil {
		return err
	}
	if r.life.ctx.Err() != nil {
		return errClosed
	}
	return nil
}

// Pauses before a stream that broke is opened again, each twice the last.
const (
	handleFirstPause = 100 * time.Millisecond
	handleLastPause  = 5 * time.Second
)

// run opens streams until ctx ends, or one fails for good.
func (h *handling) run(ctx context.Context) error {
	defer h.work.Wait()
	pause, everOpened := handleFirstPause, false
	for ctx.Err() == nil {
		opened, err := h.runStream(ctx)
		everOpened = everOpened || opened
		if opened {
			pause = handleFirstPause
		}
		if ctx.Err() != nil {
			return nil
		}
		failure := ErrorOf(err)
		if !mayPass(err) && !(everOpened && failure.isNameTaken()) {
			return failure
		}
		h.onError(fmt.Errorf("handle %s: %w", h.open.GetSource(), failure))
		select {
		case <-time.After(pause):
			pause = min(2*pause, handleLastPause)
		case <-ctx.Done():
		}
	}
	return nil
}

// handling is one call of Handle.
type handling struct {
	ctx      context.Context //nolint:containedctx // of the call
	client   sidebusv1.MessagesClient
	open     *sidebusv1.SubscribeOpen // as it goes over the wire
	handler  Handler
	onError  func(error)
	isManual bool
	removes  bool // messages are removed just before their handlers begin
	credits  int

	slots slots
	work  sync.WaitGroup // the handlers, and messages that wait for one
}

func newHandling(ctx context.Context, r *Receiver, handler Handler, options *HandleOptions) *handling {
	if options == nil {
		options = &HandleOptions{}
	}
	h := &handling{
		ctx: ctx, client: r.life.client.messages, handler: handler, onError: func(error) {},
		isManual: options.ManualSettlement,
		credits:  1, open: options.wire(r),
	}
	if options.OnError != nil {
		h.onError = options.OnError
	}
	if options.Concurrency != 0 {
		h.credits = options.Concurrency
	}
	h.slots = newSlots(h.credits)
	if r.mode == sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE {
		h.removes, h.open = true, lockedFirst(h.open)
	}
	return h
}

// wire converts the options. What is 0 is left out.
func (o *HandleOptions) wire(r *Receiver) *sidebusv1.SubscribeOpen {
	open := &sidebusv1.SubscribeOpen{
		Source: r.source, SubQueue: r.subQueue, Mode: r.mode, Id: o.StreamID, Prefetch: int32(o.Prefetch),
		Credits: optional(o.Concurrency), MaxConcurrentSessions: optional(o.MaxConcurrentSessions),
		SessionInFlight: optional(o.SessionInFlight),
	}
	if o.MaxAutoRenew != 0 {
		open.MaxAutoRenew = durationpb.New(max(o.MaxAutoRenew, 0))
	}
	if o.SessionIdle != 0 {
		open.SessionIdle = durationpb.New(o.SessionIdle)
	}
	return open
}

func optional(n int) *int32 {
	if n == 0 {
		return nil
	}
	return new(int32(n))
}

// maxAutoRenew is how long locks can be renewed at most (LOCK-9).
const maxAutoRenew = 24 * time.Hour

// lockedFirst asks for the same messages, locked for as long as one may have to wait for its handler.
func lockedFirst(open *sidebusv1.SubscribeOpen) *sidebusv1.SubscribeOpen {
	open = proto.CloneOf(open)
	open.Mode, open.MaxAutoRenew = sidebusv1.ReceiveRequest_PEEK_LOCK, durationpb.New(maxAutoRenew)
	return open
}

// mayPass reports whether another stream may succeed where one ended with err.
func mayPass(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound, codes.FailedPrecondition, codes.PermissionDenied,
		codes.Unauthenticated, codes.Unimplemented:
		return false
	default:
		return true
	}
}

// isNameTaken reports whether the stream was refused because one of its id exists: after a break that may be our own,
// of whose end the sidecar has yet to learn.
func (e *Error) isNameTaken() bool {
	return e.Code == CodeInvalidOperation && e.Details["field"] == "id"
}

// DeadLetterError is for a [Handler] to return: the message is to be dead-lettered, for this reason.
type DeadLetterError struct {
	Reason, Description string // at most 4096 characters each; more are cut off
	Err                 error  // the cause, may be nil
}

// Error returns reason and description.
func (e *DeadLetterError) Error() string { return e.Reason + ": " + e.Description }

// Unwrap returns the cause.
func (e *DeadLetterError) Unwrap() error { return e.Err }

// DeadLetter is for a [Handler] to return when the message can never succeed. The reason is the type of err, or of the
// first error it wraps that is not just a text, "error" when there is none; the description is its text.
func DeadLetter(err error) error {
	return &DeadLetterError{Reason: typeOf(err), Description: err.Error(), Err: err}
}

func typeOf(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		name := strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
		if !strings.HasPrefix(name, "errors.") && !strings.HasPrefix(name, "fmt.") {
			return name
		}
	}
	return "error"
}

// maxDeadLetterText is the most characters of reason and of description (SETTLE-6).
const maxDeadLetterText = 4096

func cutText(s string) string {
	n := 0
	for i := range s {
		if n == maxDeadLetterText {
			return s[:i]
		}
		n++
	}
	return s
}
