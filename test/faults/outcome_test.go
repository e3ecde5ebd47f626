package faults

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/semantics"
)

// outcome is what a client knows of a call.
type outcome int

const (
	done     outcome = iota
	unknown          // it may have taken effect, or may yet
	failed           // it has certainly done nothing
	lockLost         // nor has it here: the lock has ended
	gone             // nor here: there is no such entity, or no such message
)

// outcomeOf returns the outcome of a call by its error, and reports whether faults explain it.
func outcomeOf(err error) (got outcome, isExpected bool) {
	if err == nil {
		return done, true
	}
	s := status.Convert(err)
	for _, detail := range s.Details() {
		info, is := detail.(*errdetails.ErrorInfo)
		if !is {
			continue
		}
		switch semantics.Code(info.Reason) {
		case semantics.MessageLockLost, semantics.SessionLockLost:
			return lockLost, true
		case semantics.EntityNotFound, semantics.MessageNotFound, semantics.SessionCannotBeLocked:
			return gone, true
		case semantics.DurabilityNotMet: // it is stored, and may be lost
			return unknown, true
		case semantics.StoreUnavailable, semantics.Cancelled:
			if info.Metadata[semantics.DetailOutcome] == semantics.OutcomeUnknown {
				return unknown, true
			}
			return failed, true
		default:
			return unknown, false
		}
	}
	switch {
	case s.Code() == codes.Unavailable && strings.Contains(s.Message(), "while dialing"):
		return failed, true
	case s.Code() == codes.Unavailable, s.Code() == codes.Canceled, s.Code() == codes.DeadlineExceeded:
		return unknown, true
	default:
		return unknown, false
	}
}
