package httpapi

import "testing"

func TestPathsOfTheAdminAddress(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/ui/": true, "/ui": true, "/metrics": true, "/healthz": true, "/healthz/ready": true, "/debug/pprof/heap": true,
		"/": false, "/v1/queues": false, "/uis": false, "/v1/ui": false,
	} {
		if got := isOfAdminAddress(path); got != want {
			t.Errorf("%s: got %t, want %t", path, got, want)
		}
	}
}

func TestERR_1_NearestRoute(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/queues/orders/messages:receives":       "/v1/queues/{queue}/messages:receive",
		"/v1/queues/orders:send":                    "/v1/queues/{queue}",
		"/v1/queue/orders/messages:send":            "/v1/queues/{queue}/messages:send",
		"/v1/topics/t/subscription/s/messages:peek": "/v1/topics/{topic}/subscriptions/{subscription}/messages:peek",
		"/v2/queues":                             "/v1/queues",
		"/queues/orders/messages:complete":       "/v1/queues/{queue}/messages:complete",
		"/v1/topics/t/subscriptions/s/rules/r/x": "/v1/topics/{topic}/subscriptions/{subscription}/rules/{rule}",
		"/":                                      "/v1/queues",
		"/v1/queues/a%2Fb/session:accept":        "/v1/queues/{queue}/sessions:accept",
		"/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u": "/v1/topics/{topic}/subscriptions/{subscription}/rules/{rule}",
	} {
		if got := nearestRoute(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
