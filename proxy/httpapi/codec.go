package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"reflect"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
)

// codec is the JSON format of the API for grpc-gateway.
type codec struct{}

// ContentType returns the media type of responses.
func (codec) ContentType(any) string { return "application/json" }

// Marshal encodes a proto.Message, with a newline behind it for those who read the answer in a terminal.
func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a proto.Message", v)
	}
	return append(wirejson.Encode(m), '\n'), nil
}

// Unmarshal decodes into a proto.Message, or into a pointer to one, which it sets.
func (codec) Unmarshal(data []byte, v any) error {
	m, err := target(v)
	if err != nil {
		return err
	}
	return wirejson.Decode(data, m)
}

// NewEncoder returns an Encoder that writes to w.
func (c codec) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		data, err := c.Marshal(v)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
}

// NewDecoder returns a Decoder of a request body. For an empty body it returns io.EOF, which the gateway treats as an
// empty message.
func (c codec) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		b, ok := r.(*body)
		if !ok {
			return fmt.Errorf("%T is not a body that was read", r)
		}
		if len(bytes.TrimSpace(b.data)) == 0 {
			return io.EOF
		}
		m, err := target(v)
		if err != nil {
			return err
		}
		data := b.data
		b.data = nil // a waiting call must not keep it in memory
		b.Reset(nil)
		if err = wirejson.Decode(data, m); err != nil {
			b.exchange.refused = semantics.AsError(err)
		}
		return err
	})
}

// target returns the message to decode into. If the body is one field of a request, the gateway passes a pointer to
// that field, which is nil.
func target(v any) (proto.Message, error) {
	if m, ok := v.(proto.Message); ok {
		return m, nil
	}
	field := reflect.ValueOf(v)
	if field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Pointer {
		field.Elem().Set(reflect.New(field.Type().Elem().Elem()))
		if m, ok := field.Elem().Interface().(proto.Message); ok {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%T is not a proto.Message", v)
}
