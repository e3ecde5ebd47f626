package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWhichEntityACallChanges(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		"PUT /v1/queues/orders":                          "orders",
		"DELETE /v1/queues/shop%2Forders":                "shop/orders",
		"PATCH /v1/topics/press":                         "press",
		"PUT /v1/topics/a%2Fb/subscriptions/all":         "a/b/Subscriptions/all",
		"PUT /v1/topics/press/subscriptions/all/rules/r": "",
		"POST /v1/queues/orders/messages:send":           "",
		"POST /v1/queues":                                "",
		"GET /v1/queues/orders":                          "",
	} {
		method, path, _ := strings.Cut(call, " ")
		got, changes := changedBy(httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		if got != want || changes != (want != "") {
			t.Errorf("%s: got %q, %t", call, got, changes)
		}
	}
}
