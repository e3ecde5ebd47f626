package dapr

import (
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/brokerproperties"
	"github.com/sidebus/sidebus/semantics"
)

// Names of metadata, the same as in the components of Azure Service Bus.
const (
	metaMessageID        = "MessageId"
	metaSessionID        = "SessionId"
	metaCorrelationID    = "CorrelationId"
	metaPartitionKey     = "PartitionKey"
	metaLabel            = "Label"
	metaReplyTo          = "ReplyTo"
	metaReplyToSessionID = "ReplyToSessionId"
	metaTo               = "To"
	metaContentType      = "ContentType"
	metaScheduled        = "ScheduledEnqueueTimeUtc"
	metaRequestID        = "RequestId"
	metaLockToken        = "LockToken"
	metaLockedUntil      = "LockedUntilUtc"
	metaEnqueued         = "EnqueuedTimeUtc"
	metaSequenceNumber   = "SequenceNumber"
	metaDeliveryCount    = "DeliveryCount"

	// metaRest has the application properties whose names or values a header cannot carry.
	metaRest = brokerproperties.PropertiesHeader
)

const (
	// deliveredPrefix is the prefix of the metadata that the app gets with a message. The Dapr runtime returns this
	// metadata unchanged when it publishes the message to a dead-letter topic.
	deliveredPrefix = "metadata."
	// originPrefix is the prefix of application properties with the former values of such a message.
	originPrefix = "Origin"
	// textPrefix is the prefix of a value with characters that a header cannot carry, which are escaped (RFC 8187).
	textPrefix = "utf-8''"
)

// metaField is a property of a message with its name in metadata.
type metaField struct {
	name    string
	aliases []string
	write   func(*semantics.Message, string) error // nil: publishers cannot set it

	// What happens to the property when a delivered message is published again.
	isCopied bool // it is set as before
	isOrigin bool // it becomes an application property
}

func field(name string, at func(*semantics.Message) *string, aliases ...string) metaField {
	return metaField{
		name:     name,
		aliases:  aliases,
		isCopied: true,
		write: func(m *semantics.Message, text string) error {
			*at(m) = text
			return nil
		},
	}
}

// metaFields are the properties of messages that are not application properties. Their names are not case-sensitive.
var metaFields = []metaField{
	{
		name:     metaMessageID,
		aliases:  []string{"id"},
		isOrigin: true,
		write: func(m *semantics.Message, text string) error { // publishing again creates a new message
			m.MessageID = text
			return nil
		},
	},
	field(metaSessionID, func(m *semantics.Message) *string { return &m.SessionID }),
	field(metaCorrelationID, func(m *semantics.Message) *string { return &m.CorrelationID }),
	field(metaPartitionKey, func(m *semantics.Message) *string { return &m.PartitionKey }),
	field(metaLabel, func(m *semantics.Message) *string { return &m.Subject }),
	field(metaReplyTo, func(m *semantics.Message) *string { return &m.ReplyTo }),
	field(metaReplyToSessionID, func(m *semantics.Message) *string { return &m.ReplyToSessionID }),
	field(metaTo, func(m *semantics.Message) *string { return &m.To }),
	field(metaContentType, func(m *semantics.Message) *string { return &m.ContentType }),
	{name: metaScheduled, write: func(m *semantics.Message, text string) (err error) {
		m.ScheduledAt, err = brokerproperties.ParseInstant(text)
		return err
	}},
	{name: "ttlInSeconds", aliases: []string{"ttl"}, write: writeTimeToLive},
	{name: metaSequenceNumber, isOrigin: true},
	{name: metaDeliveryCount, isOrigin: true},
	{name: metaEnqueued, isOrigin: true},
	{name: metaLockToken},
	{name: metaLockedUntil},
}

// droppedNames are names of metadata that only Dapr uses.
var droppedNames = []string{"rawPayload", "isRawPayload", "pubsubName", "content-type", metaMaxBulkBytes, metaRequestID}

func writeTimeToLive(m *semantics.Message, text string) error {
	ttl, err := readSpan(text, time.Second)
	if err != nil {
		return errors.New("must be a number of seconds or a duration like 1m30s")
	}
	if ttl < time.Millisecond {
		return errors.New("must be at least 1ms")
	}
	if ttl == math.MaxInt64 {
		ttl = semantics.Never
	}
	m.TimeToLive = &ttl
	return nil
}

func findMeta(name string) (metaField, bool) {
	isName := func(other string) bool { return strings.EqualFold(other, name) }
	at := slices.IndexFunc(metaFields, func(f metaField) bool {
		return isName(f.name) || slices.ContainsFunc(f.aliases, isName)
	})
	if at < 0 {
		return metaField{}, false
	}
	return metaFields[at], true
}

// messageOf returns the message of a publish. Metadata of a former delivery has lower priority than the publisher's
// own.
func messageOf(data []byte, metadata map[string]string) (*semantics.Message, error) {
	m := &semantics.Message{Body: data, Properties: map[string]semantics.Value{}}
	names := sortedNames(metadata)
	for _, name := range names {
		if before, isDelivered := cutPrefixFold(name, deliveredPrefix); isDelivered && metadata[name] != "" {
			if err := copyBack(m, before, metadata[name]); err != nil {
				return nil, badMeta(name, err)
			}
		}
	}
	for _, name := range names {
		if _, isDelivered := cutPrefixFold(name, deliveredPrefix); isDelivered || metadata[name] == "" ||
			isDropped(name) {
			continue
		}
		if err := write(m, name, metadata[name]); err != nil {
			return nil, badMeta(name, err)
		}
	}
	return m, nil
}

// badMeta returns INVALID_ARGUMENT for a name of metadata.
func badMeta(name string, err error) error {
	var own *semantics.Error
	if errors.As(err, &own) {
		return own
	}
	return semantics.Errorf(semantics.InvalidArgument, "metadata %s %s", semantics.Shorten(name), err).
		With(semantics.DetailField, semantics.Shorten(name))
}

func isDropped(name string) bool {
	return slices.ContainsFunc(droppedNames, func(other string) bool { return strings.EqualFold(other, name) })
}

// write sets a property to the publisher's value.
func write(m *semantics.Message, name, text string) error {
	if f, ok := findMeta(name); ok && f.write != nil {
		return f.write(m, text)
	}
	setProperty(m, name, text)
	return nil
}

// copyBack sets a property to its value in a former delivery.
func copyBack(m *semantics.Message, name, text string) error {
	f, isField := findMeta(name)
	switch text = unescape(text); {
	case isField && f.isCopied:
		return f.write(m, text)
	case isField && f.isOrigin:
		setProperty(m, originPrefix+f.name, text)
	case isField:
	case strings.EqualFold(name, metaRest):
		return brokerproperties.ReadProperties(metaRest, []byte(text), m)
	default:
		setProperty(m, name, text)
	}
	return nil
}

// setProperty sets an application property. It replaces one whose name differs only in case, which may be from a former
// delivery.
func setProperty(m *semantics.Message, name, text string) {
	for other := range m.Properties {
		if strings.EqualFold(other, name) {
			delete(m.Properties, other)
		}
	}
	m.Properties[name] = semantics.String(text)
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) > len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
		return text[len(prefix):], true
	}
	return text, false
}

// eachMetadata calls set for the metadata that the app gets with the body, each name once.
func eachMetadata(m *semantics.Received, set func(name, value string)) {
	text := func(name, value string) {
		if value != "" {
			set(name, escape(value))
		}
	}
	instant := func(name string, at time.Time) {
		if !at.IsZero() {
			set(name, at.UTC().Format(http.TimeFormat))
		}
	}
	text(metaMessageID, m.MessageID)
	text(metaSessionID, m.SessionID)
	text(metaCorrelationID, m.CorrelationID)
	text(metaPartitionKey, m.PartitionKey)
	text(metaLabel, m.Subject)
	text(metaReplyTo, m.ReplyTo)
	text(metaReplyToSessionID, m.ReplyToSessionID)
	text(metaTo, m.To)
	text(metaContentType, m.ContentType)
	instant(metaScheduled, m.ScheduledAt)
	set(metaLockToken, base64.StdEncoding.EncodeToString(m.LockToken[:]))
	instant(metaLockedUntil, m.LockedUntil)
	instant(metaEnqueued, m.EnqueuedAt)
	set(metaSequenceNumber, strconv.FormatInt(m.SequenceNumber, 10))
	set(metaDeliveryCount, strconv.Itoa(m.DeliveryCount))
	var rest map[string]semantics.Value
	for name, value := range m.Properties {
		if plain := brokerproperties.Plain(value); isHeaderName(name) && isHeaderValue(plain) {
			set(name, plain)
			continue
		}
		if rest == nil {
			rest = map[string]semantics.Value{}
		}
		rest[name] = value
	}
	if rest != nil {
		set(metaRest, brokerproperties.WriteProperties(rest))
	}
}

// isHeaderName reports whether a property can be sent as a header of its own name, in HTTP and in gRPC. The names of
// headers with another meaning cannot.
func isHeaderName(name string) bool {
	isOther := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	}
	if _, isField := findMeta(name); isField || strings.EqualFold(name, metaRest) ||
		strings.HasSuffix(strings.ToLower(name), "-bin") {
		return false
	}
	return name != "" && !strings.ContainsFunc(name, isOther)
}

// isHeaderValue reports whether a header carries a text unchanged.
func isHeaderValue(text string) bool {
	isOther := func(r rune) bool { return r < ' ' || r > '~' }
	return !strings.ContainsFunc(text, isOther) && strings.TrimSpace(text) == text
}

// escape escapes a text that a header cannot carry. Without it, the app could not get the message.
func escape(text string) string {
	if isHeaderValue(text) {
		return text
	}
	return textPrefix + url.PathEscape(text)
}

// unescape is the opposite of escape.
func unescape(text string) string {
	if escaped, ok := cutPrefixFold(text, textPrefix); ok {
		if plain, err := url.PathUnescape(escaped); err == nil {
			return plain
		}
	}
	return text
}
