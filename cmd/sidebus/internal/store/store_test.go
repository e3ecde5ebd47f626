package store

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
)

// planted gives addresses of a store with a secret in every place where people put one, rightly or wrongly. A piece of
// it is "s3cr" before and "t9x" behind the character that may end a part of the address early.
func planted() []string {
	var all []string
	for _, middle := range []string{"", "#", "/", "?", "@", "%", "%40", "%zz", ":", " ", "\\", "&", "=", "\x00"} {
		secret := "s3cr" + middle + "t9x"
		forms := []string{
			"redis://:S@h:6379/0", "redis://u:S@h:6379", "rediss://u:S@h", "unix://:S@/run/r.sock", "unix:///run/r.sock?password=S", "redis://h:6379/0?password=S",
			"redis://h?S=1", "redis://h#S", "redis://h:6379/S", "redis+sentinel://u:S@h/m", "redis+cluster://:S@h",
			"redis+sentinel://u:S@h:1,i:2/m/0", "rediss+cluster://:S@h:1,i:2", "s3://u:S@h", "S://h",
			"u:S@redis://h", ":S@h:6379", "u:S@h", "S", "redis:/u:S@h", "redis:u:S@h", "redis://u:S@", "redis://u:S@:x", "redis://u:S@h:99999999",
			" redis://u:S@h", "Redis://u:S@h", "embedded:S", "memory://S",
		}
		if middle != ":" { // then it would be a user and a password
			forms = append(forms, "redis://S@h", "redis://S:@h", "unix://S@/run/r.sock")
		}
		for _, form := range forms {
			all = append(all, strings.ReplaceAll(form, "S", secret))
		}
	}
	return all
}

// shows reports whether a text has a piece of the secret of planted.
func shows(text string) bool { return strings.Contains(text, "s3cr") || strings.Contains(text, "t9x") }

func TestAUTH_3_NoEchoOfAStoreShowsItsSecret(t *testing.T) {
	t.Parallel()
	for _, store := range planted() {
		s := settings.Settings{StoreSettings: settings.StoreSettings{Store: store}}
		for what, text := range s.Shown() {
			if shows(text) {
				t.Errorf("%q: --%s is shown as %q", store, what, text)
			}
		}
		address, err := redisURL(store, "")
		if err == nil {
			_, err = openRedis(&s, address, settings.MaskStore(store), Observer{}, slog.New(slog.DiscardHandler))
		}
		if err != nil && shows(err.Error()) {
			t.Errorf("%q: got the error %q", store, err)
		}
	}
}

func TestRedisPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("p@ss/wörd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings.Settings{StoreSettings: settings.StoreSettings{RedisPasswordFile: file}}
	password, err := s.RedisPassword()
	if err != nil || password != "p@ss/wörd" {
		t.Fatalf("from the file: got %q, %v", password, err)
	}
	for store, want := range map[string]string{
		"redis://h:1/2":    "redis://:p%40ss%2Fw%C3%B6rd@h:1/2",
		"redis://user@h":   "redis://user:p%40ss%2Fw%C3%B6rd@h",
		"unix:///run/sock": "unix://:p%40ss%2Fw%C3%B6rd@/run/sock",

		"redis+sentinel://user@h:1,[::1]:2/m/0": "redis+sentinel://user:p%40ss%2Fw%C3%B6rd@h:1,[::1]:2/m/0",
		"rediss+cluster://h:1,i:2":              "rediss+cluster://:p%40ss%2Fw%C3%B6rd@h:1,i:2",
	} {
		if got, err := redisURL(store, password); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", store, got, err, want)
		}
	}
	if _, err := redisURL("redis://u:s3cret@h", password); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("two passwords: got %v, want an error without them", err)
	}
	t.Setenv(settings.PasswordVariable, "direct")
	if _, err := s.RedisPassword(); err == nil {
		t.Error("a file and a variable: got no error")
	}
	if password, err := (&settings.Settings{}).RedisPassword(); err != nil || password != "direct" {
		t.Errorf("from the variable: got %q, %v", password, err)
	}
}

// An address that cannot be used is refused with what is wrong with it.
func TestAddressFaults(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"redis+sentinel://h:1":           "must have the name of the primary",
		"redis+sentinel://h:1/":          "must have the name of the primary",
		"redis+sentinel://h:1/m/x":       "at most a database",
		"redis+sentinel://h:1/m/1/2":     "at most a database",
		"redis+sentinel://h:1/a%20b":     "letters, digits",
		"redis+sentinel://h/m":           "a host and a port for each server",
		"redis+sentinel://h:1,/m":        "a host and a port for each server",
		"redis+sentinel://h:x/m":         "a host and a port for each server",
		"redis+sentinel://h:1,i:99999/m": "has a port out of range, must be 1 to 65535",
		"redis+sentinel://h:1/m?db=1":    "must have no ? and no #",
		"redis+sentinel://u:p@q@h:1/m":   "special characters in user and password must be percent-encoded",
		"redis+sentinel://u@h:1/m":       "has a user and no password",
		"redis+sentinel://u:@h:1/m":      "has a user and no password",
		"redis+sentinels://h:1/m":        "must begin with",
		"redis+cluster://h:1/0":          "a cluster, which has no databases",
		"redis+cluster://h:1/":           "a cluster, which has no databases",
		"redis+cluster://":               "a host and a port for each server",
		"redis+cluster://h:0":            "has a port out of range",
		"redis+cluster://h:1?x=1":        "must have no ? and no #",
		"redis+cluster://u@h:1":          "has a user and no password",
		"redis://u@h:1":                  "has a user and no password",
		"redis://h:1,i:2":                "has several hosts",
		"redis://u:p@h:1,i:2/0":          "has several hosts",
		"redis://h:0":                    "has a port out of range",
		"rediss://h:65536":               "has a port out of range",
	} {
		if _, err := redisURL(address, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", address, err, want)
		}
	}
	for _, address := range []string{
		"redis://h", "redis://h:65535/1", "redis://:p@h", "redis://u:p@[::1]:6379", "unix:///run/sock",
		"redis+sentinel://h:1,i:2/m", "redis+sentinel://u:p%40@[::1]:1/my.master_1/0", "rediss+cluster://:p@h:1,i:65535",
	} {
		if got, err := redisURL(address, ""); err != nil || got != address {
			t.Errorf("%s: got %q, %v", address, got, err)
		}
	}
}
