package redisstore_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// commands counts the commands that Redis carries out for a call, those of scripts included.
func commands(t *testing.T, c *redis.Client, call func()) int {
	t.Helper()
	must(t, c.ConfigResetStat(t.Context()).Err())
	call()
	stats, err := c.Info(t.Context(), "commandstats").Result()
	must(t, err)
	n := 0
	for line := range strings.Lines(stats) { // cmdstat_hmget:calls=1,usec=...
		name, values, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		calls, _, _ := strings.Cut(values, ",")
		if many, err := strconv.Atoi(calls); err == nil && !strings.HasPrefix(name, "config") {
			n += many
		}
	}
	return n
}

// The common calls on what forwards nothing cost no command for the sake of what forwards. Who changes these numbers
// upwards says why.
func TestCommonCallsInFewCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s, raw := redistest.Open(t, redisstore.Options{URL: server.URL}), clientOf(t, server.URL)
	if _, err := s.Check(t.Context()); err != nil { // loads the scripts
		t.Fatal(err)
	}
	must(t, makeQueue(t, s, "orders"))
	must(t, createTopic(t, s))
	must(t, subscribe(t, s, "eu"))
	routes, err := s.Routes(t.Context(), "news")
	must(t, err)
	var held *semantics.Received
	calls := []struct {
		what string
		want int
		call func() error
	}{
		{"send", 7, func() error {
			_, err := s.Send(t.Context(), "orders", message(10))
			return err
		}},
		{"receive", 14, func() error {
			held = receiveOne(t, s)
			return nil
		}},
		{"complete", 10, func() error {
			_, err := s.Complete(t.Context(), orders, []semantics.LockToken{held.LockToken})
			return err
		}},
		{"publish", 12, func() error {
			m := message(10)[0]
			return s.Publish(t.Context(), "news", routes.Version, [][]semantics.Publication{{{Message: m, Copies: copiesOf(m, "eu")}}})[0].Err
		}},
	}
	for _, c := range calls {
		if got := commands(t, raw, func() { must(t, c.call()) }); got != c.want {
			t.Errorf("%s takes %d commands, want %d", c.what, got, c.want)
		}
	}
}
