package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Multiplex answers the calls of each request at once, together.
func (s *floorServer) Multiplex(
	stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse],
) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		response := &sidebusv1.MultiplexResponse{}
		for _, call := range request.GetCalls() {
			encoded, err := s.answer(stream.Context(), call)
			if err != nil {
				return err
			}
			response.Answers = append(
				response.Answers, &sidebusv1.MultiplexResponse_Answer{Id: call.GetId(), Response: encoded},
			)
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

// answer runs one call.
func (s *floorServer) answer(ctx context.Context, call *sidebusv1.MultiplexRequest_Call) ([]byte, error) {
	switch call.GetMethod() {
	case sidebusv1.Messages_Send_FullMethodName:
		return answered(ctx, call, s.Send)
	case sidebusv1.Messages_Receive_FullMethodName:
		return answered(ctx, call, s.Receive)
	case sidebusv1.Messages_Complete_FullMethodName:
		return answered(ctx, call, s.Complete)
	case sidebusv1.Messages_CompleteAndReceive_FullMethodName:
		return answered(ctx, call, s.CompleteAndReceive)
	default:
		return nil, fmt.Errorf("there is no %s", call.GetMethod())
	}
}

func answered[Request, Response any, R interface {
	*Request
	proto.Message
}, A interface {
	*Response
	proto.Message
}](
	ctx context.Context, call *sidebusv1.MultiplexRequest_Call, run func(context.Context, R) (A, error),
) ([]byte, error) {
	request := R(new(Request))
	if err := proto.Unmarshal(call.GetRequest(), request); err != nil {
		return nil, err
	}
	response, err := run(ctx, request)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(response)
}
