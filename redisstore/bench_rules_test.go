package redisstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// BenchmarkRules sends 1 KiB messages to a topic whose subscriptions have a rule each, from many callers, one message a
// call, rules and storing included. Either every subscription wants each message, or one of them does. Run it with a
// fixed number of iterations, for example -benchtime=3x. Figures are medians.
func BenchmarkRules(b *testing.B) {
	text := func(s string) *string { return &s }
	filters := map[string]func(region string) semantics.RuleFilter{
		"all": func(string) semantics.RuleFilter { return semantics.RuleFilter{All: true} },
		"correlation": func(region string) semantics.RuleFilter {
			properties := map[string]semantics.Value{"region": semantics.String(region)}
			return semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{Subject: text("order"), Properties: properties}}
		},
		"sql": func(region string) semantics.RuleFilter {
			expression := fmt.Sprintf("region = '%s' AND total > 100 AND sys.Label LIKE 'ord%%'", region)
			return semantics.RuleFilter{SQL: &semantics.SQLText{Expression: expression}}
		},
	}
	for _, kind := range []string{"all", "correlation", "sql"} {
		for _, subscriptions := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("rules=%s/subscriptions=%d", kind, subscriptions), func(b *testing.B) {
				ruled(b, subscriptions, subscriptions, filters[kind])
			})
		}
		if kind != "all" {
			b.Run(fmt.Sprintf("rules=%s/subscriptions=100/wanted-by=1", kind), func(b *testing.B) { ruled(b, 100, 1, filters[kind]) })
		}
	}
}

const mostRuled = 20_000 // messages of one iteration at most

func ruled(b *testing.B, subscriptions, wanting int, filterFor func(region string) semantics.RuleFilter) {
	b.Helper()
	server := redistest.Start(b, "--auto-aof-rewrite-percentage", "0")
	defer server.Stop()
	broker := broker.New(redistest.Open(b, redisstore.Options{URL: server.URL, PoolSize: benchCallers}), broker.WithRules(filter.Compile))
	defer broker.Close()
	messages := min(mostRuled, benchCopies/wanting)
	var perSecond []float64
	for b.Loop() {
		perSecond = append(perSecond, float64(messages)/sendRuled(b, broker, subscriptions, wanting, messages, filterFor))
	}
	b.ReportMetric(median(perSecond), "messages/s")
	b.ReportMetric(median(perSecond)*float64(wanting), "copies/s")
	b.ReportMetric(0, "ns/op")
}

// sendRuled makes a topic, sends, deletes the topic and gives the seconds that the sends took.
func sendRuled(b *testing.B, broker *broker.Broker, subscriptions, wanting, messages int, filterFor func(region string) semantics.RuleFilter) float64 {
	b.Helper()
	ctx := b.Context()
	large := semantics.Options{MaxSizeInMegabytes: semantics.MaxSizeMegabytes}
	if _, err := broker.CreateEntity(ctx, semantics.TopicKind, "news", large, []string{"maxSizeInMegabytes"}); err != nil {
		b.Fatal(err)
	}
	for i := range subscriptions {
		region := "eu"
		if i >= wanting {
			region = fmt.Sprint("other-", i)
		}
		path := semantics.SubscriptionPath("news", fmt.Sprintf("s%04d", i))
		rule := semantics.Rule{Name: "r", Filter: filterFor(region)}
		if _, err := broker.CreateEntity(ctx, semantics.SubscriptionKind, path, semantics.Options{}, nil, rule); err != nil {
			b.Fatal(err)
		}
	}
	body := make([]byte, benchBody)
	var left atomic.Int64
	left.Store(int64(messages))
	var all sync.WaitGroup
	began := time.Now()
	for range benchCallers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				m := &semantics.Message{Subject: "order", Body: body, Properties: map[string]semantics.Value{
					"region": semantics.String("eu"), "total": semantics.Int64(250),
				}}
				if _, err := broker.Send(ctx, semantics.ToTopic("news"), []*semantics.Message{m}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began).Seconds()
	if err := broker.DeleteEntity(ctx, semantics.TopicKind, "news"); err != nil {
		b.Fatal(err)
	}
	return took
}
