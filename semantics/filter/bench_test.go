package filter_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// everyday are the filters that must be fast: no allocation for any of them.
var everyday = []struct{ name, text string }{
	{"label", `sys.Label = 'x'`},
	{"arithmetic", `price*qty > 10.5 AND color IN ('red','blue')`},
	{"like", `sys.Label LIKE '%bus%'`},
	{"like_any", `sys.Label LIKE '%b_s%t_ip'`},
	{"exists", `EXISTS(color) AND lost IS NULL`},
	{"uuid", `id = '` + orderID + `'`},
	{"datetime", `at > '2026-01-01'`},
}

func BenchmarkMatches(b *testing.B) {
	view := filter.OfReceived(order())
	for _, c := range everyday {
		b.Run(c.name, func(b *testing.B) {
			f, err := filter.Parse(c.text, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Matches(view); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "filters/s")
		})
	}
}

func BenchmarkView(b *testing.B) {
	message := func(names ...string) *semantics.Message {
		m := &semantics.Message{Properties: values{}}
		for _, name := range names {
			m.Properties[name] = semantics.Int64(1)
		}
		return m
	}
	for name, m := range map[string]*semantics.Message{
		"lower": message("color", "price", "qty", "store", "region"), "mixed": message("Color", "Price", "Qty", "Store", "Region"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				filter.Of(m)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{"label": everyday[0].text, "arithmetic": everyday[1].text, "longest": "a" + strings.Repeat(" OR a", 204)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := filter.Parse(text, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Not parallel: allocations of other tests would count.
func TestSQL_18_EvaluationDoesNotAllocate(t *testing.T) {
	view := filter.OfReceived(order())
	for _, c := range everyday {
		f := parse(t, c.text, nil)
		if n := testing.AllocsPerRun(100, func() { _, _ = f.Matches(view) }); n != 0 {
			t.Errorf("%s allocates %.0f times", c.text, n)
		}
	}
	m := &semantics.Message{Properties: values{"color": semantics.Int64(1), "größe": semantics.Int64(1)}}
	if n := testing.AllocsPerRun(100, func() { filter.Of(m) }); n > 1 {
		t.Errorf("a view of a message with names in lower case allocates %.0f times", n)
	}
}

// One filter and one view serve many goroutines; the race detector looks on.
func TestSQL_18_ConcurrentUse(t *testing.T) {
	t.Parallel()
	f := parse(t, `price*qty > 10.5 AND color IN ('red','blue') AND sys.Label LIKE '%b_s%' AND p('which') LIKE which ESCAPE '!' AND NOT newid() = id`, nil)
	view := filter.OfReceived(order())
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 200 {
				if ok, err := f.Matches(view); !ok || err != nil {
					t.Errorf("gives %v, %v", ok, err)
				}
				_, _, _ = f.String(), f.Warnings(), f.Explain(view)
			}
		})
	}
	work.Wait()
}
