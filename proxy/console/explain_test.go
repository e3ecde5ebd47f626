package console

import (
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

func TestTrials(t *testing.T) {
	t.Parallel()
	e, err := trial([]byte(`{"rule":{"name":"big","filter":{"sql":{"expression":"total > 100 AND region = 'eu'"}},"action":{"sql":{"expression":"SET checked = 1"}}},
		"message":{"properties":{"total":120,"region":"us"}}}`))
	if err != nil || e.Matches || len(e.Steps) != 3 || e.Steps[2].Outcome != "FALSE" || e.Steps[2].Seen[0].Value != "'us' (string)" {
		t.Errorf("got %+v, %v", e, err)
	}
	e, err = trial([]byte(`{"rule":{"name":"all","filter":{"all":{}},"action":{"sql":{"expression":"SET checked = 1"}}},"message":{}}`))
	if err != nil || !e.Matches || len(e.Changes) != 2 || e.Changes[0].After != "1 (int64)" {
		t.Errorf("got %+v, %v", e, err)
	}
	e, err = trial([]byte(`{"rule":{"name":"odd","filter":{"sql":{"expression":"1 / n > 0"}}},"message":{"properties":{"n":0}}}`))
	if err != nil || e.Matches || !strings.Contains(e.Failure, "by zero") {
		t.Errorf("got %+v, %v", e, err)
	}
	for body, want := range map[string]semantics.Code{
		`{`: semantics.InvalidArgument,
		`{"rule":{"filter":{"sql":{"expression":"total >"}}},"message":{}}`: semantics.FilterInvalid,
		`{"rule":{"none":1},"message":{}}`:                                  semantics.InvalidArgument,
		`{"rule":{"filter":{"all":{}}},"message":{"text":1}}`:               semantics.InvalidArgument,
	} {
		if _, err := trial([]byte(body)); semantics.CodeOf(err) != want {
			t.Errorf("%s: got %v", strings.TrimSpace(body), err)
		}
	}
}
