package settings

import (
	"strings"
	"testing"
)

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"redis://h:6379/0":               "redis://h:6379/0",
		"redis://user:s3cret@h:6379/0":   "redis://user:***@h:6379/0",
		"rediss://:s3cret@h":             "rediss://:***@h",
		"redis://s3cret@h":               "redis://***@h",
		"unix://user:s3cret@/run/r.sock": "unix://user:***@/run/r.sock",
		"unix:///run/r.sock?db=3":        "unix:///run/r.sock?***",
		"redis://h/0?x=s3cret":           "redis://h/0?***",
		"redis://[::1]:6379":             "redis://[::1]:6379",
		"redis://:s3c%ret@h":             "redis://***",
		"redis://:s3c/ret@h":             "redis://***",
		"redis://:12#s3cret@h":           "redis://***",
		"embedded":                       "embedded",
		"s3cret":                         "***",
	}
	for store, want := range tests {
		s := Settings{StoreSettings: StoreSettings{Store: store}}
		got := s.Shown()["store"]
		if got != want || strings.Contains(got, "s3c") {
			t.Errorf("%s: got %q, want %q", store, got, want)
		}
	}
}
