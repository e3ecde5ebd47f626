package convert

import (
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/semantics"
)

// Descriptors of the sections of a message.
const (
	headerSection              = 0x70
	deliveryAnnotationsSection = 0x71
	messageAnnotationsSection  = 0x72
	propertiesSection          = 0x73
	applicationSection         = 0x74
	dataSection                = 0x75
	sequenceSection            = 0x76
	valueSection               = 0x77
	footerSection              = 0x78
)

var sectionNames = map[codec.Symbol]uint64{
	"amqp:header:list": headerSection, "amqp:delivery-annotations:map": deliveryAnnotationsSection,
	"amqp:message-annotations:map": messageAnnotationsSection, "amqp:properties:list": propertiesSection,
	"amqp:application-properties:map": applicationSection, "amqp:data:binary": dataSection,
	"amqp:amqp-sequence:list": sequenceSection, "amqp:amqp-value:*": valueSection, "amqp:footer:map": footerSection,
}

// maxSection is the most bytes of a section other than data. Headers and properties of a message have less (MSG-15),
// and decoding takes a multiple of it.
const maxSection = 256 << 10

// MaxRequest is the most bytes of the body of a request, which may carry messages.
const MaxRequest = semantics.MaxBatchSize + maxSection

// Sections are the sections of a message, decoded.
type Sections struct {
	Header              codec.List
	DeliveryAnnotations codec.Map
	Annotations         codec.Map
	Properties          codec.List
	Application         codec.Map
	Data                [][]byte
	Value               any
	HasValue            bool
	HasSequence         bool
	Footer              codec.Map

	bodies [][]byte // the sections of the body, encoded
}

func malformed(format string, args ...any) error {
	return semantics.Errorf(semantics.InvalidArgument, format, args...)
}

// Parse takes a message apart. Data refers to payload. It fails with INVALID_ARGUMENT or MESSAGE_SIZE_EXCEEDED.
func Parse(payload []byte) (*Sections, error) {
	s := &Sections{}
	for len(payload) > 0 {
		n, err := s.section(payload)
		if err != nil {
			return nil, err
		}
		payload = payload[n:]
	}
	return s, nil
}

// section reads the section that data begins with, and returns its length.
func (s *Sections) section(data []byte) (n int, err error) {
	if data[0] != 0 {
		return 0, malformed("the message has 0x%02x where a section must begin", data[0])
	}
	descriptor, n, err := codec.Decode(data[1:min(len(data), maxSection)])
	if err != nil {
		return 0, malformed("the message is malformed: %s", err)
	}
	code, ok := descriptor.(uint64)
	if name, isSymbol := descriptor.(codec.Symbol); isSymbol {
		code, ok = sectionNames[name]
	}
	n++
	if !ok || n >= len(data) {
		return 0, malformed("the message has a section that AMQP does not know, or that ends early")
	}
	const binary8, binary32 = 0xa0, 0xb0
	most := min(len(data), n+maxSection)
	switch {
	case code == valueSection, code == sequenceSection:
		most = min(len(data), n+MaxRequest)
	case code == dataSection && data[n] != binary8 && data[n] != binary32:
		return 0, malformed("the message has a data section that is not binary")
	case code == dataSection:
		most = len(data)
	}
	value, length, err := codec.Decode(data[n:most])
	if err != nil && most < len(data) {
		what := "headers and properties"
		if code == valueSection || code == sequenceSection {
			what = "amqp-value or amqp-sequence"
		}
		return 0, semantics.SizeExceeded(what, int64(len(data)-n), int64(most-n))
	}
	if err != nil {
		return 0, malformed("the message is malformed: %s", err)
	}
	n += length
	if code >= dataSection && code <= valueSection {
		s.bodies = append(s.bodies, data[:n])
	}
	return n, s.set(code, value)
}

// set keeps a section.
func (s *Sections) set(code uint64, value any) error {
	list, isList := value.(codec.List)
	mapping, isMap := value.(codec.Map)
	ok := true
	switch code {
	case headerSection:
		s.Header, ok = list, isList
	case deliveryAnnotationsSection:
		s.DeliveryAnnotations, ok = mapping, isMap
	case messageAnnotationsSection:
		s.Annotations, ok = mapping, isMap
	case propertiesSection:
		s.Properties, ok = list, isList
	case applicationSection:
		s.Application, ok = mapping, isMap
	case dataSection:
		s.Data = append(s.Data, value.([]byte)) // section has checked that
	case valueSection:
		s.Value, s.HasValue = value, true
	case sequenceSection:
		s.HasSequence, ok = true, isList
	case footerSection:
		s.Footer, ok = mapping, isMap
	default:
		ok = false
	}
	if !ok {
		return malformed("the message has a section 0x%02x that is not what AMQP has there", code)
	}
	return nil
}

// Field returns a field of a list, nil if it is missing.
func Field(list codec.List, at int) any {
	if at >= len(list) {
		return nil
	}
	return list[at]
}

// Request is a message to a node that answers.
type Request struct {
	ID      any // of the message, for the answer
	ReplyTo string
	Args    codec.Map // application properties
	Body    any
}

// ParseRequest reads a request.
func ParseRequest(payload []byte) (Request, error) {
	s, err := Parse(payload)
	if err != nil {
		return Request{}, err
	}
	replyTo, _ := codec.Text(Field(s.Properties, replyToField))
	return Request{ID: Field(s.Properties, idField), ReplyTo: replyTo, Args: s.Application, Body: s.Value}, nil
}

// Command reads a message whose body is an amqp-value with a described list, and returns its descriptor as a number.
func Command(payload []byte, names map[codec.Symbol]uint64) (code uint64, fields codec.List, err error) {
	s, err := Parse(payload)
	if err != nil {
		return 0, nil, err
	}
	described, _ := s.Value.(codec.Described)
	fields, isList := described.Value.(codec.List)
	if !isList {
		return 0, nil, malformed("the body must be an amqp-value with a described list")
	}
	code, isCode := described.Descriptor.(uint64)
	if name, isSymbol := described.Descriptor.(codec.Symbol); isSymbol && !isCode {
		code = names[name]
	}
	return code, fields, nil
}

// Response writes the answer to the request with an id.
func Response(id any, application codec.Map, body any) []byte {
	properties := make(codec.List, correlation+1)
	properties[correlation] = id
	b := appendSection(nil, propertiesSection, properties)
	b = appendSection(b, applicationSection, application)
	return appendSection(b, valueSection, body)
}

// appendSection adds an encoded section.
func appendSection(b []byte, code uint64, value any) []byte {
	return codec.Append(b, codec.Described{Descriptor: code, Value: value})
}
