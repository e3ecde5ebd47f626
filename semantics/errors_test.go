package semantics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// The table of spec section 1, as far as it concerns this package: every reason and whether it is retryable.
var errorTable = map[semantics.Code]bool{
	"INVALID_ARGUMENT": false, "ARGUMENT_OUT_OF_RANGE": false, "INVALID_OPERATION": false, "SESSION_REQUIRED": false,
	"SESSION_ID_MISSING": false, "SESSION_NOT_SUPPORTED": false, "PARTITION_KEY_MISMATCH": false, "FILTER_INVALID": false,
	"ACTION_INVALID": false, "FORWARD_DESTINATION_INVALID": false, "UNAUTHENTICATED": false, "PERMISSION_DENIED": false,
	"ENTITY_NOT_FOUND": false, "MESSAGE_NOT_FOUND": false, "RULE_NOT_FOUND": false, "ENTITY_ALREADY_EXISTS": false,
	"RULE_ALREADY_EXISTS": false, "CONFLICT_IN_PROGRESS": true, "PROPERTY_IMMUTABLE": false, "PRECONDITION_FAILED": false,
	"ENTITY_DISABLED": false, "SESSION_CANNOT_BE_LOCKED": true, "MESSAGE_LOCK_LOST": false, "SESSION_LOCK_LOST": false,
	"MESSAGE_SIZE_EXCEEDED": false, "SESSION_STATE_TOO_LARGE": false, "ENTITY_FULL": true, "QUOTA_EXCEEDED": false,
	"THROTTLED": true, "ROUTE_NOT_FOUND": false, "DURABILITY_NOT_MET": false,
	"TRANSACTION_TOO_LARGE": false, "TRANSACTION_TIMED_OUT": false, "TRANSACTION_NOT_FOUND": false,
	"NO_MATCHING_SUBSCRIPTION": false, "SERVICE_TIMEOUT": true, "STORE_UNAVAILABLE": true, "PAYLOAD_KEY_MISSING": true,
	"CANCELLED": true, "INTERNAL": true,
}

func TestERR_1_ClosedSet(t *testing.T) {
	t.Parallel()
	listed := map[semantics.Code]bool{}
	for _, code := range semantics.Codes() {
		if _, ok := errorTable[code]; !ok || listed[code] {
			t.Errorf("%s is not in the table of the specification, or listed twice", code)
		}
		listed[code] = true
	}
	if len(listed) != len(errorTable) {
		t.Errorf("%d codes are listed, the specification has %d", len(listed), len(errorTable))
	}
}

func TestERR_3_Retryable(t *testing.T) {
	t.Parallel()
	for code, want := range errorTable {
		if got := code.Retryable(); got != want {
			t.Errorf("%s.Retryable() = %v, want %v", code, got, want)
		}
	}
}

func TestErrorChain(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	e := &semantics.Error{Code: semantics.StoreUnavailable, Message: "no answer", Err: cause}
	wrapped := fmt.Errorf("sending: %w", e)
	if semantics.AsError(wrapped) != e || !errors.Is(wrapped, cause) || semantics.CodeOf(wrapped) != semantics.StoreUnavailable {
		t.Errorf("the chain of %v is broken", wrapped)
	}
	if got, want := e.Error(), "STORE_UNAVAILABLE: no answer: cause"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got := semantics.Errorf(semantics.Internal, "n is %d", 1).Error(); got != "INTERNAL: n is 1" {
		t.Errorf("Error() = %q", got)
	}
	if got := semantics.AsError(cause); got.Code != semantics.Internal || !errors.Is(got, cause) {
		t.Errorf("a foreign error becomes %v, want INTERNAL", got)
	}
	if semantics.AsError(nil) != nil || semantics.CodeOf(nil) != "" {
		t.Error("nil does not stay nil")
	}
}

func TestErrorWithLeavesTheOriginalAlone(t *testing.T) {
	t.Parallel()
	e := semantics.NotFound("q")
	with := e.With(semantics.DetailIndex, "3")
	if len(e.Details) != 1 || with.Details[semantics.DetailEntity] != "q" || with.Details[semantics.DetailIndex] != "3" {
		t.Errorf("With changed %v into %v", e.Details, with.Details)
	}
	size := semantics.SizeExceeded("message", 11, 10)
	if size.Details[semantics.DetailActual] != "11" || size.Details[semantics.DetailLimit] != "10" || !strings.Contains(size.Message, "11") {
		t.Errorf("SizeExceeded does not name the numbers: %v %v", size, size.Details)
	}
}
