package reply_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/semantics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wantCode(t *testing.T, what string, err error, want semantics.Code) {
	t.Helper()
	if got := semantics.CodeOf(err); got != want {
		t.Errorf("%s: got error %v, want %q", what, err, want)
	}
}
