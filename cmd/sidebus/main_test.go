package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) {
	code := sidecartest.Main(func() int { return redistest.Main(m) })
	if err := goleak.Find(); err != nil && code == 0 {
		println("goroutines left:", err.Error())
		code = 1
	}
	os.Exit(code)
}
