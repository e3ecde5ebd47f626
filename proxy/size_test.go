package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/proxy/httpapi"
	"github.com/sidebus/sidebus/semantics/memstore"
)

const mib = 1 << 20

func TestMSG_21_HTTPMessageOfOneMiB(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":102400}`)
	send := func(text int) answer {
		return s.call(t, http.MethodPost, "/v1/queues/large/messages:send",
			fmt.Sprintf(`{"messages":[{"messageId":"1234","text":"%s","properties":{"p":1}}]}`, strings.Repeat("x", text)))
	}
	const others = 4 + 1 + 8 // message id, name of the property, its value
	if a := send(mib - others); a.status != http.StatusOK {
		t.Errorf("exactly 1 MiB: got %d %s", a.status, a.body)
	}
	a := send(mib - others + 1)
	if reason, field := a.reason(t); a.status != http.StatusRequestEntityTooLarge || reason != "MESSAGE_SIZE_EXCEEDED" || field != "message" {
		t.Errorf("one byte more: got %d %s", a.status, a.body)
	}
	if !strings.Contains(a.body, `"limit":"1048576"`) || !strings.Contains(a.body, `"actual":"1048577"`) || !strings.Contains(a.body, `"index":"0"`) {
		t.Errorf("details lack the numbers: %s", a.body)
	}

	// What came over gRPC is larger and is read over HTTP all the same.
	_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/large", Messages: []*sidebusv1.Message{
		{Content: &sidebusv1.Message_Text{Text: strings.Repeat("y", 2*mib)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := s.call(t, http.MethodPost, "/v1/queues/large/messages:receive", `{"maxMessages":2,"maxWait":"0s"}`)
	if got.status != http.StatusOK || len(got.body) < 3*mib {
		t.Errorf("got %d and %d bytes", got.status, len(got.body))
	}
}

func TestHTTPBodyLimit(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	body := func(n int) string {
		const frame = `{"maxWait":"0s"}`
		return frame + strings.Repeat(" ", n-len(frame))
	}
	if a := s.call(t, http.MethodPost, verbPath+"receive", body(httpapi.MaxBody)); a.status != http.StatusOK {
		t.Errorf("the limit itself: got %d %s", a.status, a.body)
	}
	a := s.call(t, http.MethodPost, verbPath+"receive", body(httpapi.MaxBody+1))
	if reason, _ := a.reason(t); a.status != http.StatusRequestEntityTooLarge || reason != "MESSAGE_SIZE_EXCEEDED" {
		t.Errorf("one byte more: got %d %s", a.status, a.body)
	}
	// Without a length that is known before.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.proxy.HTTPAddr().String()+verbPath+"receive",
		struct{ *strings.Reader }{strings.NewReader(body(httpapi.MaxBody + 1))})
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = -1
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked: got %d", response.StatusCode)
	}
}

func TestMSG_20_GRPCMessageOf100MiB(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("moves 200 MiB")
	}
	s := start(t, memstore.New())
	mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":102400}`)
	body := make([]byte, 100*mib)
	send := func(body []byte) error {
		_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/large", Messages: []*sidebusv1.Message{
			{MessageId: proto.String("1"), Content: &sidebusv1.Message_Body{Body: body}},
		}})
		return err
	}
	if err := send(body[1:]); err != nil {
		t.Errorf("exactly 100 MiB: %v", err)
	}
	if err := send(body); status.Code(err) != codes.InvalidArgument || infoOf(t, err).GetReason() != "MESSAGE_SIZE_EXCEEDED" {
		t.Errorf("one byte more: got %v", err)
	}
}

func TestRequestTooLargeForGRPC(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.MaxGRPCMessage = mib })
	_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{
		{Content: &sidebusv1.Message_Body{Body: make([]byte, mib)}},
	}})
	if status.Code(err) != codes.ResourceExhausted { // grpc-go answers it before anybody else sees it
		t.Errorf("got %v", err)
	}
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawCodec) Unmarshal([]byte, any) error   { return nil }
func (rawCodec) Name() string                  { return "proto" }
