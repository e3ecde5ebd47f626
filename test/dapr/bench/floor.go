package main

import (
	"context"
	"net"

	components "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
)

// floor is a component that answers at once and stores nothing: what no component of another process can be faster
// than. It delivers what was published from its memory.
type floor struct {
	components.UnimplementedPubSubServer
	published chan *components.PullMessagesResponse
}

// serveFloor serves the component at a socket until the process is killed.
func serveFloor(ctx context.Context, socket string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	const most = 1 << 20 // messages that wait: more than a round has
	components.RegisterPubSubServer(server, &floor{published: make(chan *components.PullMessagesResponse, most)})
	reflection.Register(server) // by which daprd finds out what the socket serves
	return server.Serve(listener)
}

func (*floor) Init(context.Context, *components.PubSubInitRequest) (*components.PubSubInitResponse, error) {
	return &components.PubSubInitResponse{}, nil
}

func (*floor) Features(context.Context, *components.FeaturesRequest) (*components.FeaturesResponse, error) {
	return &components.FeaturesResponse{Features: []string{"BULK_PUBSUB"}}, nil
}

func (*floor) Ping(context.Context, *components.PingRequest) (*components.PingResponse, error) {
	return &components.PingResponse{}, nil
}

func (f *floor) Publish(_ context.Context, r *components.PublishRequest) (*components.PublishResponse, error) {
	f.published <- &components.PullMessagesResponse{Data: r.GetData(), TopicName: r.GetTopic(), Id: "id"}
	return &components.PublishResponse{}, nil
}

func (f *floor) BulkPublish(_ context.Context, r *components.BulkPublishRequest) (
	*components.BulkPublishResponse, error,
) {
	for _, entry := range r.GetEntries() {
		f.published <- &components.PullMessagesResponse{Data: entry.GetEvent(), TopicName: r.GetTopic(), Id: "id"}
	}
	return &components.BulkPublishResponse{}, nil
}

// PullMessages delivers what is published, and reads the acknowledgments.
func (f *floor) PullMessages(stream components.PubSub_PullMessagesServer) error {
	if _, err := stream.Recv(); err != nil { // the topic
		return err
	}
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
	for {
		select {
		case m := <-f.published:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}
