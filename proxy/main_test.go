package proxy_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
