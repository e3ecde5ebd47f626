package verbs

import (
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) { sidecartest.Main(m) }
