package test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(runner(func() int { return sidecartest.Main(func() int { return redistest.Main(m) }) }))
}

// runner lets goleak look only after the shared servers have stopped.
type runner func() int

// Run runs the tests.
func (r runner) Run() int { return r() }
