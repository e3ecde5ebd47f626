package amqp

import (
	"net/http"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// Error conditions that the SDKs know.
const (
	notFound        = "amqp:not-found"
	unauthorized    = "amqp:unauthorized-access"
	notAllowed      = "amqp:not-allowed"
	notImplemented  = "amqp:not-implemented"
	invalidField    = "amqp:invalid-field"
	internalError   = "amqp:internal-error"
	limitExceeded   = "amqp:resource-limit-exceeded"
	sizeExceeded    = "amqp:link:message-size-exceeded"
	detachForced    = "amqp:link:detach-forced"
	serverBusy      = "com.microsoft:server-busy"
	timedOut        = "com.microsoft:timeout"
	disabled        = "com.microsoft:entity-disabled"
	argumentError   = "com.microsoft:argument-error"
	messageNotFound = "com.microsoft:message-not-found"
	alreadyExists   = "com.microsoft:entity-already-exists"
	cannotBeLocked  = "com.microsoft:session-cannot-be-locked"
	messageLockLost = "com.microsoft:message-lock-lost"
	sessionLockLost = "com.microsoft:session-lock-lost"
	cancelled       = "com.microsoft:operation-cancelled"
)

// outcome is how a Code of Sidebus reaches a client: as the error of a link or message, and as the status of a request.
type outcome struct {
	condition string
	status    int
}

// outcomes are those of all codes that are not argument errors.
var outcomes = map[semantics.Code]outcome{
	semantics.InvalidOperation:      {notAllowed, http.StatusBadRequest},
	semantics.SessionRequired:       {notAllowed, http.StatusBadRequest},
	semantics.SessionIDMissing:      {notAllowed, http.StatusBadRequest},
	semantics.SessionNotSupported:   {notAllowed, http.StatusBadRequest},
	semantics.Unauthenticated:       {unauthorized, http.StatusUnauthorized},
	semantics.PermissionDenied:      {unauthorized, http.StatusUnauthorized},
	semantics.EntityNotFound:        {notFound, http.StatusNotFound},
	semantics.RuleNotFound:          {notFound, http.StatusNotFound},
	semantics.MessageNotFound:       {messageNotFound, http.StatusNotFound},
	semantics.EntityAlreadyExists:   {alreadyExists, http.StatusConflict},
	semantics.RuleAlreadyExists:     {alreadyExists, http.StatusConflict},
	semantics.EntityDisabled:        {disabled, http.StatusBadRequest},
	semantics.SessionCannotBeLocked: {cannotBeLocked, http.StatusGone},
	semantics.MessageLockLost:       {messageLockLost, http.StatusGone},
	semantics.SessionLockLost:       {sessionLockLost, http.StatusGone},
	semantics.MessageSizeExceeded:   {sizeExceeded, http.StatusForbidden},
	semantics.SessionStateTooLarge:  {sizeExceeded, http.StatusForbidden},
	semantics.EntityFull:            {limitExceeded, http.StatusForbidden},
	semantics.QuotaExceeded:         {limitExceeded, http.StatusForbidden},
	semantics.ConflictInProgress:    {serverBusy, http.StatusServiceUnavailable},
	semantics.Throttled:             {serverBusy, http.StatusServiceUnavailable},
	semantics.StoreUnavailable:      {serverBusy, http.StatusServiceUnavailable},
	semantics.PayloadKeyMissing:     {serverBusy, http.StatusServiceUnavailable},
	semantics.DurabilityNotMet:      {timedOut, http.StatusRequestTimeout},
	semantics.ServiceTimeout:        {timedOut, http.StatusRequestTimeout},
	semantics.Cancelled:             {cancelled, http.StatusServiceUnavailable},
	semantics.Internal:              {internalError, http.StatusInternalServerError},
}

// outcomeOf returns how an error reaches a client. A call that may have taken effect is a timeout, as in Service
// Bus.
func outcomeOf(err *semantics.Error) outcome {
	if semantics.IsOutcomeUnknown(err) {
		return outcome{timedOut, http.StatusRequestTimeout}
	}
	if o, ok := outcomes[err.Code]; ok {
		return o
	}
	return outcome{argumentError, http.StatusBadRequest}
}

// linkError returns an error for a link or a message. It has the code of Sidebus, which says more than the condition.
func linkError(err error) *frame.Error {
	e := obs.Failure(err)
	return &frame.Error{
		Condition: outcomeOf(e).condition, Description: text(e),
		Info: codec.Map{codec.Named("sidebus:reason", string(e.Code))},
	}
}

// Texts that SDKs and their users look for.
const (
	lockLostText = "The lock supplied is invalid. Either the lock expired, or the message has already been removed from " +
		"the queue, or was received by a different receiver instance."
	sessionLostText     = "The session lock has expired. Accept the session again."
	sessionRequiredText = "It is not possible for an entity that requires sessions to create a non-sessionful message " +
		"receiver."
)

// text returns what the client reads of an error.
func text(e *semantics.Error) string {
	switch e.Code {
	case semantics.MessageLockLost:
		return lockLostText
	case semantics.SessionLockLost:
		return sessionLostText
	default:
		return e.Message
	}
}

// codeError returns the error of a token that was not settled or renewed.
func codeError(source semantics.Source, code semantics.Code) *semantics.Error {
	return semantics.Errorf(code, "the message was not settled").With(semantics.DetailEntity, source.String())
}
