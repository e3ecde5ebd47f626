package wireerror

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"github.com/sidebus/sidebus/proto"
	"github.com/sidebus/sidebus/semantics"
)

// The OpenAPI document has each reason where the sidecar answers it: with the status of the table.
func TestERR_1_OpenAPIHasEveryReasonWithItsStatus(t *testing.T) {
	t.Parallel()
	var document struct {
		OpenAPI    string
		Components struct {
			Responses map[string]struct{ Description string }
		}
		Paths map[string]map[string]struct {
			Responses map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(proto.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	if document.OpenAPI != "3.0.3" {
		t.Errorf("the document is of OpenAPI %q", document.OpenAPI)
	}
	for _, code := range semantics.Codes() {
		name := "Failure" + strconv.Itoa(row(code).http)
		if !regexp.MustCompile(`\b` + string(code) + `\b`).MatchString(document.Components.Responses[name].Description) {
			t.Errorf("%s lacks %s: %q", name, code, document.Components.Responses[name].Description)
		}
	}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			for _, status := range []string{"200", "400", "401", "404", "429", "503"} {
				if operation.Responses[status] == nil {
					t.Errorf("%s %s has no %s", method, path, status)
				}
			}
			if operation.Responses["default"] != nil {
				t.Errorf("%s %s has a default, which says nothing", method, path)
			}
		}
	}
}
