package azure

import (
	"reflect"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// TestAnnotatedMessagesComeBackAsTheyWere sends what only AMQP has: kinds of bodies, fields, annotations and a footer.
func TestAnnotatedMessagesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{}`), nil)
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for name, body := range map[string]azservicebus.AMQPAnnotatedMessageBody{
		"data":     {Data: [][]byte{[]byte("a"), []byte("b")}},
		"text":     {Value: "text"},
		"number":   {Value: int64(7)},
		"map":      {Value: map[string]any{"a": int64(1), "b": []byte{1}}},
		"sequence": {Sequence: [][]any{{int64(1), "a"}, {true}}},
	} {
		sent := &azservicebus.AMQPAnnotatedMessage{
			ApplicationProperties: map[string]any{"a": "b"},
			Body:                  body,
			DeliveryAnnotations:   map[any]any{"delivery": "annotation"},
			Footer:                map[any]any{"footer": "value"},
			Header:                &azservicebus.AMQPAnnotatedMessageHeader{Durable: true, Priority: 9},
			MessageAnnotations:    map[any]any{"mine": int32(5)},
			Properties: &azservicebus.AMQPAnnotatedMessageProperties{
				ContentEncoding: pointer("gzip"), CreationTime: &at, GroupSequence: pointer(uint32(3)),
				MessageID: uint64(7), CorrelationID: []byte{1, 2}, UserID: []byte("user"),
			},
		}
		must(t, l.send.SendAMQPAnnotatedMessage(patient(t), sent, nil))
		m := l.one(t)
		got := m.RawAMQPMessage
		if got.Properties.CreationTime != nil {
			*got.Properties.CreationTime = got.Properties.CreationTime.UTC()
		}
		if !reflect.DeepEqual(got.Body, sent.Body) || !reflect.DeepEqual(got.Properties, sent.Properties) ||
			!reflect.DeepEqual(got.Footer, sent.Footer) || !reflect.DeepEqual(got.ApplicationProperties, sent.ApplicationProperties) ||
			got.MessageAnnotations["mine"] != int32(5) || got.DeliveryAnnotations["delivery"] != "annotation" ||
			!got.Header.Durable || got.Header.Priority != 9 {
			t.Errorf("%s: got %+v with %+v, body %+v", name, got, got.Properties, got.Body)
		}
		must(t, l.receive.CompleteMessage(patient(t), m, nil))
	}
}
