package redisstore_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/sealed"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// payloadKeys returns keys of the given names, of which the first seals.
func payloadKeys(t testing.TB, names ...string) func() *sealed.Keys {
	t.Helper()
	return payloadKeysOf(t, 0, names...)
}

// losing returns keys to which others are lost.
func losing(t testing.TB, keys func() *sealed.Keys, names ...string) func() *sealed.Keys {
	t.Helper()
	with := keys().Losing(names...)
	return func() *sealed.Keys { return with }
}

// payloadKeysOf is payloadKeys with other secrets.
func payloadKeysOf(t testing.TB, secret byte, names ...string) func() *sealed.Keys {
	t.Helper()
	var all []*sealed.Key
	for _, name := range names {
		key, err := sealed.NewKey(name, bytes.Repeat([]byte{name[0] ^ secret}, sealed.KeySize))
		must(t, err)
		all = append(all, key)
	}
	keys, err := sealed.NewKeys(names[0], all...)
	must(t, err)
	return func() *sealed.Keys { return keys }
}

// sealedSidecar is a sidecar with payload keys, on a namespace that it shares with others.
type sealedSidecar struct {
	*redisstore.Store
	*broker.Broker
}

func openSealed(t *testing.T, options redisstore.Options, keys func() *sealed.Keys) sealedSidecar {
	t.Helper()
	if keys == nil {
		keys = func() *sealed.Keys { return nil } // also where all stores have keys: see redistest
	}
	options.PayloadKeys = keys
	s := redistest.Open(t, options)
	b := brokerOver(s)
	t.Cleanup(b.Close)
	return sealedSidecar{s, b}
}

// take receives up to n messages of a source, which it leaves locked, and returns their bodies.
func (s sealedSidecar) take(t *testing.T, source semantics.Source, n int) ([]*semantics.Received, error) {
	t.Helper()
	d, err := s.Broker.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: n})
	if err != nil {
		return nil, err
	}
	return d.Messages, nil
}

func bodies(messages []*semantics.Received) string {
	var all []string
	for _, m := range messages {
		all = append(all, string(m.Body))
	}
	return strings.Join(all, " ")
}

const secretBody = "s3cret-body-of-a-message"

// everyWay sends a secret on every way into the store and moves it on every way within, so that it is in every key that
// has messages or states.
func everyWay(t *testing.T, s sealedSidecar, clock *storetest.Clock) {
	t.Helper()
	ctx := t.Context()
	secret := func(session string) *semantics.Message {
		return &semantics.Message{SessionID: session, Body: []byte(secretBody), Properties: map[string]semantics.Value{"clear": semantics.String("cl3ar")}}
	}
	options := semantics.DefaultOptions()
	must(t, makeQueue(t, s.Store, "archive"))
	must(t, makeQueue(t, s.Store, "orders"))
	must(t, makeQueue(t, s.Store, "keyed", func(o *semantics.Options) { o.RequiresDuplicateDetection = true }))
	must(t, makeQueue(t, s.Store, "onward", func(o *semantics.Options) { o.ForwardTo = "archive" }))
	must(t, makeQueue(t, s.Store, "parts", func(o *semantics.Options) { o.RequiresSession = true }))
	_, _, err := s.Store.CreateEntity(ctx, semantics.TopicKind, "news", options)
	must(t, err)
	for _, name := range []string{"a", "b", "c"} {
		_, _, err = s.Store.CreateSubscription(ctx, "news/subscriptions/"+name, options, []semantics.Rule{everything})
		must(t, err)
	}
	send := func(path string, isTopic bool, messages ...*semantics.Message) {
		t.Helper()
		_, err := s.Broker.Send(ctx, semantics.Target{Path: path, IsTopic: isTopic}, messages)
		must(t, err)
	}
	for _, path := range []string{"orders", "keyed", "onward"} {
		send(path, false, secret(""))
		send(path, false, secret(""), secret(""), secret(""))
	}
	send("parts", false, secret("x"), secret("x"))
	send("news", true, secret(""))
	send("news", true, secret(""), secret(""))
	later := secret("")
	later.ScheduledAt = clock.Now().Add(time.Hour)
	send("orders", false, later)
	atTopic := *later
	send("news", true, &atTopic)
	must(t, s.Store.SendOnce(ctx, "orders", semantics.Once{RequestID: "r", Digest: "d"}, []*semantics.Message{secret("")}).Err)

	session, err := s.Store.AcceptSession(ctx, "parts", "x")
	must(t, err)
	held := semantics.Source{Path: "parts", SessionLock: session.Lock}
	_, err = s.Store.SetSessionState(ctx, held, []byte(secretBody), nil)
	must(t, err)
	outcome := s.Store.Transact(ctx, nil, []semantics.Operation{
		{Verb: semantics.OperationSetState, Source: held, State: []byte(secretBody)},
	})
	must(t, outcome.Err)
	outcome = s.Store.Transact(ctx, nil, []semantics.Operation{
		{Verb: semantics.OperationSend, Source: orders, Messages: []*semantics.Message{secret("")}},
	})
	must(t, outcome.Err)

	got, err := s.take(t, orders, 3)
	if err != nil || bodies(got) != strings.Repeat(secretBody+" ", 2)+secretBody {
		t.Fatalf("got %q, %v", bodies(got), err)
	}
	_, err = s.Broker.DeadLetter(ctx, orders, tokensOf(got[:2]), broker.DeadLetterOptions{Properties: map[string]semantics.Value{"p": semantics.Int64(1)}})
	must(t, err)
	_, err = s.Broker.Abandon(ctx, orders, tokensOf(got[2:]), semantics.AbandonOptions{Properties: map[string]semantics.Value{"p": semantics.Int64(1)}})
	must(t, err)
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	_, _, err = s.Broker.Resubmit(ctx, dead, broker.ResubmitOptions{Max: 1, NewMessageIDs: true, Target: "archive"})
	must(t, err)
	must(t, s.Store.SweepOnce(ctx, s.Broker)) // forwards
	if got, err = s.take(t, semantics.Source{Path: "archive"}, 10); err != nil || len(got) != 5 || strings.Count(bodies(got), secretBody) != 5 {
		t.Fatalf("archive has %d, %q, %v", len(got), bodies(got), err)
	}
	clock.Advance(2 * time.Hour)
	must(t, s.Store.SweepOnce(ctx, s.Broker)) // what is scheduled
	for _, path := range []string{"news/subscriptions/a", "news/subscriptions/c"} {
		if got, err = s.take(t, semantics.Source{Path: path}, 10); err != nil || strings.Count(bodies(got), secretBody) != 4 {
			t.Fatalf("%s has %q, %v", path, bodies(got), err)
		}
	}
	if peeked, err := s.Broker.Peek(ctx, dead, 1, 10, semantics.ShowAll); err != nil || bodies(peeked) != secretBody {
		t.Fatalf("peek: %q, %v", bodies(peeked), err)
	}
	if state, err := s.Store.AcceptSession(ctx, "parts", "x"); err != nil || string(state.State.Data) != secretBody {
		t.Fatalf("the state is %+v, %v", state, err)
	}
}

// dumpAll returns all that a Redis has: every key with its values, and the files that it writes.
func dumpAll(t *testing.T, client *redis.Client, folder string) string {
	t.Helper()
	ctx, all := t.Context(), &strings.Builder{}
	keys, err := client.Keys(ctx, "*").Result()
	must(t, err)
	for _, key := range keys {
		kind, err := client.Type(ctx, key).Result()
		must(t, err)
		read := map[string][]any{
			"stream": {"XRANGE", key, "-", "+"}, "hash": {"HGETALL", key}, "zset": {"ZRANGE", key, 0, -1},
			"list": {"LRANGE", key, 0, -1}, "set": {"SMEMBERS", key}, "string": {"GET", key},
		}[kind]
		value, err := client.Do(ctx, read...).Result()
		must(t, err)
		fmt.Fprintf(all, "%s %v\n", key, value)
	}
	files := 0
	must(t, filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			must(t, err)
			all.Write(text)
			files++
		}
		return err
	}))
	if len(keys) < 10 || files == 0 {
		t.Fatalf("the dump has %d keys and %d files", len(keys), files)
	}
	return all.String()
}

// Redis has no body and no state, in no key and in no file; without payload keys it has them. What is not encrypted is
// there in both.
func TestCRYPT_1_NoBodyInRedis(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]func() *sealed.Keys{"sealed": payloadKeys(t, "new", "old"), "plain": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, clock := t.TempDir(), storetest.NewClock()
			server := redistest.Start(t, "--dir", folder, "--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no")
			t.Cleanup(server.Stop)
			everyWay(t, openSealed(t, redisstore.Options{URL: server.URL, Namespace: "default", Now: clock.Now}, keys), clock)
			client := redis.NewClient(redistest.ClientOptions(t, server.URL))
			defer client.Close()
			auditor := audit.New(client, "default")
			must(t, auditor.AuditAll(context.WithoutCancel(t.Context())))
			text := dumpAll(t, client, folder)
			if !strings.Contains(text, "cl3ar") {
				t.Error("the dump has no properties, so it cannot show that it has no bodies")
			}
			if has := strings.Contains(text, "s3cret"); has != (keys == nil) {
				t.Errorf("the dump has the body: %t", has)
			}
			if has := strings.Contains(text, "\x03new"); has != (keys != nil) {
				t.Errorf("the dump has the name of the key: %t", has)
			}
		})
	}
}

// Two sidecars change to another key in either order; each receives what the other one sends, and what was sent before.
func TestCRYPT_3_RotationWithTwoSidecars(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	plain := openSealed(t, options, nil)
	must(t, makeQueue(t, plain.Store, "orders"))
	var mine, theirs atomic.Pointer[sealed.Keys]
	a, b := openSealed(t, options, mine.Load), openSealed(t, options, theirs.Load)
	old, both, rotated, alone := payloadKeys(t, "old")(), payloadKeys(t, "old", "new")(), payloadKeys(t, "new", "old")(), payloadKeys(t, "new")()
	send := func(s sealedSidecar, body string) {
		t.Helper()
		_, err := s.Store.Send(t.Context(), "orders", []*semantics.Message{{MessageID: body, Body: []byte(body)}})
		must(t, err)
	}
	takes := func(s sealedSidecar, want string) {
		t.Helper()
		got, err := s.take(t, orders, 10)
		if err != nil || bodies(got) != want {
			t.Fatalf("got %q, %v; want %q", bodies(got), err, want)
		}
		_, err = s.Broker.Complete(t.Context(), orders, tokensOf(got))
		must(t, err)
	}
	send(plain, "before") // CRYPT-3: what was sent before stays readable
	mine.Store(both)
	theirs.Store(both)
	takes(a, "before")
	for _, first := range []sealedSidecar{a, b} {
		second, firsts, seconds := b, &mine, &theirs
		if first == b {
			second, firsts, seconds = a, &theirs, &mine
		}
		firsts.Store(both)
		seconds.Store(both)
		send(first, "1")
		send(second, "2")
		firsts.Store(rotated)
		send(first, "3")
		send(second, "4")
		takes(second, "1 2 3 4")
		send(first, "5")
		send(second, "6")
		seconds.Store(rotated)
		send(second, "7")
		takes(first, "5 6 7")
		firsts.Store(alone)
		seconds.Store(alone)
		send(first, "8")
		takes(second, "8")
	}
	mine.Store(old)
	send(a, "9")
	if _, err := b.take(t, orders, 1); semantics.CodeOf(err) != semantics.PayloadKeyMissing {
		t.Errorf("a key that was retired too early: %v, want PAYLOAD_KEY_MISSING", err)
	}
	theirs.Store(rotated)
	takes(b, "9")
}

func messagesNamed(ids ...string) []*semantics.Message {
	var messages []*semantics.Message
	for _, id := range ids {
		messages = append(messages, &semantics.Message{MessageID: id, Body: []byte("body " + id)})
	}
	return messages
}

// What was changed in Redis is a damaged message: it becomes a dead letter that says so, and no byte of it is handed out.
func TestCRYPT_5_ChangedMessagesAreDamaged(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	s := openSealed(t, options, payloadKeys(t, "new"))
	ctx, client := t.Context(), rawClient(t)
	must(t, makeQueue(t, s.Store, "orders"))
	messages := messagesNamed("1")
	messages[0].Properties = map[string]semantics.Value{"amount": semantics.String("100 EUR")}
	_, err := s.Store.Send(ctx, "orders", messages)
	must(t, err)
	log := "sb:{" + options.Namespace + "/orders}:log"
	entries, err := client.XRange(ctx, log, "-", "+").Result()
	must(t, err)
	must(t, client.Del(ctx, log).Err())
	var values []any
	for field, value := range entries[0].Values {
		values = append(values, field, strings.Replace(value.(string), "100 EUR", "999 EUR", 1))
	}
	must(t, client.XAdd(ctx, &redis.XAddArgs{Stream: log, ID: entries[0].ID, Values: values}).Err())
	if got, err := s.take(t, orders, 1); err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v; want nothing", got, err)
	}
	dead, err := s.Broker.Peek(ctx, semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}, 1, 1, semantics.ShowAll)
	if err != nil || len(dead) != 1 || len(dead[0].Body) != 0 || dead[0].DeadLetterReason != semantics.ReasonUnreadable ||
		!strings.Contains(dead[0].DeadLetterErrorDescription, `sealed with the key "new": it was changed after it was sealed`) {
		t.Errorf("got %+v, %v; want a dead letter that says why", dead, err)
	}
}

// An operator learns which keys are needed: by messages alone, in chunks, with shared bodies and by states; and which are
// missing.
func TestCRYPT_3_ExamineListsTheKeys(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t)), Now: clock.Now}
	ctx := t.Context()
	stores := map[string]sealedSidecar{}
	for _, name := range []string{"alone", "chunk", "shared", "state", "dead"} {
		stores[name] = openSealed(t, options, payloadKeys(t, name))
	}
	s := stores["alone"]
	must(t, makeQueue(t, s.Store, "orders"))
	must(t, makeQueue(t, s.Store, "parts", func(o *semantics.Options) { o.RequiresSession = true }))
	_, _, err := s.Store.CreateEntity(ctx, semantics.TopicKind, "news", semantics.DefaultOptions())
	must(t, err)
	for _, name := range []string{"a", "b"} {
		_, _, err = s.Store.CreateSubscription(ctx, "news/subscriptions/"+name, semantics.DefaultOptions(), []semantics.Rule{everything})
		must(t, err)
	}
	send := func(key string, target semantics.Target, ids ...string) {
		t.Helper()
		_, err := stores[key].Broker.Send(ctx, target, messagesNamed(ids...))
		must(t, err)
	}
	send("dead", semantics.Target{Path: "orders"}, "0")
	got, err := stores["dead"].take(t, orders, 1)
	must(t, err)
	_, err = s.Broker.DeadLetter(ctx, orders, tokensOf(got), broker.DeadLetterOptions{})
	must(t, err)
	send("alone", semantics.Target{Path: "orders"}, "1")
	send("chunk", semantics.Target{Path: "orders"}, "2", "3")
	send("shared", semantics.Target{Path: "news", IsTopic: true}, "4", "5")
	session, err := s.Store.AcceptSession(ctx, "parts", "x")
	must(t, err)
	_, err = stores["state"].Store.SetSessionState(ctx, semantics.Source{Path: "parts", SessionLock: session.Lock}, []byte("state"), nil)
	must(t, err)
	for name, c := range map[string]struct {
		keys func() *sealed.Keys
		want semantics.Finding
	}{
		"no file":  {nil, semantics.Finding{Severity: semantics.Fine, Text: "alone, chunk, dead, shared, state"}},
		"all keys": {payloadKeys(t, "alone", "chunk", "dead", "shared", "state"), semantics.Finding{Severity: semantics.Fine, Text: "alone, chunk, dead, shared, state"}},
		"some":     {payloadKeys(t, "alone", "chunk", "more"), semantics.Finding{Severity: semantics.Problem, Text: "alone, chunk, dead, shared, state; missing: dead, shared, state"}},
		"lost":     {losing(t, payloadKeys(t, "alone", "chunk", "dead"), "shared", "state"), semantics.Finding{Severity: semantics.Fine, Text: "alone, chunk, dead, shared, state"}},
		"another secret": {payloadKeysOf(t, 'x', "alone", "chunk", "dead", "shared", "state"), semantics.Finding{
			Severity: semantics.Problem, Text: "missing: alone, chunk, dead, shared, state",
		}},
	} {
		var found []semantics.Finding
		must(t, openSealed(t, options, c.keys).Examine(ctx, semantics.Examination{}, func(f semantics.Finding) {
			if f.Subject == "encryption" {
				found = append(found, f)
			}
		}))
		if len(found) != 1 || found[0].Severity != c.want.Severity || !strings.HasSuffix(found[0].Text, c.want.Text) {
			t.Errorf("%s: got %+v, want %+v", name, found, c.want)
		}
	}
}

// Neither a body nor a state counts for more because it is sealed: the largest that is permitted fits.
func TestCRYPT_6_SizesAreThoseOfTheSender(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	s := openSealed(t, options, payloadKeys(t, "new"))
	ctx := t.Context()
	must(t, makeQueue(t, s.Store, "orders", func(o *semantics.Options) { o.RequiresSession, o.MaxMessageSizeInKilobytes = true, 1024 }))
	m := &semantics.Message{MessageID: "1", SessionID: "x"}
	m.Body = bytes.Repeat([]byte{'b'}, 1<<20-int(m.Size()))
	if stored, err := s.Broker.Send(ctx, semantics.Target{Path: "orders"}, []*semantics.Message{m}); err != nil {
		t.Fatal(stored, err)
	}
	session, err := s.Broker.AcceptSession(ctx, "orders", broker.AcceptOptions{SessionID: "x"})
	must(t, err)
	state := bytes.Repeat([]byte{'s'}, 1<<20)
	_, err = s.Broker.SetSessionState(ctx, session.Source(), state, nil)
	must(t, err)
	if _, err := s.Broker.SetSessionState(ctx, session.Source(), append(state, 's'), nil); semantics.CodeOf(err) != semantics.SessionStateTooLarge {
		t.Errorf("a byte more: %v", err)
	}
	must(t, s.Store.Transact(ctx, nil, []semantics.Operation{{Verb: semantics.OperationSetState, Source: session.Source(), State: state}}).Err)
	got, err := s.take(t, session.Source(), 1)
	if err != nil || !bytes.Equal(got[0].Body, m.Body) || got[0].Size != 1<<20 {
		t.Errorf("got a message of %d bytes, %v", got[0].Size, err)
	}
	now, err := s.Broker.SessionState(ctx, session.Source())
	if err != nil || !bytes.Equal(now.Data, state) {
		t.Errorf("got a state of %d bytes, %v", len(now.Data), err)
	}
	runtime, err := s.Store.Runtime(ctx, semantics.QueueKind, "orders")
	if err != nil || runtime.SizeInBytes != 2<<20 {
		t.Errorf("the queue has %d bytes, %v; want %d", runtime.SizeInBytes, err, 2<<20)
	}
	empty := []byte{}
	_, err = s.Broker.SetSessionState(ctx, session.Source(), empty, nil)
	must(t, err)
	if now, err = s.Broker.SessionState(ctx, session.Source()); err != nil || now.Data == nil || len(now.Data) != 0 {
		t.Errorf("an empty state is %v, %v", now.Data, err)
	}
}

// Keys change while many senders and receivers work; each message comes once and as it was sent.
func TestCRYPT_3_RotationUnderLoad(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
	var keys atomic.Pointer[sealed.Keys]
	choices := []*sealed.Keys{payloadKeys(t, "old", "new")(), payloadKeys(t, "new", "old")()}
	keys.Store(choices[0])
	s := openSealed(t, options, keys.Load)
	ctx := t.Context()
	must(t, makeQueue(t, s.Store, "orders"))
	const senders, each = 4, 100
	var work sync.WaitGroup
	for sender := range senders {
		work.Go(func() {
			for i := range each {
				keys.Store(choices[i%2])
				if _, err := s.Store.Send(ctx, "orders", messagesNamed(fmt.Sprintf("%d/%d", sender, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[string]int{}
	for len(seen) < senders*each && !t.Failed() {
		d, err := s.Broker.Receive(ctx, orders, broker.ReceiveOptions{MaxMessages: 50, MaxWait: 5 * time.Second})
		if err != nil || len(d.Messages) == 0 {
			t.Fatalf("after %d: %+v, %v", len(seen), d, err)
		}
		for _, m := range d.Messages {
			if seen[m.MessageID]++; seen[m.MessageID] > 1 || string(m.Body) != "body "+m.MessageID {
				t.Fatalf("message %q came %d times, with %q", m.MessageID, seen[m.MessageID], m.Body)
			}
		}
		_, err = s.Broker.Complete(ctx, orders, tokensOf(d.Messages))
		must(t, err)
	}
	work.Wait()
}
