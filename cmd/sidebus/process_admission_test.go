package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// The flags reach the door of the binary.
func TestAUTH_3_AllowedHostsOfTheBinary(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory", "--allowed-hosts", "bus")
	for host, want := range map[string]int{"bus:1": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.HTTP+"/v1/queues", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host, request.Close = host, true
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: got %d, want %d", host, response.StatusCode, want)
		}
	}
	if a := s.Probe(t.Context(), http.MethodGet, "/config"); !strings.Contains(a.Text, `"allowed-hosts":"bus"`) || !strings.Contains(a.Text, `"max-connections":"5000"`) {
		t.Errorf("/config: got %s", a.Text)
	}
}
