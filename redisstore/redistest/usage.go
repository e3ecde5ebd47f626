package redistest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Usage is what a server has done since it was started.
type Usage struct {
	Commands int // those of scripts included
	Received int // bytes
}

// Usage returns what the server has done.
func (s *Server) Usage(t testing.TB) (u Usage) {
	t.Helper()
	client := redis.NewClient(ClientOptions(t, s.URL))
	defer client.Close() //nolint:errcheck // nothing depends on it any more
	info, err := client.Info(t.Context(), "commandstats", "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) { // cmdstat_hmget:calls=1,usec=... and total_net_input_bytes:1
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		count, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		n, _ := strconv.Atoi(count)
		switch {
		case strings.HasPrefix(name, "cmdstat_"):
			u.Commands += n
		case name == "total_net_input_bytes":
			u.Received = n
		}
	}
	return u
}
