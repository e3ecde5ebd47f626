// Package brokerproperties carries a message in an HTTP request or response as Service Bus does: broker properties as
// JSON in one header, each application property in a header of its own, the body unchanged (REST-1, REST-2, REST-4).
// All texts are ASCII; other characters are escaped (REST-12).
package brokerproperties

// Names of headers, as they are written.
const (
	Header = "BrokerProperties"

	// PropertiesHeader holds, as one JSON object, the application properties whose names are not valid as header names
	// or have another meaning in HTTP. Senders may set it too.
	PropertiesHeader = "Sidebus-Properties"
)
