package filter_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// correlations are correlation filters by what they ask for.
func correlations() map[string]semantics.CorrelationFilter {
	return map[string]semantics.CorrelationFilter{
		"field": {Subject: ptr("the bus trip")}, "other": {Subject: ptr("the train trip")},
		"property": {Properties: values{"color": semantics.String("red")}}, "missing": {Properties: values{"lost": semantics.String("red")}},
		"mixed": {To: ptr("S5"), Subject: ptr("the bus trip"), Properties: values{"Color": semantics.String("red"), "qty": semantics.Double(3)}},
	}
}

// usual is a message as one meets it: some properties, their names in mixed case.
func usual() *semantics.Message {
	return &semantics.Message{
		MessageID: "m-1", Subject: "the bus trip", To: "S5", Body: []byte("hello"),
		Properties: values{
			"Color": semantics.String("red"), "Price": semantics.Double(4.5), "qty": whole(semantics.TypeInt32, 3), "storeId": semantics.Int64(7), "Region": semantics.String("eu"),
			"at": typed(semantics.TypeDateTime, "2026-01-02T03:04:05Z"), "id": typed(semantics.TypeUUID, orderID),
		},
	}
}

// perSecond reports how many messages a benchmark got through.
func perSecond(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

func benchmarkMatches(b *testing.B, f semantics.RuleFilter) {
	b.Helper()
	r, err := filter.Compile(semantics.Rule{Name: "r", Filter: f})
	if err != nil {
		b.Fatal(err)
	}
	m := usual()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Matches(m, semantics.NewBudget()); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

func BenchmarkSQLFilter(b *testing.B) {
	for _, c := range everyday {
		b.Run(c.name, func(b *testing.B) {
			benchmarkMatches(b, semantics.RuleFilter{SQL: &semantics.SQLText{Expression: c.text}})
		})
	}
}

func BenchmarkCorrelationFilter(b *testing.B) {
	for name, f := range correlations() {
		b.Run(name, func(b *testing.B) { benchmarkMatches(b, semantics.RuleFilter{Correlation: &f}) })
	}
}

func BenchmarkAction(b *testing.B) {
	for name, text := range map[string]string{
		"set":    `SET qty = qty + 1`,
		"system": `SET sys.Label = 'x'`,
		"five":   `SET qty = qty + 1; SET fresh = Color + '!'; SET sys.To = 'S6'; REMOVE Region; SET sys.TimeToLive = '90s'`,
	} {
		b.Run(name, func(b *testing.B) {
			r, err := filter.Compile(ruleOf(`1=1`, text))
			if err != nil {
				b.Fatal(err)
			}
			m := usual()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Act(m); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b)
		})
	}
}

// Not parallel: allocations of other tests would count.
func TestSQL_18_RulesDoNotAllocate(t *testing.T) {
	rules := map[string]semantics.CompiledRule{}
	for name, f := range correlations() {
		rules["correlation "+name] = compile(t, semantics.Rule{Filter: semantics.RuleFilter{Correlation: &f}})
	}
	for _, c := range everyday {
		rules["sql "+c.name] = compile(t, ruleOf(c.text, ""))
	}
	m := usual()
	for name, r := range rules {
		if n := testing.AllocsPerRun(100, func() { _, _ = r.Matches(m, nil) }); n != 0 {
			t.Errorf("%s allocates %.0f times", name, n)
		}
	}
}

// Above some number of properties their names are folded before; nobody may see a difference.
func TestSQL_3_ManyProperties(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 63, 64, 65, 500} {
		m := &semantics.Message{Properties: values{}}
		for i := range n {
			m.Properties[fmt.Sprintf("Prop%d", i)] = semantics.Int64(int64(i))
		}
		last := fmt.Sprintf("pROP%d", n-1)
		for where, want := range map[string]bool{
			fmt.Sprintf("%s = %d", last, n-1): true, fmt.Sprintf("%s = %d", last, n): false, "prop IS NULL": true, "EXISTS(" + strings.ToUpper(last) + ")": true,
		} {
			if got, err := compile(t, ruleOf(where, "")).Matches(m, nil); got != want || err != nil {
				t.Errorf("%d properties: %s gives %v, %v", n, where, got, err)
			}
		}
		if !correlate(t, semantics.CorrelationFilter{Properties: values{last: semantics.Int64(int64(n - 1))}}, m) {
			t.Errorf("%d properties: a correlation filter does not find the last", n)
		}
	}
}

// One rule serves many goroutines; the race detector looks on.
func TestACT_2_ConcurrentUse(t *testing.T) {
	t.Parallel()
	m := order().Message
	rules := []semantics.CompiledRule{
		compile(t, ruleOf(`price*qty > 10.5`, `SET qty = qty + 1; REMOVE Color; SET sys.Label = newid()`)),
		compile(t, semantics.Rule{Filter: semantics.RuleFilter{Correlation: &semantics.CorrelationFilter{Properties: values{"color": semantics.String("red")}}}}),
	}
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 200 {
				for _, r := range rules {
					matches, err := r.Matches(&m, nil)
					made, actErr := r.Act(&m)
					if !matches || err != nil || actErr != nil || made == nil {
						t.Errorf("gives %v, %v, %v", matches, err, actErr)
					}
					r.Warnings()
				}
			}
		})
	}
	work.Wait()
}
