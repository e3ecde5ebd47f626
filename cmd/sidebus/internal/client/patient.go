package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
)

// Pauses before a call is repeated, when the failure does not say how long to wait.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = time.Second
)

// Patient returns a connection that repeats a call as long as waits says of its failure that it will pass, until the
// context ends. It is for calls that may be repeated.
func Patient(conn grpc.ClientConnInterface, waits func(*Failure) bool) grpc.ClientConnInterface {
	return patient{conn, waits}
}

type patient struct {
	grpc.ClientConnInterface

	waits func(*Failure) bool
}

// Invoke makes a call, again and again if need be.
func (p patient) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := p.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
		var failure *Failure
		if !errors.As(err, &failure) || !p.waits(failure) {
			return err
		}
		next := time.NewTimer(max(pause, failure.RetryAfter))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return context.Cause(ctx)
		}
	}
}
