package redisstore_test

import (
	"flag"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
)

// modelRuns is how many runs a model makes unless the command line says otherwise. What is rare is found in `make soak`.
const modelRuns = "40"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", modelRuns); err != nil {
		panic(err)
	}
	redistest.Main(m)
}
