package brokerproperties

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

// Message returns the message in the headers of a request, without its body (REST-1, REST-2). spelling maps canonical
// names of headers to the sender's spelling; a name that is missing keeps its canonical form. Message returns
// INVALID_ARGUMENT. It does not check what semantics.Message.Validate checks.
func Message(header http.Header, spelling map[string]string) (*semantics.Message, error) {
	m := &semantics.Message{ContentType: header.Get("Content-Type"), Properties: map[string]semantics.Value{}}
	if err := readBrokerProperties(header.Values(Header), m); err != nil {
		return nil, err
	}
	for _, canonical := range slices.Sorted(maps.Keys(header)) {
		if isStandard(canonical) {
			continue
		}
		name := canonical
		if spelled, ok := spelling[canonical]; ok {
			name = spelled
		}
		if len(header[canonical]) != 1 {
			return nil, refuse(semantics.InvalidArgument, "properties["+semantics.Shorten(name)+"]", "stands in more than one header")
		}
		value, err := parseValue(header[canonical][0])
		if err != nil {
			return nil, refuse(semantics.InvalidArgument, "properties["+semantics.Shorten(name)+"]", "%s", err.Error())
		}
		m.Properties[name] = value
	}
	if err := readProperties(PropertiesHeader, header.Values(PropertiesHeader), m); err != nil {
		return nil, err
	}
	return m, refuseLineBreaks(m)
}

func readBrokerProperties(values []string, m *semantics.Message) error {
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return refuse(semantics.InvalidArgument, Header, "stands in more than one header")
	}
	return Parse([]byte(values[0]), m)
}

// Parse reads broker properties into a message (REST-2). It ignores unknown properties and those that a sender cannot
// set; null counts as absent. If the text is not a JSON object, or a property has the wrong type, it returns
// INVALID_ARGUMENT.
func Parse(text []byte, m *semantics.Message) error {
	fields, err := objectOf(text)
	if err != nil {
		return refuse(semantics.InvalidArgument, Header, "must be a JSON object in valid UTF-8")
	}
	// TimeToLive before TimeToLiveTimeSpan, which is exact and wins
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		raw := fields[name]
		read, ok := readers[name]
		if !ok || string(raw) == "null" {
			continue
		}
		if err := read(raw, m); err != nil {
			return refuse(semantics.InvalidArgument, name, "%s", err.Error())
		}
	}
	if id, ok := fields["MessageId"]; ok && string(id) != "null" {
		return semantics.CheckMessageID(&m.MessageID)
	}
	return nil
}

// readers read the broker properties that a sender may set.
var readers = map[string]func(raw []byte, m *semantics.Message) error{
	"CorrelationId":    text(func(m *semantics.Message) *string { return &m.CorrelationID }),
	"Label":            text(func(m *semantics.Message) *string { return &m.Subject }),
	"MessageId":        text(func(m *semantics.Message) *string { return &m.MessageID }),
	"PartitionKey":     text(func(m *semantics.Message) *string { return &m.PartitionKey }),
	"ReplyTo":          text(func(m *semantics.Message) *string { return &m.ReplyTo }),
	"ReplyToSessionId": text(func(m *semantics.Message) *string { return &m.ReplyToSessionID }),
	"SessionId":        text(func(m *semantics.Message) *string { return &m.SessionID }),
	"To":               text(func(m *semantics.Message) *string { return &m.To }),

	// These have no effect.
	"ViaPartitionKey": text(func(*semantics.Message) *string { return new(string) }),
	"ForcePersistence": func(raw []byte, _ *semantics.Message) error {
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return errors.New("must be true or false")
		}
		return nil
	},

	"ScheduledEnqueueTimeUtc": func(raw []byte, m *semantics.Message) error {
		s, err := parseString(raw)
		if err == nil {
			m.ScheduledAt, err = ParseInstant(s)
		}
		return err
	},
	"TimeToLive": func(raw []byte, m *semantics.Message) error {
		return setLifetime(m)(parseSeconds(raw))
	},
	"TimeToLiveTimeSpan": func(raw []byte, m *semantics.Message) error {
		s, err := parseString(raw)
		if err != nil {
			return err
		}
		return setLifetime(m)(parseTimeSpan(s))
	},
}

func text(of func(*semantics.Message) *string) func([]byte, *semantics.Message) error {
	return func(raw []byte, m *semantics.Message) (err error) {
		*of(m), err = parseString(raw)
		return err
	}
}

func setLifetime(m *semantics.Message) func(time.Duration, error) error {
	return func(d time.Duration, err error) error {
		if err == nil {
			m.TimeToLive = &d
		}
		return err
	}
}

func readProperties(field string, values []string, m *semantics.Message) error {
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return refuse(semantics.InvalidArgument, field, "stands in more than one header")
	}
	return ReadProperties(field, []byte(values[0]), m)
}

// ReadProperties reads application properties from a JSON object, as WriteProperties writes it, and adds them to those
// of a message. field is the name for errors. It returns INVALID_ARGUMENT.
func ReadProperties(field string, object []byte, m *semantics.Message) error {
	fields, err := objectOf(object)
	if err != nil {
		return refuse(semantics.InvalidArgument, field, "must be a JSON object in valid UTF-8")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, err := parseJSONValue(fields[name])
		if err != nil {
			return refuse(semantics.InvalidArgument, "properties["+semantics.Shorten(name)+"]", "%s", err.Error())
		}
		if _, twice := m.Properties[name]; twice {
			return refuse(semantics.InvalidArgument, "properties["+semantics.Shorten(name)+"]", "appears twice")
		}
		m.Properties[name] = value
	}
	return nil
}

// objectOf returns the members of a JSON object. Of a duplicate name the last value counts, as usual in JSON.
func objectOf(raw []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if !utf8.Valid(raw) {
		return nil, errors.New("no UTF-8")
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if fields == nil { // null
		return nil, errors.New("no object")
	}
	return fields, nil
}

// refuseLineBreaks rejects texts that would begin another header if they were written unescaped (REST-12).
func refuseLineBreaks(m *semantics.Message) error {
	texts := map[string]string{
		"MessageId": m.MessageID, "SessionId": m.SessionID, "PartitionKey": m.PartitionKey,
		"CorrelationId": m.CorrelationID, "Label": m.Subject,
		"To": m.To, "ReplyTo": m.ReplyTo, "ReplyToSessionId": m.ReplyToSessionID,
	}
	for name, value := range m.Properties {
		field := "properties[" + name + "]"
		texts[field] = name
		if value.Type() == semantics.TypeString {
			texts[field] += value.Text()
		}
	}
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		if strings.ContainsAny(texts[field], "\r\n") {
			return refuse(semantics.InvalidArgument, field, "must not contain a line break")
		}
	}
	return nil
}

// Batch reads the messages of a batch (REST-3). An error carries the position of the invalid message (BATCH-1).
func Batch(data []byte) ([]*semantics.Message, error) {
	var items []json.RawMessage
	if !utf8.Valid(data) || json.Unmarshal(data, &items) != nil || items == nil {
		return nil, refuse(semantics.InvalidArgument, "body", "must be a JSON array of messages in valid UTF-8")
	}
	messages := make([]*semantics.Message, len(items))
	for i, item := range items {
		var err error
		if messages[i], err = batchMessage(item); err != nil {
			return nil, semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
	}
	return messages, nil
}

func batchMessage(item []byte) (*semantics.Message, error) {
	fields, err := objectOf(item)
	if err != nil {
		return nil, refuse(semantics.InvalidArgument, "body", "must contain JSON objects only")
	}
	given := func(name string) ([]byte, bool) {
		raw, ok := fields[name]
		return raw, ok && string(raw) != "null"
	}
	m := &semantics.Message{Properties: map[string]semantics.Value{}, BodyKind: semantics.BodyText}
	if raw, ok := given("Body"); ok {
		s, err := parseString(raw)
		if err != nil {
			return nil, refuse(semantics.InvalidArgument, "Body", "%s", err.Error())
		}
		m.Body = []byte(s)
	}
	if raw, ok := given("IsBodyBase64"); ok {
		if err := readBase64(raw, m); err != nil {
			return nil, err
		}
	}
	if raw, ok := given("BrokerProperties"); ok {
		if err := Parse(raw, m); err != nil {
			return nil, err
		}
	}
	if raw, ok := given("UserProperties"); ok {
		if err := ReadProperties("UserProperties", raw, m); err != nil {
			return nil, err
		}
	}
	return m, refuseLineBreaks(m)
}

func readBase64(raw []byte, m *semantics.Message) error {
	var isBase64 bool
	if json.Unmarshal(raw, &isBase64) != nil {
		return refuse(semantics.InvalidArgument, "IsBodyBase64", "must be true or false")
	}
	if !isBase64 {
		return nil
	}
	body, err := base64.StdEncoding.DecodeString(string(m.Body))
	if err != nil {
		return refuse(semantics.InvalidArgument, "Body", "must be base64, as IsBodyBase64 says")
	}
	m.Body, m.BodyKind = body, semantics.BodyBytes
	return nil
}

func refuse(code semantics.Code, field, format string, args ...any) error {
	field = semantics.Shorten(field)
	return semantics.Errorf(code, "%s %s", field, fmt.Sprintf(format, args...)).With(semantics.DetailField, field)
}
