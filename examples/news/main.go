// Command news is a reader of the news: it takes what comes to a subscription and prints it, one news a line, as JSON, until it is
// told to stop. See README.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: news SUBSCRIPTION, such as topics/news/subscriptions/europe, with the sidecar's address in $GRPC")
		os.Exit(2)
	}
	if err := read(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "news:", err)
		os.Exit(1)
	}
}

// news is what the reader sees of a message.
type news struct {
	Number     int64  `json:"number"` // given by the topic, so the same in every subscription
	Text       string `json:"text"`
	RuleName   string `json:"ruleName"` // "" on a copy that no action made
	Edition    string `json:"edition"`  // set by the action of the digest
	TimeToLive string `json:"timeToLive"`
}

// read prints all news of a subscription. To its readers it is a queue: with two of them each news goes to one.
func read(ctx context.Context, subscription string) error {
	conn, err := grpc.NewClient(os.Getenv("GRPC"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	paper := json.NewEncoder(os.Stdout)
	open := &sidebusv1.SubscribeOpen{Source: subscription}
	return sidebusv1.Handle(ctx, sidebusv1.NewMessagesClient(conn), open, func(_ context.Context, m *sidebusv1.HandledMessage) error {
		n := news{
			Number:   m.GetEnqueuedSequenceNumber(),
			Text:     m.GetText(),
			RuleName: m.GetProperties()["RuleName"].GetStringValue(),
			Edition:  m.GetProperties()["edition"].GetStringValue(),
		}
		if m.TimeToLive != nil {
			n.TimeToLive = m.GetTimeToLive().AsDuration().String()
		}
		return paper.Encode(n)
	}, sidebusv1.OnFailure(func(err error) { fmt.Fprintln(os.Stderr, "news:", err) }))
}
