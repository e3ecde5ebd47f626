package proto_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every route of http.yaml is in the document, with its method, unless it is there only to say why not: to send to a
// subscription, or to receive from a topic (TOPIC-8). No two operations have one name.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	t.Parallel()
	var document struct {
		Info  struct{ Title string }
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(proto.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	if document.Info.Title != "Sidebus" {
		t.Errorf("title is %q", document.Info.Title)
	}
	names := map[string]string{}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			if names[operation.OperationID] != "" {
				t.Errorf("%s %s and %s are both %s", method, path, names[operation.OperationID], operation.OperationID)
			}
			names[operation.OperationID] = method + " " + path
		}
	}
	rules, err := os.ReadFile("http.yaml")
	if err != nil {
		t.Fatal(err)
	}
	routes := regexp.MustCompile(`(get|put|post|patch|delete): "([^"]+)"`).FindAllStringSubmatch(string(rules), -1)
	if len(routes) != 109 {
		t.Fatalf("%d routes, want 109", len(routes))
	}
	variable := regexp.MustCompile(`\{\w+=([^}]*)\}`)
	pattern := strings.NewReplacer("queues/*", "queues/{queue}", "topics/*", "topics/{topic}",
		"subscriptions/*", "subscriptions/{subscription}", "rules/*", "rules/{rule}", "{transaction_id}", "{transactionId}")
	refused := 0
	for _, route := range routes {
		path := pattern.Replace(variable.ReplaceAllString(route[2], "$1"))
		if _, ok := document.Paths[path][route[1]]; ok {
			continue
		}
		if refused++; !refusedRoute.MatchString(path) {
			t.Errorf("no %s %s", route[1], path)
		}
	}
	if refused != 25 {
		t.Errorf("%d routes are not in the document, want 25", refused)
	}
}

var refusedRoute = regexp.MustCompile(`^/v1/topics/\{topic\}/(subscriptions/\{subscription\}/messages:(send|request|cancelScheduled)|(messages|sessions).*)$`)

// The document stands alone: it cites no rules, which are in docs/spec.
func TestOpenAPICitesNoRules(t *testing.T) {
	t.Parallel()
	for _, id := range regexp.MustCompile(`\b[A-Z]{2,}-\d+[a-z]?\b`).FindAllString(string(proto.OpenAPI), -1) {
		if !strings.HasPrefix(id, "UTF-") {
			t.Errorf("the document cites %s", id)
		}
	}
}
