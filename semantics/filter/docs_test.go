package filter_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// examples gives the lines of the blocks of docs/filters.md that follow a mark, as text and what the page says of it.
func examples(t *testing.T, mark string) []outcome {
	t.Helper()
	var found []outcome
	for _, block := range regexp.MustCompile("(?s)<!-- "+mark+" -->\n```sql\n(.*?)\n```").FindAllStringSubmatch(page(t), -1) {
		for line := range strings.Lines(block[1]) {
			text, says, ok := strings.Cut(line, "--")
			if !ok {
				t.Errorf("%q says nothing", line)
			}
			found = append(found, outcome{strings.TrimSpace(text), strings.TrimSpace(says)})
		}
	}
	if len(found) < 10 {
		t.Fatalf("%d examples after %s", len(found), mark)
	}
	return found
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/filters.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ofPage makes the message the page is about.
func ofPage(t *testing.T) *semantics.Message {
	t.Helper()
	block := regexp.MustCompile("(?s)<!-- message -->\n```json\n(.*?)\n```").FindStringSubmatch(page(t))
	if block == nil {
		t.Fatal("the page has no message")
	}
	var sent struct {
		MessageID, Subject, To, TimeToLive string
		Properties                         map[string]any
	}
	if err := json.Unmarshal([]byte(block[1]), &sent); err != nil {
		t.Fatal(err)
	}
	lifetime, err := time.ParseDuration(sent.TimeToLive)
	if err != nil {
		t.Fatal(err)
	}
	m := &semantics.Message{MessageID: sent.MessageID, Subject: sent.Subject, To: sent.To, TimeToLive: &lifetime, Properties: values{}}
	for name, value := range sent.Properties {
		switch value := value.(type) {
		case string:
			m.Properties[name] = semantics.String(value)
		case bool:
			m.Properties[name] = semantics.Bool(value)
		case float64:
			if m.Properties[name] = semantics.Double(value); value == float64(int64(value)) { // MSG-13
				m.Properties[name] = semantics.Int64(int64(value))
			}
		case map[string]any:
			m.Properties[name] = typed(semantics.TypeDateTime, value["value"].(string))
		default:
			m.Properties[name] = semantics.Null()
		}
	}
	return m
}

func TestSQL_17_ExamplesOfThePage(t *testing.T) {
	t.Parallel()
	view := filter.Of(ofPage(t))
	for _, example := range examples(t, "conditions") {
		truth, _, _ := strings.Cut(example.want, ":")
		check(t, view, nil, []outcome{{example.filter, truth}})
	}
}

func TestACT_1_ExamplesOfThePage(t *testing.T) {
	t.Parallel()
	m := ofPage(t)
	for _, example := range examples(t, "actions") {
		changed, err := parseAction(t, example.filter, nil).Apply(m)
		if strings.HasPrefix(example.want, "failure") != (err != nil) {
			t.Errorf("%s gives %v, the page says %s", example.filter, err, example.want)
		}
		if err != nil {
			continue
		}
		for claim := range strings.SplitSeq(example.want, ";") {
			claim, _, _ = strings.Cut(strings.TrimSpace(claim), ":")
			name, value, _ := strings.Cut(claim, " is ")
			holdsOn(t, example.filter, changed, name, value)
		}
	}
}

// holdsOn checks a claim of the page, such as "qty is 6" or "note is missing".
func holdsOn(t *testing.T, action string, m *semantics.Message, name, value string) {
	t.Helper()
	where := name + " = " + value
	switch {
	case value == "missing":
		where = "NOT EXISTS(" + name + ")"
	case value == "NULL":
		where = name + " IS NULL"
	case name == "sys.TimeToLive":
		if m.TimeToLive.String() != "1m30s" {
			t.Errorf("%s makes the time to live %v, the page says %s", action, m.TimeToLive, value)
		}
		return
	}
	if got := evaluate(t, parse(t, where, nil), filter.Of(m)); got != T {
		t.Errorf("%s: %s is %s", action, where, got)
	}
}

func TestRULE_4_LimitsOfThePage(t *testing.T) {
	t.Parallel()
	text := page(t)
	for what, want := range map[string]bool{
		"| 1024 characters each |": semantics.MaxRuleText == 1024, "| 32 |": semantics.MaxActionExpressions == 32, "| 64 |": filter.MaxDepth == 64,
		"2,000 in a topic": semantics.MaxSQLFiltersPerTopic == 2000, "100,000 in a topic": semantics.MaxCorrelationFiltersPerTopic == 100_000,
		"64 KiB with names": semantics.MaxHeaderSize == 64<<10, "32 KiB a value": semantics.MaxPropertyValueSize == 32<<10,
	} {
		if !strings.Contains(text, what) || !want {
			t.Errorf("the page says %q: %v; the code agrees: %v", what, strings.Contains(text, what), want)
		}
	}
}
