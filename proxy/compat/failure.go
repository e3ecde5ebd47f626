package compat

import (
	"bytes"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// errorHeader has the reason of an error (ERR-1), so that clients need not parse the body.
const errorHeader = "Sidebus-Error"

// statuses is the column "compat REST" of the error table. Reasons marked n/a cannot occur here.
var statuses = map[semantics.Code]int{
	semantics.InvalidArgument:           http.StatusBadRequest,
	semantics.ArgumentOutOfRange:        http.StatusBadRequest,
	semantics.InvalidOperation:          http.StatusBadRequest,
	semantics.SessionRequired:           http.StatusBadRequest,
	semantics.SessionIDMissing:          http.StatusBadRequest,
	semantics.SessionNotSupported:       http.StatusBadRequest,
	semantics.PartitionKeyMismatch:      http.StatusBadRequest,
	semantics.FilterInvalid:             http.StatusBadRequest,
	semantics.ActionInvalid:             http.StatusBadRequest,
	semantics.ForwardDestinationInvalid: http.StatusBadRequest,
	semantics.Unauthenticated:           http.StatusUnauthorized,
	semantics.PermissionDenied:          http.StatusUnauthorized,
	semantics.EntityNotFound:            http.StatusGone,
	semantics.MessageNotFound:           http.StatusNotFound,
	semantics.RuleNotFound:              http.StatusNotFound,
	semantics.EntityAlreadyExists:       http.StatusConflict,
	semantics.RuleAlreadyExists:         http.StatusConflict,
	semantics.ConflictInProgress:        http.StatusConflict,
	semantics.PropertyImmutable:         http.StatusBadRequest,
	semantics.PreconditionFailed:        http.StatusPreconditionFailed,
	semantics.EntityDisabled:            http.StatusForbidden,
	semantics.SessionCannotBeLocked:     http.StatusConflict, // n/a
	semantics.MessageLockLost:           http.StatusNotFound,
	semantics.SessionLockLost:           http.StatusNotFound, // n/a
	semantics.MessageSizeExceeded:       http.StatusForbidden,
	semantics.SessionStateTooLarge:      http.StatusForbidden, // n/a
	semantics.EntityFull:                http.StatusForbidden,
	semantics.QuotaExceeded:             http.StatusForbidden,
	semantics.Throttled:                 http.StatusServiceUnavailable,
	semantics.RouteNotFound:             http.StatusNotFound,
	semantics.DurabilityNotMet:          http.StatusServiceUnavailable,
	semantics.TransactionTooLarge:       http.StatusBadRequest, // n/a
	semantics.TransactionTimedOut:       http.StatusConflict,   // n/a
	semantics.TransactionNotFound:       http.StatusNotFound,   // n/a
	semantics.NoMatchingSubscription:    http.StatusCreated,
	semantics.ServiceTimeout:            http.StatusInternalServerError,
	semantics.StoreUnavailable:          http.StatusServiceUnavailable,
	semantics.PayloadKeyMissing:         http.StatusServiceUnavailable,
	semantics.Cancelled:                 http.StatusServiceUnavailable, // the client is gone
	semantics.Internal:                  http.StatusInternalServerError,
}

// errorBody is the XML body of an error, as in Service Bus.
type errorBody struct {
	XMLName xml.Name `xml:"Error"`
	Code    int
	Detail  string
}

// StatusOf returns the status of an error.
func StatusOf(e *semantics.Error) int { return wireerror.StatusOf(e, statuses[e.Code]) }

// WriteWrongMethod answers a request whose path has verbs, by method, but none of its own method. It returns the error.
func WriteWrongMethod[V any](w http.ResponseWriter, method string, verbs map[string]V) *semantics.Error {
	allowed := strings.Join(slices.Sorted(maps.Keys(verbs)), ", ")
	w.Header().Set("Allow", allowed)
	failure := semantics.Errorf(
		semantics.RouteNotFound, "the route does not accept %s; use %s", semantics.Shorten(method), allowed,
	)
	WriteError(w, http.StatusMethodNotAllowed, Detail(failure), failure)
	return failure
}

// writeFailure answers a request that failed.
func writeFailure(w http.ResponseWriter, failure *semantics.Error) {
	WriteError(w, StatusOf(failure), Detail(failure), failure)
}

// Detail returns the text of an error, which begins with its reason.
func Detail(e *semantics.Error) string {
	detail := string(e.Code) + ": " + e.Message
	if index, ok := e.Details[semantics.DetailIndex]; ok {
		detail += " (message " + index + " of the batch)"
	}
	return detail
}

// WriteError answers a request that failed, in the form of Service Bus.
func WriteError(w http.ResponseWriter, status int, detail string, failure *semantics.Error) {
	var body bytes.Buffer
	body.WriteString(xml.Header)
	if err := xml.NewEncoder(&body).Encode(errorBody{
		Code:   status,
		Detail: strings.ToValidUTF8(detail, "\uFFFD"),
	}); err != nil {
		panic(err) // encoding a number and a string cannot fail
	}
	_, _, retryAfter := wireerror.HTTP(failure)
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", sas.Scheme)
	}
	w.Header().Set(errorHeader, string(failure.Code))
	w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // if it fails, the client is gone
}
