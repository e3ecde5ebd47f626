package grpcapi

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestSESS_12_HowLongAnAcceptWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broker := broker.New(memstore.New())
		defer broker.Close()
		ctx, _ := response.NewTracker(slog.New(slog.DiscardHandler)).Begin(t.Context())
		if _, err := broker.CreateEntity(ctx, semantics.QueueKind, "tales", semantics.Options{RequiresSession: true}, []string{"requiresSession"}); err != nil {
			t.Fatal(err)
		}
		s := NewSessions(broker)
		if _, err := s.Accept(ctx, &sidebusv1.SessionsAcceptRequest{Source: "queues/tales", SessionId: proto.String("held")}); err != nil {
			t.Fatal(err)
		}
		const next, strict, named = semantics.Code(""), semantics.ServiceTimeout, semantics.SessionCannotBeLocked
		for _, c := range []struct {
			request *sidebusv1.SessionsAcceptRequest
			want    time.Duration
			code    semantics.Code
		}{
			{&sidebusv1.SessionsAcceptRequest{SessionId: proto.String("held")}, 0, named},
			{&sidebusv1.SessionsAcceptRequest{SessionId: proto.String("held"), Strict: true}, 0, named},
			{&sidebusv1.SessionsAcceptRequest{SessionId: proto.String("held"), MaxWait: durationpb.New(20 * time.Second)}, 20 * time.Second, named},
			{&sidebusv1.SessionsAcceptRequest{}, time.Minute, next},
			{&sidebusv1.SessionsAcceptRequest{Strict: true}, time.Minute, strict},
			{&sidebusv1.SessionsAcceptRequest{MaxWait: &durationpb.Duration{}}, 0, next},
			{&sidebusv1.SessionsAcceptRequest{MaxWait: durationpb.New(300 * time.Second)}, 300 * time.Second, next},
		} {
			c.request.Source = "queues/tales"
			start := time.Now()
			accepted, err := s.Accept(ctx, c.request)
			if took := time.Since(start); semantics.CodeOf(err) != c.code || took != c.want || err == nil && accepted.GetSession() != nil {
				t.Errorf("%v: got %v, %v after %s, want %q after %s", c.request, accepted, err, took, c.code, c.want)
			}
		}
	})
}

// takeWord and wordFrom rely on it.
func TestWordsOfOptionsAgree(t *testing.T) {
	t.Parallel()
	agree(t, sidebusv1.Queue_ACTIVE, semantics.Status.String)
	agree(t, sidebusv1.Queue_EXPIRE, semantics.OnDisconnect.String)
	agree(t, sidebusv1.Queue_MESSAGE, semantics.SessionExpiryMode.String)
	agree(t, sidebusv1.Queue_CONTINUE, semantics.SessionOnDeadLetter.String)
	agree(t, sidebusv1.Queue_ALLOWED, semantics.AcceptNext.String)
}

func agree[S ~uint8](t *testing.T, word protoreflect.Enum, name func(S) string) {
	t.Helper()
	words := word.Descriptor().Values()
	for i := range words.Len() {
		if got := name(S(words.Get(i).Number())); got != string(words.Get(i).Name()) { //nolint:gosec // a handful of words
			t.Errorf("%s is %s on the wire and %s within", word.Descriptor().Name(), words.Get(i).Name(), got)
		}
	}
	if beyond := name(S(words.Len())); !strings.ContainsAny(beyond, "0123456789") { //nolint:gosec // as above
		t.Errorf("%s of %s has no word on the wire", beyond, word.Descriptor().Name())
	}
}
