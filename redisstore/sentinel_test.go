package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/lua"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// hashOf returns the hash by which Redis knows a script.
func hashOf(t *testing.T, name string) string {
	t.Helper()
	all, err := lua.Scripts()
	must(t, err)
	return redis.NewScript(all[name].Text).Hash()
}

// After its primary was killed, a store goes on with the one that the Sentinels choose, which does not know the scripts
// and gets them. While there is none, no outcome
// is unknown but that of calls which the old one had begun.
func TestFailoverBySentinels(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinels(t)
	t.Cleanup(sentinels.Stop)
	s := redistest.Open(t, redisstore.Options{URL: sentinels.URL, DialTimeout: time.Second})
	if _, err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, s)
	watch, err := s.Watch(t.Context(), semantics.Source{Path: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	replica, hash := clientOf(t, sentinels.ReplicaURL()), hashOf(t, "send")
	if replica.ScriptExists(t.Context(), hash).Val()[0] {
		t.Fatal("the replica knows the scripts: this proves nothing")
	}
	sentinels.KillPrimary(t)
	failures := 0
	for {
		_, err := s.Send(t.Context(), "orders", message(1))
		if err == nil {
			break
		}
		failures++
		if semantics.CodeOf(err) != semantics.StoreUnavailable {
			t.Fatalf("during the failover: %v", err)
		}
		if outcome := semantics.AsError(err).Details[semantics.DetailOutcome]; outcome != "" && failures > 1 {
			t.Errorf("try %d of a send has the outcome %s: %v", failures, outcome, err)
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the Sentinels need a second or two
	}
	t.Logf("%d sends failed", failures)
	if !replica.ScriptExists(t.Context(), hash).Val()[0] {
		t.Error("the new primary does not know the script that it has run")
	}
	select {
	case <-watch.C(): // what it watches at the new primary
	case <-time.After(redistest.Patience):
		t.Error("the watch was not told to look")
	}
	if _, err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A primary that dies under traffic is followed by its replica, which gets the scripts and wakes who waits.
func TestSentinelsFailOverUnderTraffic(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinels(t)
	t.Cleanup(sentinels.Stop)
	f := startTraffic(t, sentinels.URL)
	wakes := f.waiting()
	f.awaitSends(100)
	diedAt := sentinels.KillPrimary(t)
	wakes()
	f.awaitSends(100)
	f.end()
	f.wantNothingLost(diedAt)
}

// A Redis that reads its file after a start refuses what it is asked, and has done nothing.
func TestERR_7_LoadingIsRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, durable...)
	t.Cleanup(server.Stop)
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	create(t, s)
	raw := clientOf(t, server.URL)
	const sets = 5000
	_, err := raw.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range sets {
			p.Set(t.Context(), "filler", i, 0)
		}
		return nil
	})
	must(t, err)
	server.Kill()
	over := make(chan struct{})
	go func() {
		defer close(over)
		server.Restart(t, append([]string{"--key-load-delay", "1000"}, durable...)...)
	}()
	refused, sent := 0, int64(0)
	for isOver := false; !isOver; {
		select {
		case <-over:
			isOver = true
		default:
		}
		_, err := s.Send(t.Context(), "orders", message(1))
		switch {
		case err == nil:
			sent++
		case semantics.AsError(err).Details[semantics.DetailCause] == "redis_loading":
			wantUnchanged(t, "send", err, "redis_loading")
			refused++
		case semantics.IsOutcomeUnknown(err):
			t.Fatalf("send to a Redis that starts: %v", err)
		}
	}
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	if refused == 0 || counts.Active != sent {
		t.Errorf("%d sends were refused while it loaded; %d messages are there, %d were sent", refused, counts.Active, sent)
	}
}

// A server of another kind than --store names is refused with what it is, and Sentinels that do not know the primary
// are not taken for servers that are away.
func TestCheckTellsOtherKindsOfServers(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinels(t)
	t.Cleanup(sentinels.Stop)
	all, _, _ := strings.Cut(strings.TrimPrefix(sentinels.URL, "redis+sentinel://"), "/")
	sentinel, _, _ := strings.Cut(all, ",")
	single := "127.0.0.1:" + redistest.FreePort(t)
	server := redistest.Start(t, "--bind", "127.0.0.1", "--port", strings.TrimPrefix(single, "127.0.0.1:"))
	t.Cleanup(server.Stop)
	for url, want := range map[string]struct {
		code semantics.Code
		text string
	}{
		"redis+sentinel://" + all + "/other":       {semantics.StoreUnavailable, "no primary of the name"},
		"redis+sentinel://" + single + "/mymaster": {semantics.StoreUnavailable, "is not a Sentinel"},
		"redis://" + sentinel:                      {semantics.PreconditionFailed, "is a Sentinel"},
		"redis+cluster://" + sentinel:              {semantics.PreconditionFailed, "not a node of a Redis Cluster"},
		"redis+cluster://" + single:                {semantics.PreconditionFailed, "not a node of a Redis Cluster"},
	} {
		s := redistest.Open(t, redisstore.Options{URL: url})
		_, err := s.Check(t.Context())
		if semantics.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: got %v, want %s with %q", url, err, want.code, want.text)
		}
		err = s.Examine(t.Context(), semantics.Examination{}, func(f semantics.Finding) { t.Errorf("%s: found %v", url, f) })
		if semantics.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: the examination ends with %v, want %s with %q", url, err, want.code, want.text)
		}
	}
	found := 0
	must(t, redistest.Open(t, redisstore.Options{URL: sentinels.URL}).Examine(t.Context(), semantics.Examination{}, func(f semantics.Finding) {
		if f.Subject == "version" && strings.HasPrefix(f.Where, "mymaster of Sentinels 127.0.0.1:") {
			found++
		}
	}))
	if found != 1 {
		t.Errorf("found %d servers by the name that the Sentinels know, want 1", found)
	}
}
