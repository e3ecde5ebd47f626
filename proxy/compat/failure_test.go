package compat

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// The column "compat REST" of the table of ERR, in the order of the specification. 0: it cannot come here.
var specified = []int{
	400, 400, 400, 400, 400, 400, 400, 400, 400, 400, 401, 401, 410, 404, 404, 409, 409, 409, 400, 412, 403, 0, 404, 0, 403, 0, 403, 403, 503, 404, 0, 0, 0,
	201, 500, 503, 0, 500,
}

func TestERR_1_CompatStatuses(t *testing.T) {
	t.Parallel()
	if len(statuses) != len(semantics.Codes()) {
		t.Errorf("%d statuses for %d reasons", len(statuses), len(semantics.Codes()))
	}
	for i, code := range semantics.Codes() {
		if got := statuses[code]; got == 0 || specified[i] != 0 && got != specified[i] {
			t.Errorf("%s: got %d, want %d", code, got, specified[i])
		}
	}
}
