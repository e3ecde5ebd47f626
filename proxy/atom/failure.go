package atom

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// statusOf is the status of an error: that of the other REST API, but an entity that is missing is not found.
func statusOf(e *semantics.Error) int {
	if e.Code == semantics.EntityNotFound {
		return http.StatusNotFound
	}
	return compat.StatusOf(e)
}

// fail writes an error, in the form in which clients of Service Bus look at it.
func (x *exchange) fail(err error) {
	x.failure = obs.Failure(err)
	status := statusOf(x.failure)
	sub := strconv.Itoa(status) + "00"
	if x.failure.Code == semantics.ConflictInProgress {
		sub = "40901" // for the SDK for JavaScript: nothing exists already
	}
	compat.WriteError(x, status, "SubCode="+sub+". "+serviceText(x.failure)+compat.Detail(x.failure), x.failure)
}

// serviceText returns what Service Bus would say, where users look for that.
func serviceText(e *semantics.Error) string {
	var denied *deniedError
	switch option := e.Details[semantics.DetailField]; {
	case errors.As(e.Err, &denied):
		return "Unauthorized: Manage," + denied.claim + " claims required for this operation '" + denied.call + "'. "
	case e.Code == semantics.PropertyImmutable && option != "":
		return "The value for the " + elementOf(option) + " property of an existing entity cannot be changed. "
	default:
		return ""
	}
}

// deniedError is the cause of an error of the rights for a call.
type deniedError struct{ call, claim string }

// Error names the call.
func (e *deniedError) Error() string { return e.call + " needs " + e.claim }

// refusal returns an error of the rights for a call.
func refusal(err error, c call) error {
	if semantics.CodeOf(err) != semantics.PermissionDenied {
		return err
	}
	e := *semantics.AsError(err)
	e.Err = &deniedError{c.name, c.claim}
	return &e
}
