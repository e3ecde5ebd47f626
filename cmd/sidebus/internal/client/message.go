package client

import (
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wirejson"
)

// ReadMessage reads a message as the HTTP API writes it. What only the broker says of one that was received is ignored.
func ReadMessage(text []byte) (*sidebusv1.Message, error) {
	m := &sidebusv1.Message{}
	return m, wirejson.Decode(text, m)
}

// Sent returns a message that was received as its sender may have handed it over.
func Sent(m *sidebusv1.ReceivedMessage) (*sidebusv1.Message, error) {
	return ReadMessage(wirejson.Encode(m))
}
