package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
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
	const large = "/v1/queues/large/messages:send"
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
	if !strings.Contains(a.body, "send it over gRPC") { // the queue takes more
		t.Errorf("the next step is missing: %s", a.body)
	}
	half := `{"text":"` + strings.Repeat("x", mib/2) + `"}`
	for body, want := range map[string]string{
		`{"messages":[` + half + "," + half + `]}`:             "at most 1048576 are allowed; send fewer messages at a time",
		`{"messages":[` + strings.Repeat("{},", 4500) + `{}]}`: "contains 4501 messages, at most 4500 are allowed; send them in several calls",
	} {
		if a := s.call(t, http.MethodPost, large, body); a.status < 400 || !strings.Contains(a.body, want) {
			t.Errorf("got %d %s, want %q", a.status, a.body, want)
		}
	}
	if a := s.call(t, http.MethodPost, verbPath+"send", `{"messages":[`+half+`]}`); !strings.Contains(a.body, "raise maxMessageSizeInKilobytes") {
		t.Errorf("a message larger than its queue takes: got %d %s", a.status, a.body)
	}

	// What came over gRPC is larger and is read over HTTP all the same.
	_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/large", Messages: []*sidebusv1.Message{
		{Content: &sidebusv1.Message_Text{Text: strings.Repeat("y", 2*mib)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	// an answer of both would be larger than one may be, but one message always fits
	for _, size := range []int{mib - others, 2 * mib} {
		got := s.call(t, http.MethodPost, "/v1/queues/large/messages:receive", `{"maxMessages":2,"maxWait":"0s"}`)
		if got.status != http.StatusOK || len(got.body) < size || len(got.body) > size+mib/2 {
			t.Errorf("a message of %d bytes: got %d and %d bytes", size, got.status, len(got.body))
		}
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
	if a := s.exchange(t, request); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked: got %d", a.status)
	}
}

// A client that sends all before it reads, as most do, gets the answer to a body that is refused, however much of it
// was on its way.
func TestMSG_21_RefusedBodyIsAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	const size = 24 * mib // more than the sockets take on both sides
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.proxy.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only read from in the end
	for _, path := range []string{verbPath + "send", "/nowhere/at/all", "/orders/messages"} {
		_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, size, strings.Repeat("x", size))
		if err != nil {
			t.Fatalf("%s: the request was cut off: %v", path, err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: no answer: %v", path, err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close() // the connection goes on
		if err != nil || response.StatusCode < 400 || len(text) == 0 {
			t.Errorf("%s: got %d %s, %v", path, response.StatusCode, text, err)
		}
	}
	// One that asks first is told so at once.
	if _, err := fmt.Fprintf(conn, "POST %ssend HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", verbPath, size); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing can be lost
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("with Expect: got %v", response)
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
