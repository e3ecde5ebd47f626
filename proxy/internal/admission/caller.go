package admission

import (
	"context"
	"net"
	"strconv"
)

// CallerOf returns who makes a call, as far as it is known: a connection over gRPC, on which a client makes all its
// calls; over HTTP, where it may open one for each call, the address of the client.
func CallerOf(ctx context.Context) string {
	if c := connOf(ctx); c != nil {
		return "grpc " + strconv.FormatUint(c.number, 10)
	}
	if v, ok := ctx.Value(requestKey{}).(*httpRequest); ok && v.conn != nil {
		host, _, _ := net.SplitHostPort(v.conn.RemoteAddr().String()) // a unix socket has none
		return "http " + host
	}
	return ""
}
