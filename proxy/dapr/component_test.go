package dapr

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha" //nolint:staticcheck // what Dapr's runtime asks

	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
)

// Dapr's runtime asks reflection which service a socket has, in its old version.
func TestDAPR_1_ReflectionNamesTheService(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.runtime("", "")
	old, err := reflectionv1alpha.NewServerReflectionClient(r.conn).ServerReflectionInfo(r.ctx)
	b.ok(err)
	request := &reflectionv1alpha.ServerReflectionRequest{MessageRequest: &reflectionv1alpha.ServerReflectionRequest_ListServices{}} //nolint:staticcheck // as above
	b.ok(old.Send(request))
	answer, err := old.Recv()
	b.ok(err)
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() { //nolint:staticcheck // as above
		names = append(names, s.GetName()) //nolint:staticcheck // as above
	}
	now, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(r.ctx)
	b.ok(err)
	b.ok(now.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}))
	if _, err := now.Recv(); err != nil || !slices.Contains(names, "dapr.proto.components.v1.PubSub") {
		t.Errorf("got %v, %v", names, err)
	}
}

func TestDAPR_1_FeaturesAndPing(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin()
	response, err := r.Features(r.ctx, &proto.FeaturesRequest{})
	b.ok(err)
	if got := strings.Join(response.GetFeatures(), " "); got != "MESSAGE_TTL BULK_PUBSUB BULK_SUBSCRIBE_IMMEDIATE" {
		t.Errorf("got %s", got)
	}
	_, err = r.Ping(r.ctx, &proto.PingRequest{})
	b.ok(err)
}

// The file is there only while a component listens, with the permissions of its setting, and is removed when it stops.
func TestDAPR_1_SocketFile(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	t.Cleanup(b.Broker.Close)
	path := b.config.Socket
	b.ok(b.server.Open(t.Context()))
	if files := filesIn(t, filepath.Dir(path)); len(files) != 1 || files[0] != privateFolder {
		t.Errorf("before it serves: %v", files)
	}
	b.ok(b.server.close())
	stop := b.serve()
	b.begin() // it answers
	info, err := os.Stat(path)
	b.ok(err)
	if info.Mode()&os.ModeSocket == 0 || info.Mode().Perm() != 0o666 {
		t.Errorf("mode %s", info.Mode())
	}
	stop()
	if files := filesIn(t, filepath.Dir(path)); len(files) != 1 {
		t.Errorf("after it served: %v", files)
	}
	if files := filesIn(t, filepath.Join(filepath.Dir(path), privateFolder)); len(files) != 1 || files[0] != "sidebus.json" {
		t.Errorf("in the private folder: %v", files)
	}
}

func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestDAPR_1_StaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	t.Cleanup(b.Broker.Close)
	left, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", b.config.Socket)
	b.ok(err)
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	b.ok(left.Close())
	b.ok(b.server.Open(t.Context()))
	if _, err := os.Lstat(b.config.Socket); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err) // and Dapr's runtime would wait for it
	}
	b.ok(b.server.close())
	t.Cleanup(b.serve())
	b.begin()
}

func TestDAPR_1_SocketOfAnother(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	b.begin()
	second := newBed(t, func(c *Config) { c.Socket = b.config.Socket })
	t.Cleanup(second.Broker.Close)
	if err := second.server.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "another process listens on the socket") {
		t.Errorf("got %v", err)
	}
	b.begin() // the first one is none the worse

	plain := newBed(t)
	t.Cleanup(plain.Broker.Close)
	b.ok(os.WriteFile(plain.config.Socket, []byte("mine"), 0o600))
	if err := plain.server.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(plain.config.Socket); err != nil || string(text) != "mine" {
		t.Errorf("got %q, %v", text, err)
	}
}

// A file that another process has put in place of ours meanwhile is that one's.
func TestDAPR_1_LeavesTheSocketOfItsSuccessor(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	t.Cleanup(b.Broker.Close)
	stop := b.serve()
	b.begin()
	b.ok(os.Remove(b.config.Socket))
	next, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", b.config.Socket)
	b.ok(err)
	t.Cleanup(func() { _ = next.Close() })
	stop()
	if _, err := os.Lstat(b.config.Socket); err != nil {
		t.Error(err)
	}
}

// The name of a Component resource may be empty, and may stand there twice; each has its own metadata.
func TestDAPR_1_InstanceHeader(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		empty, none, one := b.runtime("", ""), b.runtime("", ""), b.runtime("one", "")
		none.ctx = metadata.NewOutgoingContext(none.ctx, metadata.MD{})
		b.ok(empty.init("entityKind", "queue"))
		b.ok(none.init("entityKind", "queue"))
		b.ok(one.init())
		two := &fakeRuntime{PubSubClient: one.PubSubClient, b: b, conn: one.conn, ctx: metadata.AppendToOutgoingContext(t.Context(), instanceHeader, "two", instanceHeader, "two")}
		b.ok(two.init("entityKind", "queue"))
		for i, r := range []*fakeRuntime{empty, none, two} {
			r.send("orders", "1")
			b.wantCounts("orders", "available "+string(rune('1'+i))+" locked 0 dead 0")
		}
		b.wantReason(one.publish("orders", "1"), semantics.EntityAlreadyExists, "queue")
		long := b.runtime(strings.Repeat("x", 300), "")
		b.wantReason(long.init(), semantics.InvalidArgument, "253")
	})
}

// Runtimes that share a socket may have Component resources of one name with different metadata.
func TestDAPR_1_SameNameOnTwoConnections(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		one, two := b.begin(), b.begin("consumerID", "second")
		f, g := one.subscribe("orders"), two.subscribe("orders")
		synctest.Wait()
		one.send("orders", "1")
		f.wants("1")
		g.wants("1")
		_ = one.conn.Close()
		synctest.Wait()
		if n := len(b.server.endpoints[0].component.registry.instances); n != 1 {
			t.Errorf("%d instances are remembered", n)
		}
		if got := b.metric("sidebus_connections", "wire=dapr"); got != 1 {
			t.Errorf("%v connections", got)
		}
	})
}

func TestDAPR_1_InitAgainReplaces(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		f := r.subscribe("orders")
		r.send("orders", "1")
		f.wants("1")
		b.ok(r.init("entityKind", "topic"))
		f.ack("1") // the stream goes on until the runtime ends it
		b.wantCounts("orders", "available 0 locked 0 dead 0")
		b.wantReason(r.publish("orders", "2"), semantics.EntityAlreadyExists, "queue")
		f.cancel()
		g := r.subscribe("news")
		synctest.Wait()
		r.send("news", "3")
		g.wants("3")
	})
}

// After a restart of Sidebus the runtime publishes without Init: what it said before is known, but no password of it.
func TestDAPR_1_PublishWithoutInit(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	t.Cleanup(b.Broker.Close)
	stop := b.serve()
	b.begin("entityKind", "topic")
	r := b.begin("entityKind", "queue", "maxDeliveryCount", "3", "redisPassword", "secret", "connectionString", "Endpoint=secret")
	b.ok(b.runtime("other", "").init("entityKind", "queue"))
	stop()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(b.config.Socket), privateFolder, "sidebus.json"))
	b.ok(err)
	var kept map[string]map[string]string
	if err := json.Unmarshal(text, &kept); err != nil || strings.Contains(string(text), "secret") || len(kept) != 2 {
		t.Errorf("kept %s, %v", text, err)
	}
	b.build()
	t.Cleanup(b.serve())
	r.send("orders", "1") // over the connection that was there
	e, err := b.GetEntity(t.Context(), semantics.QueueKind, "orders")
	b.ok(err)
	if e.Options.MaxDeliveryCount != 3 {
		t.Errorf("%d deliveries", e.Options.MaxDeliveryCount)
	}
	stranger := b.runtime("stranger", "") // nothing is known of it
	stranger.send("news", "1")
	_, err = b.GetEntity(t.Context(), semantics.TopicKind, "news")
	b.ok(err)
	f := r.subscribe("orders")
	if got := f.next(); string(got.GetData()) != "1" {
		t.Errorf("got %q", got.GetData())
	}
}

func TestDAPR_1_WhatIsKeptCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "no JSON", "null", `{"sb":7}`} {
		b := newBed(t)
		t.Cleanup(b.Broker.Close)
		path := b.server.endpoints[0].component.state.path
		b.ok(os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // as it is
		b.ok(os.WriteFile(path, []byte(text), 0o600))
		t.Cleanup(b.serve())
		r := b.runtime("sb", "")
		r.send("news", "1")
		b.ok(r.init("entityKind", "queue"))
		r.send("orders", "1")
	}
}

// When the file cannot be written Sidebus serves all the same.
func TestDAPR_1_NowhereToKeepIt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	t.Cleanup(b.Broker.Close)
	b.ok(os.MkdirAll(b.server.endpoints[0].component.state.path, 0o755)) //nolint:gosec // in the way
	t.Cleanup(b.serve())
	b.begin().send("news", "1")
	b.wantLog("cannot save the metadata")
}

func TestDAPR_1_InitIsNotForTheStore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		b.store.isDown.Store(true)
		b.begin()
	})
}

func TestDAPR_1_WrongMetadataIsRefused(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin()
	for name, value := range map[string]string{
		"entityKind": "table", "disableEntityManagement": "perhaps", "maxActiveMessages": "0", "maxConcurrentHandlers": "-1",
		"lockDurationInSec": "4", "autoDeleteOnIdleInSec": "299", "maxDeliveryCount": "many", "timeoutInSec": "0", "handlerTimeoutInSec": "1e3",
		"maxRetriableErrorsPerSec": "-1", "maxConcurrentSessions": "0", "sessionIdleTimeoutInSec": "0", "requireSessions": "2",
		"defaultMessageTimeToLiveInSec": "0", "consumerID": "under the bridge", "publishMaxRetries": "x", "redeliverInterval": "soon",
	} {
		b.wantReason(r.init(name, value), semantics.InvalidArgument, name)
	}
	r.send("news", "1") // what was said before holds
}

func TestDAPR_1_UnknownMetadataWarns(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin("colour", "red", "redisHost", "h:1", "azureClientId", "x", "allowedTopics", "a", "maxdeliverycount", "3", "lockDurationInSec", "")
	b.wantLog("name=colour")
	for _, name := range []string{"redisHost", "azureClientId", "allowedTopics", "maxdeliverycount", "lockDurationInSec"} {
		if strings.Contains(b.log.String(), name) {
			t.Errorf("it warns of %s", name)
		}
	}
	f := r.subscribe("orders", "shape", "round", "maxDeliveryCount", "none", "timeoutInSec", "3", "rawPayload", "true", "requireSessions", "true")
	b.eventually(func() bool {
		_, err := b.GetEntity(t.Context(), semantics.SubscriptionKind, semantics.SubscriptionPath("orders", "app"))
		return err == nil
	})
	r.sendTo("orders", "s", "1")
	_ = f.next() // the stream stands, and what else was said holds
	b.wantLog("name=shape")
	b.wantLog("name=timeoutInSec")
	b.wantLog("name=maxDeliveryCount")
	if got := b.metric("sidebus_dapr_bad_metadata_total"); got != 1 {
		t.Errorf("%v bad values", got)
	}
}

func TestDAPR_1_EntitiesAreMade(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("maxDeliveryCount", "3", "lockDurationInSec", "20", "defaultMessageTimeToLiveInSec", "100", "autoDeleteOnIdleInSec", "300")
		r.subscribe("orders", "requireSessions", "true", "maxDeliveryCount", "5")
		synctest.Wait()
		topic, err := b.GetEntity(t.Context(), semantics.TopicKind, "orders")
		b.ok(err)
		if o := topic.Options; o.MaxMessageSizeInKilobytes != 4096 || o.DefaultMessageTimeToLive != semantics.Never || o.AutoDeleteOnIdle != semantics.Never {
			t.Errorf("topic: %+v", o)
		}
		sub, err := b.GetEntity(t.Context(), semantics.SubscriptionKind, semantics.SubscriptionPath("orders", "app"))
		b.ok(err)
		if o := sub.Options; o.MaxDeliveryCount != 5 || o.LockDuration.Seconds() != 20 || o.DefaultMessageTimeToLive.Seconds() != 100 || o.AutoDeleteOnIdle.Seconds() != 300 || !o.RequiresSession {
			t.Errorf("subscription: %+v", o)
		}
		b.ok(r.init("maxDeliveryCount", "7"))
		r.subscribe("orders")
		synctest.Wait()
		b.wantLog("option=maxDeliveryCount current=5 requested=7")
	})
}

func TestDAPR_1_EntitiesOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		r := b.begin("disableEntityManagement", "true", "entityKind", "queue")
		b.wantReason(r.publish("orders", "1"), semantics.EntityNotFound, "orders")
		f := r.subscribe("orders")
		synctest.Wait()
		b.wantLog("ENTITY_NOT_FOUND")
		b.make("orders", semantics.Options{}, nil)
		r.send("orders", "1")
		b.pass(settling.MaxBackoff)
		f.wants("1")
	})
}

func TestDAPR_1_FirstRequestNamesTheTopic(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin()
	stream, err := r.PullMessages(r.ctx)
	b.ok(err)
	b.ok(stream.Send(&proto.PullMessagesRequest{AckMessageId: "x"}))
	_, err = stream.Recv()
	b.wantReason(err, semantics.InvalidArgument, "topic")
}

func TestDAPR_1_ConsumerIsNeededForTopics(t *testing.T) {
	t.Parallel()
	if _, err := sourceOf("orders", Sidebus.defaults()); semantics.CodeOf(err) != semantics.InvalidArgument || !strings.Contains(err.Error(), "consumerID") {
		t.Errorf("got %v", err)
	}
}
