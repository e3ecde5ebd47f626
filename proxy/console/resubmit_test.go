package console

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics"
)

// A step is one call of the API, with the credentials of the caller, and the answer has where to go on.
func TestAStepOfAResubmissionIsACallOfTheAPI(t *testing.T) {
	t.Parallel()
	var called []string
	c := consoleOf(queues(1), access.AllowAll{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		called = append(called, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization")+" "+string(body))
		_, _ = io.WriteString(w, `{"results":[{"sequenceNumber":"7"},{"sequenceNumber":"9007199254740993","reason":"ENTITY_FULL"}],"more":true}`)
	}))
	step := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/ui/resubmit", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		return w
	}
	w := step(`{"entity":"news/subscriptions/eu","subQueue":"DEAD_LETTER","how":{"target":"queues/again","newMessageIds":true},"progress":{"total":500}}`)
	want := `{"results":[{"sequenceNumber":"7"},{"sequenceNumber":"9007199254740993","reason":"ENTITY_FULL"}],"progress":{"total":500,"sent":1,"stay":["9007199254740993"]}}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != want {
		t.Errorf("got %d %s, want %s", w.Code, got, want)
	}
	if len(called) != 1 || !strings.HasPrefix(called[0], "POST /v1/topics/news/subscriptions/eu/messages:resubmit Bearer secret ") ||
		!strings.Contains(called[0], `"queues/again"`) || !strings.Contains(called[0], `200`) || strings.Contains(called[0], "sequenceNumbers") {
		t.Errorf("called %q", called)
	}
	if w = step(`{"entity":"q","subQueue":"DEAD_LETTER","progress":{"done":true}}`); w.Code != http.StatusOK || len(called) != 1 {
		t.Errorf("what is done calls again: %d %s", w.Code, w.Body)
	}
	c.config.ReadOnly = true
	w = step(`{"entity":"q","subQueue":"DEAD_LETTER","progress":{"total":5}}`)
	var failure struct{ Reason semantics.Code }
	if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || failure.Reason != semantics.PermissionDenied || len(called) != 1 {
		t.Errorf("a console that only reads: %d %s", w.Code, w.Body)
	}
}
