package proxy_test

import (
	"bytes"
	"fmt"
	"testing"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// A client with default limits reads every answer, however much there is, and loses nothing of what is deleted with it.
func TestRECV_6_DefaultClientReadsEveryAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	many := map[string]*sidebusv1.Value{}
	for i := range 9000 { // 45,000 bytes, which are three times as many on the wire
		many[fmt.Sprintf("%04d", i)] = &sidebusv1.Value{Kind: &sidebusv1.Value_BoolValue{BoolValue: true}}
	}
	const all = 60
	for i := range all {
		m := &sidebusv1.Message{Content: &sidebusv1.Message_Body{Body: bytes.Repeat([]byte("x"), 250_000)}}
		if i%2 == 0 {
			m = &sidebusv1.Message{Properties: many}
		}
		if _, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{m}}); err != nil {
			t.Fatal(err)
		}
	}
	peeked, err := s.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, MaxMessages: new(int32(250))})
	if err != nil || len(peeked.Messages) == 0 {
		t.Fatal(len(peeked.GetMessages()), err)
	}
	for got := 0; got < all; {
		request := receiveNow()
		request.MaxMessages, request.Mode = new(int32(1000)), sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE
		answer, err := s.messages.Receive(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Messages) == 0 {
			t.Fatalf("only %d of %d messages came", got, all)
		}
		got += len(answer.Messages)
	}
}
