package observe

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// descText finds name, help and labels in the text of a prometheus.Desc, which has no getters.
var descText = regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)",.* constLabels: \{\}, variableLabels: \{([^}]*)\}`)

// registeredMetrics lists what "sidebus serve" registers, as rows of docs/metrics.md without the type.
func registeredMetrics(t *testing.T) []string {
	t.Helper()
	registry, logger, store := prometheus.NewRegistry(), slog.New(slog.DiscardHandler), memstore.New()
	Scripts(registry)
	NewDeadLetters(registry, 1, false, nil)
	Removals(registry, logger)
	UpkeepFaults(registry, logger)
	Orphans(registry, logger)
	Spans(registry)
	broker := broker.New(store)
	defer broker.Close()
	const free = "127.0.0.1:0"
	config := proxy.Config{HTTPAddr: free, GRPCAddr: free, AdminAddr: free, Entities: store}
	if _, err := proxy.New(config, broker, store, logger, registry); err != nil {
		t.Fatal(err)
	}
	found := make(chan *prometheus.Desc)
	go func() {
		defer close(found)
		registry.Describe(found)
	}()
	var rows []string
	for desc := range found {
		if !strings.Contains(desc.String(), `"sidebus_`) {
			continue // of Go or the process
		}
		match := descText.FindStringSubmatch(desc.String())
		if match == nil {
			t.Errorf("cannot read %s", desc)
			continue
		}
		labels := ""
		if match[3] != "" {
			labels = "`" + strings.ReplaceAll(match[3], ",", "`, `") + "`"
		}
		rows = append(rows, match[1]+" | "+labels+" | "+match[2])
	}
	slices.Sort(rows)
	return rows
}

// TestMetricsPageAgreesWithTheCode compares names, labels and texts. The type must fit the name.
func TestMetricsPageAgreesWithTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(sidebus_[a-z_]+)` \\| (\\w+) \\| (.*?) ?\\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		name, kind := row[1], row[2]
		rows = append(rows, name+" | "+row[3]+" | "+row[4])
		want := "gauge"
		switch {
		case strings.HasSuffix(name, "_total"):
			want = "counter"
		case strings.HasSuffix(name, "_duration_seconds"):
			want = "histogram"
		}
		if kind != want {
			t.Errorf("docs/metrics.md has %s as a %s, want %s", name, kind, want)
		}
	}
	slices.Sort(rows)
	if diff := cmp.Diff(registeredMetrics(t), rows); diff != "" {
		t.Errorf("docs/metrics.md differs from the code (-code +page)\n%s", diff)
	}
}

// TestMetricsKeepToConventions checks the names by the conventions of Prometheus, and the texts by ours.
func TestMetricsKeepToConventions(t *testing.T) {
	t.Parallel()
	units := regexp.MustCompile(`(_seconds|_bytes|_total|_info|_up|_messages|_sessions|_streams|_stalled|_connections|_held|_reachable|_truncated)$`)
	for _, row := range registeredMetrics(t) {
		parts := strings.Split(row, " | ")
		name, help := parts[0], parts[2]
		if !units.MatchString(name) {
			t.Errorf("%s: the name ends neither with a unit nor with what is counted", name)
		}
		if !strings.HasSuffix(help, ".") || regexp.MustCompile(`\b[A-Z]{2,}-\d`).MatchString(help) {
			t.Errorf("%s: %q is not a sentence, or cites a rule", name, help)
		}
	}
}
