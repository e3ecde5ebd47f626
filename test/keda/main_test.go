package keda

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// KEDA keeps its connections to scalers until its process ends, and links a package that starts a goroutine for ever.
func TestMain(m *testing.M) {
	kept := []goleak.Option{goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start")}
	for _, of := range []string{
		".(*addrConn).connect", ".(*ClientConn).WaitForStateChange", "/internal/grpcsync.(*CallbackSerializer).run",
		"/internal/transport.(*http2Client).reader", "/internal/transport.(*controlBuffer).get",
	} {
		kept = append(kept, goleak.IgnoreAnyFunction("google.golang.org/grpc"+of))
	}
	sidecartest.Main(m, kept...)
}
