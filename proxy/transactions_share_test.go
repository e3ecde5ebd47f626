package proxy_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"google.golang.org/grpc"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// beginAll begins transactions over a connection until one is refused, with several calls at once, and returns how many
// it could begin.
func beginAll(t *testing.T, conn grpc.ClientConnInterface) (begun int) {
	t.Helper()
	var (
		mu    sync.Mutex
		calls sync.WaitGroup
	)
	for range 8 {
		calls.Go(func() {
			for {
				_, err := sidebusv1.NewTransactionsClient(conn).Begin(context.Background(), &sidebusv1.BeginRequest{})
				if err != nil {
					if info := infoOf(t, err); info.GetReason() != string(semantics.Throttled) || info.GetMetadata()["limit"] == "" {
						t.Errorf("refused with %v, want THROTTLED with the bound", err)
					}
					return
				}
				mu.Lock()
				begun++
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	return begun
}

// Over gRPC a caller is a connection, and calls that share a stream of it have its share. Over HTTP a client may use a
// connection for each call, so all with one address have one share.
func TestTX_9_ClientsHaveTheirShareOfTransactions(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	if begun := beginAll(t, s.conn); begun != broker.MaxTransactions/2 {
		t.Errorf("the first client has %d open transactions, want half of %d", begun, broker.MaxTransactions)
	}
	free := broker.MaxTransactions / 2
	for _, conn := range []grpc.ClientConnInterface{s.shared, dial(t, s.proxy.GRPCAddr().String())} {
		begun := beginAll(t, conn)
		if begun < free/2-1 || begun > free/2 {
			t.Errorf("another client has %d open transactions, want half of the %d that were free", begun, free)
		}
		free -= begun
	}
	for free > 100 {
		free -= beginAll(t, dial(t, s.proxy.GRPCAddr().String()))
	}
	for i := 0; ; i++ {
		s.http.CloseIdleConnections()
		a := s.call(t, http.MethodPost, "/v1/transactions", `{}`)
		if a.status == http.StatusOK && i < free/2 {
			continue
		}
		if reason, field := a.reason(t); a.status != http.StatusTooManyRequests || reason != string(semantics.Throttled) ||
			field != "transactions" || i != free/2 {
			t.Errorf("transaction %d over HTTP, with %d free: %s", i, free, a.body)
		}
		return
	}
}
