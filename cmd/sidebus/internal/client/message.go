package client

import (
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
)

// ReadMessage reads a message as the HTTP API writes it. What only the broker says of one that was received is ignored.
func ReadMessage(text []byte) (*sidebusv1.Message, error) {
	m := &sidebusv1.Message{}
	return m, wirejson.Decode(text, m)
}

// Sent returns a message that was received as its sender may have handed it over: without the texts that dead-lettering
// has added to its properties (MSG-17).
func Sent(m *sidebusv1.ReceivedMessage) (*sidebusv1.Message, error) {
	sent, err := ReadMessage(wirejson.Encode(m))
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]*string{
		semantics.PropertyDeadLetterReason:      m.DeadLetterReason,
		semantics.PropertyDeadLetterDescription: m.DeadLetterErrorDescription,
	} {
		if value := sent.GetProperties()[name]; text != nil && value != nil && value.GetStringValue() == *text {
			delete(sent.GetProperties(), name)
		}
	}
	return sent, nil
}
