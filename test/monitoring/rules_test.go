// Package monitoring tests the alert rules and the dashboard of deploy/monitoring with the packages of Prometheus. It is
// a module of its own, because these are large.
package monitoring

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const folder = "../../deploy/monitoring/"

func promQL() parser.Parser { return parser.NewParser(parser.Options{}) }

func readRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, failed := rulefmt.ParseFile(folder+"alerts.yaml", false, model.LegacyValidation, promQL(), slog.New(slog.DiscardHandler))
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	var rules []rulefmt.Rule
	for _, group := range groups.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// documented returns the labels of each metric of docs/metrics.md, which a test of the sidecar compares with the code.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string][]string{
		"process_cpu_seconds_total": {}, "process_resident_memory_bytes": {}, // of Prometheus' client library
	}
	row := regexp.MustCompile("(?m)^\\| `(sidebus_\\w+)` \\| (\\w+) \\|([^|]*)\\|")
	for _, found := range row.FindAllStringSubmatch(string(page), -1) {
		var names []string
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(found[3], -1) {
			names = append(names, name[1])
		}
		if found[2] == "histogram" {
			metrics[found[1]+"_bucket"] = append(slices.Clone(names), "le")
			continue
		}
		metrics[found[1]] = names
	}
	if len(metrics) < 30 {
		t.Fatalf("read only %d metrics", len(metrics))
	}
	return metrics
}

// ofScrape are the labels that Prometheus adds.
var ofScrape = []string{model.MetricNameLabel, "job", "instance"}

// checkExpression checks that an expression is one, and that there are the metrics that it uses, with the labels by
// which it selects and adds up.
func checkExpression(t *testing.T, where, text string, metrics map[string][]string) {
	t.Helper()
	expression, err := promQL().ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	known := slices.Clone(ofScrape)
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		names, exists := metrics[selector.Name]
		if !exists {
			t.Errorf("%s: there is no metric %q", where, selector.Name)
		}
		known = append(known, names...)
		for _, matcher := range selector.LabelMatchers {
			if !slices.Contains(ofScrape, matcher.Name) && !slices.Contains(names, matcher.Name) {
				t.Errorf("%s: %s has no label %q", where, selector.Name, matcher.Name)
			}
		}
		return nil
	})
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if sum, is := node.(*parser.AggregateExpr); is {
			for _, label := range sum.Grouping {
				if !slices.Contains(known, label) {
					t.Errorf("%s: no metric has the label %q", where, label)
				}
			}
		}
		return nil
	})
}

func TestAlertsUseMetricsThatExist(t *testing.T) {
	t.Parallel()
	metrics := documented(t)
	for _, rule := range readRules(t) {
		checkExpression(t, rule.Alert, rule.Expr, metrics)
		for _, text := range []string{"summary", "description"} {
			if rule.Annotations[text] == "" {
				t.Errorf("%s has no %s", rule.Alert, text)
			}
		}
		if severity := rule.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
	}
}

func TestDashboardUsesMetricsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(folder + "grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Type, Definition string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	metrics, expressions := documented(t), 0
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$entity", ".*")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expressions++
			checkExpression(t, panel.Title, variables.Replace(target.Expr), metrics)
		}
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s shows nothing", panel.Title)
		}
	}
	if expressions < 20 {
		t.Errorf("read only %d expressions", expressions)
	}
	values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	for _, variable := range dashboard.Templating.List {
		if found := values.FindStringSubmatch(variable.Definition); found != nil {
			checkExpression(t, variable.Definition, "sum by ("+found[2]+") ("+variables.Replace(found[1])+")", metrics)
		}
	}
}

// What lets each alert fire, and what does not. The values are those of one minute after the other.
var cases = map[string]struct{ fires, quiet string }{
	"SidebusStoreDown": {
		`sidebus_store_up{job="j",instance="a"} 1x60
		 sidebus_store_up{job="j",instance="b"} 0x60`,
		`sidebus_store_up{job="j"} 1x60`,
	},
	"SidebusDeadLetters": {
		`sidebus_entity_messages{job="j",entity="orders",state="dead_letter"} 5+1x60`,
		`sidebus_entity_messages{job="j",entity="orders",state="dead_letter"} 5x60
		 sidebus_entity_messages{job="j",entity="orders",state="available"} 5+1x60`,
	},
	"SidebusBlockedSessions": {
		`sidebus_entity_sessions{job="j",entity="orders",state="blocked"} 1x60`,
		`sidebus_entity_sessions{job="j",entity="orders",state="blocked"} 0x60
		 sidebus_entity_sessions{job="j",entity="orders",state="locked"} 1x60`,
	},
	"SidebusOldMessages": {
		`sidebus_entity_oldest_age_seconds{job="j",entity="orders"} 1000x60`,
		`sidebus_entity_oldest_age_seconds{job="j",entity="orders"} 800x60`,
	},
	"SidebusNoReceiver": {
		`sidebus_entity_messages{job="j",entity="orders",state="available"} 5x60
		 sidebus_messages_received_total{job="j",entity="other"} 0+9x60
		 sidebus_entities_truncated{job="j"} 0x60`,
		`sidebus_entity_messages{job="j",entity="orders",state="available"} 5x60
		 sidebus_messages_received_total{job="j",entity="orders",instance="b"} 0+9x60
		 sidebus_entity_messages{job="full",entity="late",state="available"} 5x60
		 sidebus_entities_truncated{job="full"} 1x60`,
	},
	"SidebusTransferDeadLetters": {
		`sidebus_entity_messages{job="j",entity="orders",state="transfer_dead_letter"} 1x60`,
		`sidebus_entity_messages{job="j",entity="orders",state="transfer"} 1x60`,
	},
	"SidebusLocksLost": {
		`sidebus_locks_lost_total{job="j",entity="orders",outcome="complete"} 0+10x60`,
		`sidebus_locks_lost_total{job="j",entity="orders",outcome="complete"} 0+1x60`,
	},
	"SidebusEntityNames": {
		`sidebus_entities_truncated{job="j"} 1x60`,
		`sidebus_entities_truncated{job="j"} 0x60`,
	},
	"SidebusUpkeepStuck": {
		`sidebus_upkeep_faults_total{job="j"} 0x50 1x10`,
		`sidebus_upkeep_faults_total{job="j"} 3x60`,
	},
	"SidebusRefusals": {
		`sidebus_connections_refused_total{job="j",wire="grpc"} 0x60
		 sidebus_requests_refused_total{job="j"} 0+1x60
		 sidebus_answers_refused_total{job="j"} 0x60`,
		`sidebus_connections_refused_total{job="j",wire="grpc"} 7x60
		 sidebus_requests_refused_total{job="j"} 7x60
		 sidebus_answers_refused_total{job="j"} 7x60`,
	},
	"SidebusSlowRedis": {
		`sidebus_script_duration_seconds_bucket{job="j",script="send",le="0.1"} 0+90x60
		 sidebus_script_duration_seconds_bucket{job="j",script="send",le="1"} 0+100x60
		 sidebus_script_duration_seconds_bucket{job="j",script="send",le="+Inf"} 0+100x60`,
		`sidebus_script_duration_seconds_bucket{job="j",script="send",le="0.1"} 0+100x60
		 sidebus_script_duration_seconds_bucket{job="j",script="send",le="1"} 0+100x60
		 sidebus_script_duration_seconds_bucket{job="j",script="send",le="+Inf"} 0+100x60`,
	},
	"SidebusBug": {
		`sidebus_panics_total{job="j"} 0x50 1x10`,
		`sidebus_panics_total{job="j"} 1x60`,
	},
}

func TestEachAlertFires(t *testing.T) {
	t.Parallel()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	for _, rule := range readRules(t) {
		test, has := cases[rule.Alert]
		if !has {
			t.Errorf("%s: say what lets it fire", rule.Alert)
			continue
		}
		t.Run(rule.Alert, func(t *testing.T) {
			t.Parallel()
			for series, count := range map[string]int{test.fires: 1, test.quiet: 0} {
				storage := promqltest.LoadedStorage(t, "load 1m\n"+series)
				query, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr, time.Unix(55*60, 0))
				if err != nil {
					t.Fatal(err)
				}
				result := query.Exec(t.Context())
				vector, err := result.Vector()
				if err != nil || len(vector) != count {
					t.Errorf("got %d alerts and %v, want %d, for\n%s\n%v", len(vector), err, count, series, vector)
				}
				query.Close()
				if err := storage.Close(); err != nil {
					t.Fatal(fmt.Errorf("close: %w", err))
				}
			}
		})
	}
}
