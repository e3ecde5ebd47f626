// Package client is the Go client of Sidebus: senders, receivers, sessions and handlers over the gRPC API of a sidecar.
// Its names are those of github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus, so that you know it if you know
// that. It depends on gRPC and protobuf alone.
//
//	sidebus, err := client.New("", nil) // SIDEBUS_GRPC_ADDR, or 127.0.0.1:7421
//	defer sidebus.Close()
//
// # Three tasks, side by side
//
// Left with azservicebus, right with this package; the handling of errors is left out.
//
// Send:
//
//	c, err := azservicebus.NewClient(ns, cred, nil)        | c, err := client.New("", nil)
//	s, err := c.NewSender("orders", nil)                   | s, err := c.NewSender("orders", nil)
//	err = s.SendMessage(ctx,                               | err = s.SendMessage(ctx,
//	    &azservicebus.Message{Body: []byte("tea")}, nil)   |     &client.Message{Body: []byte("tea")}, nil)
//
// Receive and settle:
//
//	r, err := c.NewReceiverForQueue("orders", nil)         | r, err := c.NewReceiverForQueue("orders", nil)
//	ms, err := r.ReceiveMessages(ctx, 10, nil)             | ms, err := r.ReceiveMessages(ctx, 10, nil)
//	for _, m := range ms {                                 | for _, m := range ms {
//	    work(m.Body)                                       |     work(m.Body)
//	    err = r.CompleteMessage(ctx, m, nil)               |     err = r.CompleteMessage(ctx, m, nil)
//	}                                                      | }
//
// Process a session:
//
//	                                                       | o := client.SessionReceiverOptions{
//	                                                       |     MaxAutoRenew: time.Hour}
//	r, err := c.AcceptNextSessionForQueue(ctx, "steps",    | r, err := c.AcceptNextSessionForQueue(ctx, "steps",
//	    nil)                                               |     &o)
//	defer r.Close(context.WithoutCancel(ctx))              | defer r.Close(context.WithoutCancel(ctx))
//	state, err := r.GetSessionState(ctx, nil)              | state, err := r.GetSessionState(ctx, nil)
//	ms, err := r.ReceiveMessages(ctx, 10, nil)             | ms, err := r.ReceiveMessages(ctx, 10, nil)
//	// ... work, complete each, in another goroutine:      | // ... work, complete each
//	err = r.RenewSessionLock(ctx, nil)                     |
//	err = r.SetSessionState(ctx, state, nil)               | err = r.SetSessionState(ctx, state, nil)
//
// There is a fourth that azservicebus has not: [Receiver.Handle] calls a function with each message, several at a time,
// sessions in their order, renews the locks and settles by what the function returns.
//
// # Repeats and failures
//
// A call that fails because no sidecar answers, Redis is away, or the rate limit is reached is repeated, with pauses of
// 100 ms to 5 s, until its context ends or for Options.RetryTimeout. That is safe: a send has a request id under which
// messages are stored once, and a settlement that took effect already counts as success. Calls that cannot be repeated
// safely say so in their comments.
//
// What fails for good is an [Error]. Compare its [Code] with errors.Is, or look at Retryable, RetryAfter and
// OutcomeUnknown.
//
// # What is not here
//
// [Client.Admin] is the generated client for queues, topics, subscriptions and rules. [Client.Conn] is the connection
// for the other generated clients in github.com/sidebus/sidebus/proto/sidebus/v1: purge, resubmit, lists of sessions,
// the Publish stream.
package client
