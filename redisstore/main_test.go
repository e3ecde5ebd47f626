package redisstore_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/redisstore/redistest"
)

func TestMain(m *testing.M) {
	code := redistest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}
