package proxy_test

import (
	"fmt"
	"net/http"
	"testing"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestStreamSmoke(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	if a := s.call(t, http.MethodPut, "/v1/queues/ses", `{"requiresSession":true}`); a.status != 200 {
		t.Fatal(a)
	}
	for _, queue := range []string{"orders", "ses"} {
		publish, err := s.messages.Publish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const n = 100
		for i := range n {
			m := &sidebusv1.Message{SessionId: proto.String(fmt.Sprint("s", i%10)), Content: &sidebusv1.Message_Text{Text: fmt.Sprint(i)}}
			_ = m
			if err := publish.Send(&sidebusv1.PublishRequest{RequestId: fmt.Sprint(i), Target: "queues/" + queue, Messages: []*sidebusv1.Message{m}}); err != nil {
				t.Fatal(err)
			}
		}
		_ = publish.CloseSend()
		for i := range n {
			r, err := publish.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if r.GetRequestId() != fmt.Sprint(i) || r.GetSent() == nil {
				t.Fatal(r)
			}
		}
		if _, err := publish.Recv(); err == nil {
			t.Fatal("no end")
		}
		sub, err := s.messages.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		must := func(r *sidebusv1.SubscribeRequest) {
			if err := sub.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		must(&sidebusv1.SubscribeRequest{RequestId: "o", Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{Source: "queues/" + queue, Credits: proto.Int32(16)}}})
		got := 0
		for got < n {
			r, err := sub.Recv()
			if err != nil {
				t.Fatal(err)
			}
			var tokens []string
			for _, d := range r.GetDeliveries().GetDeliveries() {
				for _, m := range d.GetMessages() {
					got++
					tokens = append(tokens, m.GetLockToken())
				}
			}
			if len(tokens) > 0 {
				must(&sidebusv1.SubscribeRequest{RequestId: "s", Request: &sidebusv1.SubscribeRequest_Settle{Settle: &sidebusv1.SubscribeSettle{LockTokens: tokens, Verb: &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}}}}})
			} else {
				t.Log(r)
			}
		}
		_ = sub.CloseSend()
		for {
			r, err := sub.Recv()
			if err != nil {
				t.Log(err)
				break
			}
			t.Log(r)
		}
	}
}
