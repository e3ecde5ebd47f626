package proxy_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dapr "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebus "github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/push"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// claimsOverDapr is the table of AUTH-3 for the calls of a Dapr component. "any" needs an identity, whatever its claims.
var claimsOverDapr = map[string]string{
	"Init": "any", "Features": "any", "Ping": "any", "Pause": "any", "Resume": "any", "Publish": "Send", "BulkPublish": "Send", "PullMessages": "Listen",
}

// A process at Dapr's socket may do what the policy grants to its user.
func TestAUTH_4_EveryCallOfDaprNeedsItsClaim(t *testing.T) {
	t.Parallel()
	policy, become := changingPolicy(access.Identity{UIDs: []int{os.Getuid()}}, access.Identity{Handlers: true})
	socket := shortFolder(t) + "/sidebus.sock"
	s := launch(t, memstore.New(), func(c *proxy.Config) { c.Authorizer, c.Dapr.Socket = policy, socket })
	wait(t, "start", s.proxy.Started())
	conn := dial(t, "unix://"+socket)
	eventually(t, "Dapr's socket", func() bool { _, err := os.Stat(socket); return err == nil })
	methods := dapr.File_dapr_proto_components_v1_pubsub_proto.Services().ByName("PubSub").Methods()
	if methods.Len() != len(claimsOverDapr) {
		t.Errorf("Dapr has %d calls, the table %d", methods.Len(), len(claimsOverDapr))
	}
	for i := range methods.Len() {
		method := methods.Get(i)
		needs, known := claimsOverDapr[string(method.Name())]
		if !known {
			t.Errorf("the table has no %s", method.Name())
		}
		for _, rule := range allRules {
			become(rule)
			want := wantCode(rule, needs)
			if needs == "any" {
				want = map[bool]codes.Code{true: codes.Unauthenticated, false: codes.OK}[rule == ""]
			}
			if method.IsStreamingClient() {
				checkPull(t, s, dapr.NewPubSubClient(conn), want)
				continue
			}
			request := dynamicpb.NewMessage(method.Input())
			if topic := method.Input().Fields().ByName("topic"); topic != nil {
				request.Set(topic, protoreflect.ValueOfString("q"))
			}
			err := conn.Invoke(t.Context(), "/"+string(methods.Get(i).Parent().FullName())+"/"+string(method.Name()), request, dynamicpb.NewMessage(method.Output()))
			checkRefusal(t, string(method.Name())+" with the claims of "+rule, status.Code(err), want)
		}
	}
}

// checkRefusal checks a code. OK as what is wanted stands for everything except a refusal.
func checkRefusal(t *testing.T, what string, got, want codes.Code) {
	t.Helper()
	if got != want && (want != codes.OK || got == codes.Unauthenticated || got == codes.PermissionDenied) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// checkPull opens a stream of Dapr. It stays open, so a refusal is in the log only.
func checkPull(t *testing.T, s *sidecar, client dapr.PubSubClient, want codes.Code) {
	t.Helper()
	s.keep(t, semantics.Target{Path: "news", IsTopic: true})
	refusals := s.refusals("PubSub.PullMessages", want)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.PullMessages(ctx)
	must(t, err)
	must(t, stream.Send(&dapr.PullMessagesRequest{Topic: &dapr.Topic{Name: "news/subscriptions/s"}}))
	if want == codes.OK {
		_, err := stream.Recv()
		must(t, err)
		return
	}
	eventually(t, "the refusal of a pull", func() bool { return s.refusals("PubSub.PullMessages", want) > refusals })
}

var refusalReasons = map[codes.Code]string{codes.Unauthenticated: "UNAUTHENTICATED", codes.PermissionDenied: "PERMISSION_DENIED"}

// refusals is how often the audit has that a method was refused with a code.
func (s *sidecar) refusals(method string, code codes.Code) (n int) {
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "msg=audit ") && strings.Contains(line, " method="+method+" ") && strings.Contains(line, " code="+refusalReasons[code]+" ") {
			n++
		}
	}
	return n
}

// keep creates a queue, or a topic with a subscription, and stores a message there, past all wires.
func (s *sidecar) keep(t *testing.T, target semantics.Target) {
	t.Helper()
	kinds := map[semantics.Kind]string{semantics.QueueKind: target.Path}
	if target.IsTopic {
		kinds = map[semantics.Kind]string{semantics.TopicKind: target.Path, semantics.SubscriptionKind: target.Path + "/subscriptions/s"}
	}
	for _, kind := range []semantics.Kind{semantics.QueueKind, semantics.TopicKind, semantics.SubscriptionKind} {
		if path, is := kinds[kind]; is {
			_, err := s.broker.EnsureEntity(t.Context(), kind, path, semantics.DefaultOptions(), nil)
			must(t, err)
		}
	}
	_, err := s.broker.Send(t.Context(), target, []*semantics.Message{{Body: []byte("a")}})
	must(t, err)
}

// Push handlers may receive what the policy grants to its handlers.
func TestAUTH_4_PushHandlersNeedListen(t *testing.T) {
	t.Parallel()
	for _, rule := range allRules {
		policy, become := changingPolicy(access.Identity{Handlers: true}, access.Identity{UIDs: []int{os.Getuid()}})
		become(rule)
		called := make(chan struct{}, 1)
		app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			select {
			case called <- struct{}{}:
			default:
			}
		}))
		defer app.Close()
		s := launch(t, memstore.New(), func(c *proxy.Config) {
			c.Authorizer, c.Handlers = policy, []push.Handler{{Source: "queues/q", URL: app.URL}}
		})
		wait(t, "start", s.proxy.Started())
		s.keep(t, semantics.Target{Path: "q"})
		if want := wantCode(rule, "Listen"); want == codes.OK {
			wait(t, "a push with the claims of "+rule, called)
		} else {
			eventually(t, "a refusal of the claims of "+rule, func() bool {
				return s.refusals("Handler.Receive", want) == 1
			})
		}
	}
}

// watchedStore knows what is waited for.
type watchedStore struct {
	*memstore.Store

	mu   sync.Mutex
	seen map[string]bool
}

func (w *watchedStore) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[source.Path] = true
	return w.Store.Watch(ctx, source)
}

func (w *watchedStore) has(queues ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(queues, func(queue string) bool { return !w.seen[queue] })
}

// What lasts ends when the policy takes its right away: a stream, a subscription of Dapr and a handler. A receive that
// waits returns as if its time had expired.
func TestAUTH_4_WhatLastsEndsWithItsRight(t *testing.T) {
	t.Parallel()
	uid := os.Getuid()
	policy, become := changingPolicy(access.Identity{UIDs: []int{uid}, Handlers: true}, access.Identity{UIDs: []int{uid + 1}})
	become("Listen")
	folder := shortFolder(t)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	store := &watchedStore{Store: memstore.New(), seen: map[string]bool{}}
	s := launch(t, store, func(c *proxy.Config) {
		c.Authorizer, c.GRPCAddr, c.HTTPAddr, c.Dapr.Socket = policy, "unix://"+folder+"/g", "unix://"+folder+"/h", folder+"/d"
		c.Handlers = []push.Handler{{Source: "queues/pushed", URL: app.URL}}
	})
	wait(t, "start", s.proxy.Started())
	queues := []string{"grpc", "http", "compat", "subscribed", "pushed"}
	for _, queue := range queues {
		_, err := s.broker.EnsureEntity(t.Context(), semantics.QueueKind, queue, semantics.DefaultOptions(), nil)
		must(t, err)
	}
	s.keep(t, semantics.Target{Path: "pulled", IsTopic: true})
	messages := sidebusv1.NewMessagesClient(dial(t, "unix://"+folder+"/g"))
	subscribe, err := messages.Subscribe(t.Context())
	must(t, err)
	must(t, subscribe.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{Source: "queues/subscribed"}}}))
	eventually(t, "Dapr's socket", func() bool { _, err := os.Stat(folder + "/d"); return err == nil })
	pull, err := dapr.NewPubSubClient(dial(t, "unix://"+folder+"/d")).PullMessages(t.Context())
	must(t, err)
	must(t, pull.Send(&dapr.PullMessagesRequest{Topic: &dapr.Topic{Name: "pulled/subscriptions/s"}}))
	_, err = pull.Recv()
	must(t, err)

	s.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", folder+"/h")
	}
	s.base, s.tokenOf = "http://localhost", noToken
	var receives sync.WaitGroup
	receive := func(wait time.Duration) error {
		_, err := messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/grpc", MaxWait: durationpb.New(wait)})
		return err
	}
	receives.Go(func() {
		if err := receive(semantics.MaxWait); err != nil {
			t.Errorf("a receive over gRPC: %v", err)
		}
	})
	for path, want := range map[string]int{"/v1/queues/http/messages:receive": http.StatusOK, "/compat/messages/head?timeout=300": http.StatusNoContent} {
		receives.Go(func() {
			if a := s.callAs(t, "", http.MethodPost, path, map[bool]string{true: `{"maxWait":"300s"}`}[want == http.StatusOK]); a.status != want {
				t.Errorf("%s: got %d %s", path, a.status, a.body)
			}
		})
	}
	eventually(t, "all wait", func() bool { return store.has(queues...) })
	become("Send")
	receives.Wait()
	for err == nil {
		_, err = subscribe.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a stream: got %v", err)
	}
	eventually(t, "all streams end", func() bool {
		for _, method := range []string{"PubSub.PullMessages", "Handler.Receive", "Messages.Subscribe"} {
			if s.refusals(method, codes.PermissionDenied) != 1 {
				return false
			}
		}
		return true
	})
	if err := receive(0); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the next receive: got %v", err)
	}
}

// The Go client proves who it is with a certificate, or with the token of a file, in calls over a stream and separate ones.
func TestAUTH_4_TheGoClientProvesWhoItIs(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	overTLS := launchTLS(t, ca.files(t, "sidecar"), listening(access.Identity{Certificates: []string{"CN=worker"}}))
	plain := guardedBy(t, listening(access.Identity{Tokens: []access.Token{access.NewToken("0123456789abcdef")}}), noToken)
	good, bad := shortFolder(t)+"/token", shortFolder(t)+"/token"
	must(t, os.WriteFile(good, []byte("0123456789abcdef\n"), 0o600))
	must(t, os.WriteFile(bad, []byte("another-token-of-none"), 0o600))
	for what, c := range map[string]struct {
		target  string
		options sidebus.Options
		want    codes.Code
	}{
		"a certificate":         {overTLS.proxy.GRPCAddr().String(), sidebus.Options{TLS: ca.client(t, "worker")}, codes.NotFound},
		"another certificate":   {overTLS.proxy.GRPCAddr().String(), sidebus.Options{TLS: ca.client(t, "other")}, codes.Unauthenticated},
		"a certificate, alone":  {overTLS.proxy.GRPCAddr().String(), sidebus.Options{TLS: ca.client(t, "worker"), SeparateCalls: true}, codes.NotFound},
		"a token":               {plain.proxy.GRPCAddr().String(), sidebus.Options{TokenFile: good}, codes.NotFound},
		"a token, alone":        {plain.proxy.GRPCAddr().String(), sidebus.Options{TokenFile: good, SeparateCalls: true}, codes.NotFound},
		"a token of no one":     {plain.proxy.GRPCAddr().String(), sidebus.Options{TokenFile: bad}, codes.Unauthenticated},
		"nothing, where needed": {plain.proxy.GRPCAddr().String(), sidebus.Options{}, codes.Unauthenticated},
	} {
		client, err := sidebus.New(c.target, &c.options)
		must(t, err)
		_, err = sidebusv1.NewMessagesClient(client.Conn()).Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/q", MaxWait: &durationpb.Duration{}})
		if got := status.Code(err); got != c.want {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
		must(t, client.Close())
	}
	if _, err := sidebus.New("", &sidebus.Options{TokenFile: good + "none"}); err == nil {
		t.Error("a file that does not exist is accepted")
	}
}
