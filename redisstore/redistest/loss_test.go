package redistest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Each loss takes what came after the mark, and no more than it should; and a server can lose again and again.
func TestLosses(t *testing.T) {
	t.Parallel()
	server := redistest.StartForgetful(t)
	options := redistest.ClientOptions(t, server.URL)
	client := redis.NewClient(options)
	defer client.Close()
	increase := func(name string) {
		t.Helper()
		for range 10 {
			if err := client.Eval(t.Context(), `return redis.call("INCR", KEYS[1])`, []string{name}).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, loss := range append(redistest.Losses, redistest.Losses...) {
		before, after := fmt.Sprintf("before%d", i), fmt.Sprintf("after%d", i)
		server.Prepare(t, loss)
		increase(before)
		server.Mark(t, loss)
		increase(after)
		server.Lose(t, loss)
		wantBefore, wantAfter := "10", "10"
		if loss != redistest.ScriptFlush {
			wantAfter = ""
		}
		if loss.ForgetsAll() {
			wantBefore = ""
		}
		var got [2]string
		for j, name := range []string{before, after} {
			for range 100 { // old connections fail once each
				var err error
				if got[j], err = client.Get(t.Context(), name).Result(); err == nil || errors.Is(err, redis.Nil) {
					break
				}
			}
		}
		if got != [2]string{wantBefore, wantAfter} {
			t.Errorf("%s: got %q, want %q", loss, got, [2]string{wantBefore, wantAfter})
		}
	}
}
