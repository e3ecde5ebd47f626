package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"redis://h:6379/0":               "redis://h:6379/0",
		"redis://user:s3cret@h:6379/0":   "redis://user:***@h:6379/0",
		"rediss://:s3cret@h":             "rediss://:***@h",
		"redis://user@h":                 "redis://user@h",
		"unix://user:s3cret@/run/r.sock": "unix://user:***@/run/r.sock",
		"redis://:s3c%ret@h":             "redis://***",
		"redis://:s3c/ret@h":             "redis://***",
		"embedded":                       "embedded",
	}
	for store, want := range tests {
		s := settings{Store: store}
		got := s.shown()["store"]
		if got != want || strings.Contains(got, "s3c") {
			t.Errorf("%s: got %q, want %q", store, got, want)
		}
	}
}

func TestRedisURLErrorsKeepTheSecret(t *testing.T) {
	t.Parallel()
	stores := []string{
		"redis://:s3c%ret@h", "redis://:s3c/ret@h", "redis://u:s3cret@", "rediss://u:s3cret@:x", "s3://u:s3cret@h",
		"redis+cluster://u:s3cret@h", "redis://u:s3c ret@h", "unix://u:s3cret@",
	}
	for _, store := range stores {
		if _, err := redisURL(store, ""); err == nil || strings.Contains(err.Error(), "cret") || strings.Contains(err.Error(), "%re") {
			t.Errorf("%s: got %v, want an error without the password", store, err)
		}
	}
}

func TestRedisPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("p@ss/wörd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings{RedisPasswordFile: file}
	password, err := s.redisPassword()
	if err != nil || password != "p@ss/wörd" {
		t.Fatalf("from the file: got %q, %v", password, err)
	}
	for store, want := range map[string]string{
		"redis://h:1/2":    "redis://:p%40ss%2Fw%C3%B6rd@h:1/2",
		"redis://user@h":   "redis://user:p%40ss%2Fw%C3%B6rd@h",
		"unix:///run/sock": "unix://:p%40ss%2Fw%C3%B6rd@/run/sock",
	} {
		if got, err := redisURL(store, password); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", store, got, err, want)
		}
	}
	if _, err := redisURL("redis://u:s3cret@h", password); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("two passwords: got %v, want an error without them", err)
	}
	t.Setenv(passwordEnv, "direct")
	if _, err := s.redisPassword(); err == nil {
		t.Error("a file and a variable: got no error")
	}
	if password, err := (&settings{}).redisPassword(); err != nil || password != "direct" {
		t.Errorf("from the variable: got %q, %v", password, err)
	}
}
