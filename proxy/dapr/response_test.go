package dapr

import (
	"strings"
	"testing"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	gproto "google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/semantics"
)

// What is encoded here is what the generated code reads, with nothing that it does not know.
func TestDAPR_4_ResponsesAreReadByTheGeneratedCode(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 2, 15, 4, 5, 0, time.UTC)
	const instant = "Sat, 02 Jan 2027 15:04:05 GMT"
	token, err := semantics.ParseLockToken("01234567-89ab-4def-8123-456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	always := func(more map[string]string) map[string]string {
		all := map[string]string{
			"metadata.LockToken": "ASNFZ4mrTe+BI0VniavN7w==", "metadata.SequenceNumber": "7", "metadata.DeliveryCount": "1",
		}
		for name, value := range more {
			all["metadata."+name] = value
		}
		return all
	}
	for name, c := range map[string]struct {
		message semantics.Received
		want    map[string]string
	}{
		"nothing": {semantics.Received{}, nil},
		"all": {semantics.Received{
			Message: semantics.Message{
				Body: []byte("tea"), MessageID: "m", SessionID: "s", CorrelationID: "c", PartitionKey: "p", Subject: "Grüße", ReplyTo: "r",
				ReplyToSessionID: "rs", To: "t", ContentType: "text/plain", ScheduledAt: at,
				Properties: map[string]semantics.Value{"colour": semantics.String("green"), "größe": semantics.String("1")},
			},
			EnqueuedAt: at, LockedUntil: at,
		}, map[string]string{
			"MessageId": "m", "SessionId": "s", "CorrelationId": "c", "PartitionKey": "p", "Label": "utf-8''Gr%C3%BC%C3%9Fe", "ReplyTo": "r",
			"ReplyToSessionId": "rs", "To": "t", "ContentType": "text/plain", "ScheduledEnqueueTimeUtc": instant, "EnqueuedTimeUtc": instant,
			"LockedUntilUtc": instant, "colour": "green", "Sidebus-Properties": `{"gr\u00f6\u00dfe":"1"}`,
		}},
		"long": {semantics.Received{Message: semantics.Message{
			Body: make([]byte, 1<<20), MessageID: strings.Repeat("m", 128),
			Properties: map[string]semantics.Value{strings.Repeat("n", 200): semantics.String(strings.Repeat("v", 20_000))},
		}}, map[string]string{"MessageId": strings.Repeat("m", 128), strings.Repeat("n", 200): strings.Repeat("v", 20_000)}},
	} {
		m := c.message
		m.LockToken, m.SequenceNumber, m.DeliveryCount = token, 7, 1
		got := &proto.PullMessagesResponse{}
		if err := gproto.Unmarshal(responseOf("orders;lane=2", &m), got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := &proto.PullMessagesResponse{Data: m.Body, TopicName: "orders;lane=2", Metadata: always(c.want), Id: token.String()}
		if !gproto.Equal(got, want) {
			t.Errorf("%s: got %.2000v, want %.2000v", name, got.GetMetadata(), want.GetMetadata())
		}
	}
}
