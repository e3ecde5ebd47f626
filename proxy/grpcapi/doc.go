// Package grpcapi serves the services of sidebus.v1 by translating to and from broker.Broker. It has no rules of its
// own: it rejects only what it cannot translate. proxy/httpapi serves the same objects as JSON.
//
// Methods return a *semantics.Error. Register converts it to a gRPC status, proxy/httpapi to an HTTP response.
package grpcapi
