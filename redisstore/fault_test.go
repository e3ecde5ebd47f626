package redisstore_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

var orders = semantics.Source{Path: "orders"}

func command(t *testing.T, url string, args ...any) any {
	t.Helper()
	options := redistest.ClientOptions(t, url)
	client := redis.NewClient(options)
	defer client.Close()
	result, err := client.Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return result
}

func create(t *testing.T, s semantics.Store) {
	t.Helper()
	options := semantics.DefaultOptions()
	if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
}

func message(size int) []*semantics.Message {
	return []*semantics.Message{{MessageID: "m", Body: make([]byte, size)}}
}

func receiveOne(t *testing.T, s semantics.Store) *semantics.Received {
	t.Helper()
	batch, err := s.Receive(t.Context(), orders, 1, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 1 {
		t.Fatalf("receive: %d messages, %v", len(batch.Messages), err)
	}
	return batch.Messages[0]
}

// A full Redis refuses what puts messages in, as something that may pass, and lets out what is in there.
func TestERR_7_FullRedisRefusesSendsAndDrains(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	create(t, s)
	for range 3 {
		if _, err := s.Send(t.Context(), "orders", message(1000)); err != nil {
			t.Fatal(err)
		}
	}
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")

	_, err := s.Send(t.Context(), "orders", message(1000))
	e := semantics.AsError(err)
	if err == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailCause] != "redis_oom" || e.Details[semantics.DetailOutcome] != "" {
		t.Fatalf("send to a full Redis: %v %v", err, e)
	}
	for _, verb := range []func([]semantics.LockToken) ([]semantics.Code, error){
		func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Complete(t.Context(), orders, tokens)
		},
		func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.DeadLetter(t.Context(), orders, tokens, semantics.DeadLetterTexts{}, nil)
		},
		func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Abandon(t.Context(), orders, tokens, semantics.AbandonOptions{})
		},
	} {
		codes, err := verb([]semantics.LockToken{receiveOne(t, s).LockToken})
		if err != nil || codes[0] != "" {
			t.Fatalf("settling in a full Redis: %v %v", codes, err)
		}
	}
	if counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil || counts.Available != 1 || counts.DeadLetter != 1 {
		t.Errorf("counts %+v, %v", counts, err)
	}
	if err := s.DeleteEntity(t.Context(), semantics.QueueKind, "orders"); err != nil {
		t.Error(err)
	}
}

func TestScriptFlushIsHealed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	create(t, s)
	command(t, server.URL, "SCRIPT", "FLUSH")
	if _, err := s.Send(t.Context(), "orders", message(1)); err != nil {
		t.Fatal(err)
	}
	command(t, server.URL, "SCRIPT", "FLUSH")
	receiveOne(t, s)
}

// durable are the arguments of a Redis whose answers survive its death at once: with everysec and a busy disk it may
// lose what it was about to write.
var durable = []string{"--appendfsync", "always"}

// What was acknowledged survives a killed Redis process (AOF), and its lock too.
func TestSEND_1_AcknowledgedSurvivesRedisKill(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, durable...)
	defer server.Stop()
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	create(t, s)
	for range 50 {
		if _, err := s.Send(t.Context(), "orders", message(100)); err != nil {
			t.Fatal(err)
		}
	}
	held := receiveOne(t, s)
	server.Kill()
	_, err := s.Send(t.Context(), "orders", message(100))
	if code := semantics.CodeOf(err); code != semantics.StoreUnavailable {
		t.Errorf("send without Redis: %v", err)
	}
	server.Restart(t, durable...)
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.Active != 50 || counts.Locked != 1 {
		t.Fatalf("after restart: %+v, %v", counts, err)
	}
	codes, err := s.Complete(t.Context(), orders, []semantics.LockToken{held.LockToken})
	if err != nil || codes[0] != "" {
		t.Errorf("complete after restart: %v %v", codes, err)
	}
}

// An answer that is lost after the script ran is reported as unknown, and the script has run exactly once: nothing in
// the client repeats it.
func TestERR_6_LostAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	url := redistest.URL(t)
	if !strings.HasPrefix(url, "unix://") {
		url = redistest.Start(t).URL
	}
	cut := redistest.OpenCutter(t, url)
	namespace := redistest.Namespace()
	direct := redistest.Open(t, redisstore.Options{URL: url, Namespace: namespace})
	s := redistest.Open(t, redisstore.Options{URL: cut.URL, Namespace: namespace})
	if _, err := direct.Check(t.Context()); err != nil { // loads the scripts, so that no first try is lost
		t.Fatal(err)
	}
	create(t, s)
	if _, err := s.Send(t.Context(), "orders", message(10)); err != nil {
		t.Fatal(err)
	}

	cut.Deaf.Store(true)
	_, err := s.Send(t.Context(), "orders", message(10))
	wantUnknown(t, "send", err)
	counts, err := direct.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.Active != 2 {
		t.Fatalf("after one lost answer: %+v, %v; want 2 messages", counts, err)
	}

	token := receiveOne(t, direct).LockToken
	cut.Deaf.Store(false)
	if _, err := s.Peek(t.Context(), orders, 1, 1, semantics.ShowAll); err != nil { // a connection that stands
		t.Fatal(err)
	}
	cut.Deaf.Store(true)
	_, err = s.Complete(t.Context(), orders, []semantics.LockToken{token})
	wantUnknown(t, "complete", err)
	cut.Deaf.Store(false)
	codes, err := s.Complete(t.Context(), orders, []semantics.LockToken{token})
	if err != nil || codes[0] != semantics.MessageLockLost {
		t.Errorf("repeated complete: %v %v, want MESSAGE_LOCK_LOST", codes, err)
	}

	token = receiveOne(t, direct).LockToken
	cut.Deaf.Store(true)
	_, err = s.CompleteAndReceive(t.Context(), orders, []semantics.LockToken{token}, 1, semantics.RegisterNever)
	wantUnknown(t, "complete and receive", err)
	cut.Deaf.Store(false)
	next, err := s.CompleteAndReceive(t.Context(), orders, []semantics.LockToken{token}, 1, semantics.RegisterNever)
	if err != nil || next.Codes[0] != semantics.MessageLockLost || next.Failure != nil {
		t.Errorf("repeated complete and receive: %+v %v, want MESSAGE_LOCK_LOST", next, err)
	}
}

func wantUnknown(t *testing.T, what string, err error) {
	t.Helper()
	e := semantics.AsError(err)
	if err == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailOutcome] != semantics.OutcomeUnknown {
		t.Errorf("%s: got %v, want STORE_UNAVAILABLE with outcome unknown", what, err)
	}
}

// A Redis that cannot be reached was not changed, and the error says so.
func TestERR_6_UnreachableIsNotUnknown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s := redistest.Open(t, redisstore.Options{URL: "redis://" + address})
	_, err = s.Send(t.Context(), "orders", message(10))
	e := semantics.AsError(err)
	if err == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailOutcome] != "" {
		t.Errorf("got %v %v", err, e)
	}
}

// A receive that waits learns of a message that another sidecar sends, also after Redis was restarted meanwhile.
func TestWaitSurvivesRedisRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, durable...)
	defer server.Stop()
	namespace := redistest.Namespace()
	here := redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: namespace})
	there := redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: namespace})
	create(t, here)
	watch, err := here.Watch(t.Context(), orders)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	batch, err := here.Receive(t.Context(), orders, 1, semantics.RegisterIfEmpty)
	if err != nil || len(batch.Messages) != 0 {
		t.Fatal(batch, err)
	}
	server.Kill()
	server.Restart(t, durable...)
	if _, err := there.Send(t.Context(), "orders", message(1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	select {
	case <-watch.C(): // the send's, or the one that a new connection makes
	case <-ctx.Done():
		t.Fatal("never woken")
	}
	receiveOne(t, here)
}

// A watch that Redis never confirms is a store that cannot be reached, not a caller that went away.
func TestWatchWithoutRedis(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s := redistest.Open(t, redisstore.Options{URL: "redis://" + address})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Watch(ctx, orders); semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("got %v, want STORE_UNAVAILABLE", err)
	}
}
