package sidebusv1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Pauses before a stream that broke is opened again, each twice the last.
const (
	handleFirstPause = 100 * time.Millisecond
	handleLastPause  = 5 * time.Second
)

// Handler deals with one message. Its ctx ends when that of Handle ends, and when the lock of the message is lost. What it returns
// settles the message, unless the handler has done so itself (RECV-14): nil completes it, DeadLetter dead-letters it, and any other
// error abandons it, or, once ctx has ended, releases it, which counts nothing.
//
// In RECEIVE_AND_DELETE mode the message was removed before the handler began, which is the only one to have it then: its ctx never
// ends by itself, what it returns settles nothing, and the methods that settle fail with INVALID_OPERATION.
type Handler func(ctx context.Context, m *HandledMessage) error

// HandleOption changes how Handle works.
type HandleOption func(*handling)

// OnFailure makes Handle tell what goes wrong and does not end it: a stream that breaks, a settlement that fails for good. f is called
// by several goroutines.
func OnFailure(f func(error)) HandleOption { return func(h *handling) { h.failed = f } }

// ManualSettlement leaves every message to its methods: what a handler returns settles nothing (RECV-14). An error goes to OnFailure.
// A message may be settled after its handler has returned; until then it counts against the credits.
func ManualSettlement() HandleOption { return func(h *handling) { h.isManual = true } }

// Handle gives every message of a queue to handler, over a Subscribe stream, until ctx ends: the receive loop is hidden (SESS-10).
// open says which messages and how; its Credits, 1 when absent, are how many handlers run at a time. On a queue with sessions they
// are called one after the other within a session, in its order, also when a message fails and comes again. The locks of messages
// in hand are renewed. A settlement that is refused for a reason that passes is tried again until its lock is lost.
//
// When the stream breaks it is opened again, after a pause, and handlers that run find their ctx ended. When ctx ends, no handler is
// begun, those that run are waited for, what was not settled is given back uncounted, and Handle returns nil. It returns an error
// that no later try would do away with, such as NOT_FOUND. client is not closed.
//
// In RECEIVE_AND_DELETE mode each message is locked until there is a handler for it, and removed just before that begins. So what was
// removed comes to the handler once, and what was not goes back uncounted. Only a stream that breaks, a process that dies, or a Redis
// that is away as ctx ends, just between the two, loses it. A session may be given up, and go on elsewhere, while the handler of its last message still runs.
func Handle(ctx context.Context, client MessagesClient, open *SubscribeOpen, handler Handler, options ...HandleOption) error {
	h := newHandling(ctx, client, open, handler, options)
	defer h.work.Wait()
	pause, everOpened := handleFirstPause, false
	for ctx.Err() == nil {
		opened, err := h.once(ctx)
		everOpened = everOpened || opened
		if opened {
			pause = handleFirstPause
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case !mayPass(err) && !(everOpened && isNameTaken(err)):
			return err
		}
		h.failed(fmt.Errorf("handle %s: %w", open.GetSource(), err))
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
	client   MessagesClient
	open     *SubscribeOpen // as it goes over the wire
	handler  Handler
	failed   func(error)
	isManual bool
	removes  bool // messages are removed before their handlers begin
	credits  int

	places places
	work   sync.WaitGroup // the handlers, and messages that wait for one
}

func newHandling(ctx context.Context, client MessagesClient, open *SubscribeOpen, handler Handler, options []HandleOption) *handling {
	h := &handling{ctx: ctx, client: client, open: open, handler: handler, failed: func(error) {}, credits: 1}
	for _, option := range options {
		option(h)
	}
	if open != nil && open.Credits != nil {
		h.credits = int(open.GetCredits())
	}
	h.places = newPlaces(h.credits)
	if open.GetMode() == ReceiveRequest_RECEIVE_AND_DELETE {
		h.removes, h.open = true, lockedFirst(open)
	}
	return h
}

// maxAutoRenew is how long locks can be renewed at most (LOCK-9).
const maxAutoRenew = 24 * time.Hour

// lockedFirst asks for the same messages, locked for as long as one may have to wait for its handler.
func lockedFirst(open *SubscribeOpen) *SubscribeOpen {
	open = proto.CloneOf(open)
	open.Mode, open.MaxAutoRenew = ReceiveRequest_PEEK_LOCK, durationpb.New(maxAutoRenew)
	return open
}

// mayPass tells whether another stream may fare better than the one that ended with err.
func mayPass(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound, codes.FailedPrecondition, codes.PermissionDenied,
		codes.Unauthenticated, codes.Unimplemented:
		return false
	default:
		return true
	}
}

// isNameTaken tells whether the stream was refused because one of its id stands: after a break that may be our own, of whose end
// the sidecar has yet to learn.
func isNameTaken(err error) bool {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason() == "INVALID_OPERATION" && info.GetMetadata()["field"] == "id"
		}
	}
	return false
}

// Error makes a Failure an error.
func (f *Failure) Error() string { return f.GetReason() + ": " + f.GetMessage() }

// DeadLetterError says that a message is to be dead-lettered, and why.
type DeadLetterError struct {
	Reason, Description string
	Err                 error // the cause, may be nil
}

// Error gives reason and description.
func (e *DeadLetterError) Error() string { return e.Reason + ": " + e.Description }

// Unwrap gives the cause.
func (e *DeadLetterError) Unwrap() error { return e.Err }

// DeadLetter is for a handler to return when the message will never succeed. The reason is the type of err, or of the first error it
// wraps that is not just a text, "error" when there is none; the description is its text (DLQ-14).
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
