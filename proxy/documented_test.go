package proxy_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/proto"
)

// documentedStatuses are the statuses of each operation in the OpenAPI document, by path and method in lower case.
var documentedStatuses = sync.OnceValue(func() map[string]map[string]map[string]bool {
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(proto.OpenAPI, &document); err != nil {
		panic(err)
	}
	all := map[string]map[string]map[string]bool{}
	for path, methods := range document.Paths {
		all[path] = map[string]map[string]bool{}
		for method, operation := range methods {
			all[path][method] = map[string]bool{}
			for status := range operation.Responses {
				all[path][method][status] = true
			}
		}
	}
	return all
})

// checkDocumented fails when a call was answered with a status that the OpenAPI document does not have for its
// operation. Every call of the tests of this package is checked.
func checkDocumented(t *testing.T, method, path string, status int) {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	asked := strings.Split(path, "/")
	for template, methods := range documentedStatuses() {
		statuses := methods[strings.ToLower(method)]
		if statuses != nil && isOfTemplate(asked, strings.Split(template, "/")) && !statuses[strconv.Itoa(status)] {
			t.Errorf("%s %s is answered %d, which the OpenAPI document does not have for %s", method, path, status, template)
		}
	}
}

func isOfTemplate(asked, template []string) bool {
	if len(asked) != len(template) {
		return false
	}
	for i, segment := range template {
		isVariable := strings.HasPrefix(segment, "{")
		if isVariable && strings.Contains(asked[i], ":") || !isVariable && segment != asked[i] {
			return false
		}
	}
	return true
}
