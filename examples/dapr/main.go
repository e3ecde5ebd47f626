// Command dapr is an order app on Dapr, written with Dapr's Go SDK as for Azure Service Bus. It knows of no broker:
// that is for the Component file to say. It is two programs in one:
//
//	dapr warehouse 127.0.0.1:6000   takes orders; daprd calls it at that address
//	dapr shop                       places them, through the daprd that DAPR_GRPC_PORT or DAPR_GRPC_ENDPOINT tell
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	dapr "github.com/dapr/go-sdk/client"
	"github.com/dapr/go-sdk/service/common"
	service "github.com/dapr/go-sdk/service/grpc"
)

const (
	bus   = "bus" // the name of the Component
	topic = "orders"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "warehouse":
		err = warehouse(ctx, args[1])
	case len(args) == 1 && args[0] == "shop":
		err = shop(ctx)
	default:
		fmt.Fprintln(os.Stderr, "usage: dapr warehouse ADDRESS | dapr shop")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dapr:", err)
		os.Exit(1)
	}
}

// order is one step of a customer's order.
type order struct{ Customer, Step string }

func (o order) String() string { return o.Customer + " " + o.Step }

// shop places the orders of three customers, step by step and in turn. A customer is a session.
func shop(ctx context.Context) error {
	client, err := dapr.NewClient()
	if err != nil {
		return err
	}
	defer client.Close()
	for _, step := range []string{"ordered", "paid", "packed"} {
		for _, customer := range []string{"alice", "bob", "eve"} {
			err := client.PublishEvent(
				ctx,
				bus,
				topic,
				order{customer, step},
				dapr.PublishEventWithMetadata(map[string]string{
					"SessionId": customer, "Label": step, "ttlInSeconds": "3600",
				}),
			)
			if err != nil {
				return err
			}
		}
	}
	due := time.Now().Add(2 * time.Second)
	return client.PublishEvent(
		ctx,
		bus,
		topic,
		order{"alice", "reminded"},
		dapr.PublishEventWithMetadata(map[string]string{
			"SessionId": "alice", "ScheduledEnqueueTimeUtc": due.UTC().Format(http.TimeFormat),
		}),
	)
}

// warehouse takes orders until ctx ends: one of a customer at a time and in order, and of several customers at a time.
func warehouse(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("listens on %s\n", listener.Addr())
	w := &worker{tries: map[order]int{}}
	s := service.NewServiceWithListener(listener)
	// daprd 1.16 to 1.18.3 passes on one message of a stream at a time, and opens a stream for each of these names.
	for _, name := range []string{topic, topic + ";lane=2", topic + ";lane=3"} {
		err = errors.Join(err, s.AddTopicEventHandler(
			&common.Subscription{PubsubName: bus, Topic: name, Metadata: map[string]string{
				"requireSessions": "true", "maxConcurrentSessions": "1",
			}}, w.onOrder,
		))
	}
	err = errors.Join(err, s.AddTopicEventHandler(
		&common.Subscription{PubsubName: bus, Topic: topic + "/$deadletterqueue"}, w.onDeadLetter,
	))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = s.GracefulStop() })
	return s.Start()
}

type worker struct {
	mu    sync.Mutex
	tries map[order]int
}

// onOrder deals with one order. What it returns says what becomes of it.
func (w *worker) onOrder(_ context.Context, e *common.TopicEvent) (retry bool, err error) {
	var o order
	if err := e.Struct(&o); err != nil {
		return false, err // it will never be one
	}
	switch delivery := e.Metadata["deliverycount"]; {
	case o == order{"eve", "paid"}: // it fails each time, and is set aside in the end
		fmt.Printf("%s: failed, delivery %s\n", o, delivery)
		return true, errors.New("the card is refused")
	case o == order{"bob", "paid"} && w.isFirst(o): // not now: it comes again, before the next of bob's
		fmt.Printf("%s: retry\n", o)
		return true, errors.New("the bank is closed")
	default:
		fmt.Printf("%s: done, delivery %s\n", o, delivery)
		return false, nil
	}
}

// onDeadLetter deals with an order that was set aside.
func (w *worker) onDeadLetter(_ context.Context, e *common.TopicEvent) (retry bool, err error) {
	var o order
	if err := e.Struct(&o); err != nil {
		return false, err
	}
	fmt.Printf("%s: dead-lettered, %s\n", o, e.Metadata["deadletterreason"])
	return false, nil
}

func (w *worker) isFirst(o order) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries[o]++
	return w.tries[o] == 1
}
