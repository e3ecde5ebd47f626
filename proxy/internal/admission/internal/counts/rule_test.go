package counts

import (
	"testing"

	"github.com/sidebus/sidebus/test/lockrule"
)

func TestExportedMethodsLock(t *testing.T) {
	t.Parallel()
	lockrule.Check(t, 18, "all", "c", "w", "conn")
}
