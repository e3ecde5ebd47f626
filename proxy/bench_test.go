package proxy_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// serveQuietly runs a Proxy that logs nothing, with the queue "orders", until the test ends.
func serveQuietly(tb testing.TB, over store) *proxy.Proxy {
	tb.Helper()
	broker := broker.New(over)
	p, stop := serveBroker(tb, broker, over)
	tb.Cleanup(stop)
	if _, err := broker.CreateEntity(tb.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil); err != nil {
		tb.Fatal(err)
	}
	return p
}

// serveBroker runs a Proxy that logs nothing until stop, which closes the Broker too.
func serveBroker(tb testing.TB, broker *broker.Broker, over store) (p *proxy.Proxy, stop func()) {
	tb.Helper()
	p, err := proxy.New(proxy.Config{HTTPAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0"},
		broker, over, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return p, func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		broker.Close()
	}
}

// One message of 1 KiB is sent, received and completed in each round, over loopback and a store in memory, so what is
// measured is the proxy.
func BenchmarkRound(b *testing.B) {
	p := serveQuietly(b, memstore.New())
	text := strings.Repeat("x", 1024)

	b.Run("grpc", func(b *testing.B) {
		conn, err := grpc.NewClient(p.GRPCAddr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // nothing depends on it any more
		client := sidebusv1.NewMessagesClient(conn)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := client.Send(b.Context(), &sidebusv1.SendRequest{
					Target: orders, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Text{Text: text}}},
				}); err != nil {
					b.Error(err)
				}
				taken, err := client.Receive(b.Context(), &sidebusv1.ReceiveRequest{Source: orders})
				if err != nil || len(taken.GetMessages()) != 1 {
					b.Error(taken, err)
					return
				}
				if _, err := client.Complete(b.Context(), &sidebusv1.CompleteRequest{
					Source: orders, LockTokens: []string{taken.GetMessages()[0].GetLockToken()},
				}); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("http", func(b *testing.B) {
		transport := &http.Transport{MaxIdleConnsPerHost: 64}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		post := func(verb, body string) string {
			request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+p.HTTPAddr().String()+verbPath+verb, strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return ""
			}
			response, err := client.Do(request)
			if err != nil {
				b.Error(err)
				return ""
			}
			defer response.Body.Close() //nolint:errcheck // only read from
			answer, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusOK {
				b.Error(string(answer), err)
			}
			return string(answer)
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				post("send", `{"messages":[{"text":"`+text+`"}]}`)
				_, after, _ := strings.Cut(post("receive", `{}`), `"lockToken":"`)
				token, _, _ := strings.Cut(after, `"`)
				post("complete", `{"lockTokens":["`+token+`"]}`)
			}
		})
	})
}
