package grpcapi

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// sending is a request with messages to send. The messages are decoded apart from the rest, which is much cheaper than
// with the generated code (docs/decisions/0027-messages-are-kept-as-the-wire-has-them.md). A stream decodes all its
// requests into one.
type sending[Request proto.Message] struct {
	request  Request // without the messages
	field    protowire.Number
	messages []*semantics.Message
	count    int           // of the messages; none is decoded if they are too many
	refused  map[int]error // by position, why a message cannot be sent
	bytes    int

	values [][]byte // of the messages, during decode
	rest   []byte   // of the request, encoded
}

func newSendRequest() *sending[*sidebusv1.SendRequest] {
	return &sending[*sidebusv1.SendRequest]{request: &sidebusv1.SendRequest{}, field: 2}
}

func newPublishRequest() *sending[*sidebusv1.PublishRequest] {
	return &sending[*sidebusv1.PublishRequest]{request: &sidebusv1.PublishRequest{}, field: 3}
}

// decode reads the request. The messages refer to data, which must not change any more.
func (r *sending[Request]) decode(data []byte) error {
	r.bytes, r.refused = len(data), nil
	if err := r.cut(data); err != nil {
		return err
	}
	if err := proto.Unmarshal(r.rest, r.request); err != nil {
		return err
	}
	all := make([]semantics.Message, len(r.values))
	r.messages = make([]*semantics.Message, len(r.values))
	for i, message := range r.values {
		r.messages[i] = &all[i]
		refused, err := wire.DecodeMessage(message, &all[i])
		if err != nil {
			return err
		}
		if refused != nil && r.refused == nil {
			r.refused = map[int]error{i: refused} // the first one fails the call
		}
	}
	return nil
}

// release drops what was decoded, so that a stream that waits for its next request does not keep the last one.
func (r *sending[Request]) release() {
	const mostKept = 4 << 10
	r.messages = nil
	clear(r.values)
	if cap(r.rest) > mostKept {
		r.rest = nil
		proto.Reset(r.request)
	}
}

// cut finds the encoded messages and the other fields. It finds no messages if there are more than in a batch: they
// would need much more memory than the request.
func (r *sending[Request]) cut(data []byte) error {
	r.values, r.count, r.rest = r.values[:0], 0, r.rest[:0]
	for len(data) > 0 {
		number, kind, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		n := protowire.ConsumeFieldValue(number, kind, data[tag:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		if number == r.field && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data[tag:])
			if r.count++; r.count > semantics.MaxBatchMessages {
				r.values = nil
			} else {
				r.values = append(r.values, value)
			}
		} else {
			r.rest = append(r.rest, data[:tag+n]...)
		}
		data = data[tag+n:]
	}
	return nil
}

// checked returns the messages, or the error of the first that cannot be sent, with its position.
func (r *sending[Request]) checked() ([]*semantics.Message, error) {
	if r.count > semantics.MaxBatchMessages {
		return nil, semantics.TooManyMessages(r.count)
	}
	for i, m := range r.messages {
		err := r.refused[i]
		if err == nil {
			err = checkSize(m, OverGRPC)
		}
		if err != nil {
			return nil, semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
	}
	return r.messages, nil
}

// handleSend is the generated handler of Send, except for the messages.
func handleSend(
	srv any, ctx context.Context, //nolint:revive // in the order of a grpc.MethodHandler
	decode func(any) error, interceptor grpc.UnaryServerInterceptor,
) (any, error) {
	in := newSendRequest()
	if err := decode(in); err != nil {
		return nil, err
	}
	return interceptor(ctx, in.request, nil, func(ctx context.Context, _ any) (any, error) {
		return srv.(*Messages).sendMessages(ctx, in.request, in.checked)
	})
}
