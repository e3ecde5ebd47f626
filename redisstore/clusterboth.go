package redisstore

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// mostRedirections is how often the servers of a cluster may send a call on to another one.
const mostRedirections = 3

// processBoth sends a script to the server of its key, and the fence behind it over the same connection. The client
// would send a fence, which has no key, to any server. A server that redirects has done nothing.
func (c *cluster) processBoth(ctx context.Context, script call, f *fence) {
	server, err := c.of(ctx, firstKey(script))
	var asking []redis.Cmder
	for try := 0; ; try++ {
		if err != nil {
			script.SetErr(&unsent{err, causeUnreachable})
			return
		}
		f.pipelined(ctx, server, asking, script)
		err = script.Err()
		if err != nil {
			c.ReloadState(ctx) // the server may be gone, or not have the slot any more
		}
		word, rest, _ := strings.Cut(errorText(err), " ")
		if word != "ASK" && word != "MOVED" || try == mostRedirections {
			return
		}
		if asking = nil; word == "ASK" {
			asking = []redis.Cmder{redis.NewCmd(ctx, "asking")}
		}
		_, address, _ := strings.Cut(rest, " ")
		server, err = c.at(ctx, address)
		script.SetErr(nil)
		f.reset()
	}
}

// errorText returns what Redis answered instead of a value, "" if it did not.
func errorText(err error) string {
	var answered redis.Error
	if !errors.As(err, &answered) {
		return ""
	}
	return answered.Error()
}

// errUnknownServer means that a server names another one that the client does not know yet.
var errUnknownServer = errors.New("the cluster has a server that is not known yet")

// at returns the server with an address.
func (c *cluster) at(ctx context.Context, address string) (*redis.Client, error) {
	found := make(chan *redis.Client, 1)
	err := c.ForEachShard(ctx, func(_ context.Context, server *redis.Client) error {
		if server.Options().Addr == address {
			select {
			case found <- server:
			default:
			}
		}
		return nil
	})
	select {
	case server := <-found:
		return server, nil
	default:
		return nil, errors.Join(err, errUnknownServer)
	}
}
