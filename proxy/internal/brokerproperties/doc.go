// Package brokerproperties carries a message in an HTTP request or answer as Service Bus does it: broker properties as
// JSON in one header, application properties in headers of their own, the body as it is (REST-1, REST-2, REST-4). All
// texts are ASCII, other characters are escaped (REST-12).
package brokerproperties

// Names of headers, as they are written.
const (
	Header = "BrokerProperties"

	// PropertiesHeader holds, as one JSON object, the application properties whose names cannot be those of a header,
	// or mean something else there. It is taken from senders too.
	PropertiesHeader = "Sidebus-Properties"
)
