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

// Every route of http.yaml is in the document, with its method.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	t.Parallel()
	var document struct {
		Info  struct{ Title string }
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(proto.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	if document.Info.Title != "Sidebus" {
		t.Errorf("title is %q", document.Info.Title)
	}
	rules, err := os.ReadFile("http.yaml")
	if err != nil {
		t.Fatal(err)
	}
	routes := regexp.MustCompile(`(get|put|post|patch|delete): "([^"]+)"`).FindAllStringSubmatch(string(rules), -1)
	if len(routes) != 31 {
		t.Fatalf("%d routes, want 31", len(routes))
	}
	for _, route := range routes {
		path := regexp.MustCompile(`\{(\w+)=[^}]*\}`).ReplaceAllString(route[2], "{$1}")
		found := false
		for other, methods := range document.Paths {
			if strings.EqualFold(other, path) && methods[route[1]] != nil {
				found = true
			}
		}
		if !found {
			t.Errorf("no %s %s", route[1], path)
		}
	}
}
