package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// oneServer is a single Redis, or the one that Sentinels name at the time.
type oneServer struct {
	*redis.Client

	name string
}

func connectOne(o Options, onConnect func(context.Context, *redis.Conn) error, conns *openConns) (servers, error) {
	c, err := redis.ParseURL(o.URL)
	if err != nil {
		// The library's text may contain the URL and with it the password.
		return nil, semantics.Errorf(
			semantics.InvalidArgument,
			"store must be a URL like redis://user:password@host:6379/0, rediss://... or unix:///path",
		)
	}
	// go-redis repeats commands after network errors by default. A script that writes must not run twice, so the
	// outcome is reported as unknown instead (ERR-6).
	c.MaxRetries = -1
	c.DialerRetries = 1
	c.Protocol = 2
	c.DialTimeout = or(o.DialTimeout, c.DialTimeout)
	c.ReadTimeout = or(o.ReadTimeout, c.ReadTimeout)
	c.WriteTimeout = or(o.WriteTimeout, c.WriteTimeout)
	c.PoolSize = or(o.PoolSize, c.PoolSize)
	c.ConnMaxIdleTime = conns.idle
	c.ClientName = clientName
	c.OnConnect = onConnect
	if c.TLSConfig != nil {
		if err := setTLS(c.TLSConfig, o); err != nil {
			return nil, err
		}
	}
	client := redis.NewClient(c)
	client.AddHook(greeter{conns})
	return oneServer{client, c.Addr}, nil
}

func (o oneServer) universal() redis.UniversalClient { return o.Client }

// clientName is what CLIENT LIST shows.
const clientName = "sidebus"

func connectBySentinels(
	o Options, s several, onConnect func(context.Context, *redis.Conn) error, conns *openConns,
) (servers, error) {
	database := 0
	if len(s.path) == 2 {
		n, err := strconv.Atoi(s.path[1])
		if err != nil || n < 0 {
			return nil, badSeveral()
		}
		database = n
	}
	if len(s.path) < 1 || len(s.path) > 2 || s.path[0] == "" {
		return nil, badSeveral()
	}
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: s.path[0], SentinelAddrs: s.addresses, DB: database,
		Username: s.user, Password: s.password, TLSConfig: s.tls,
		MaxRetries: -1, DialerRetries: 1, Protocol: 2, // as for one Redis
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolSize: o.PoolSize,
		ConnMaxIdleTime: conns.idle, ClientName: clientName, OnConnect: onConnect,
	})
	client.AddHook(greeter{conns})
	return oneServer{client, fmt.Sprintf("%s of Sentinels %s", s.path[0], strings.Join(s.addresses, ","))}, nil
}

// nameOf returns what people know a server by: one that Sentinels name has no address of its own.
func (s *Store) nameOf(server *redis.Client) string {
	if one, is := s.servers.(oneServer); is {
		return one.name
	}
	return server.Options().Addr
}

func (o oneServer) named() string { return o.name }

func (o oneServer) primaries(context.Context) ([]*redis.Client, error) {
	return []*redis.Client{o.Client}, nil
}

func (o oneServer) of(context.Context, string) (*redis.Client, error) { return o.Client, nil }

func (o oneServer) pin() pinnedConnections { return onePin{o.Conn()} }

func (o oneServer) processBoth(ctx context.Context, script call, f *fence) {
	f.pipelined(ctx, o, nil, script)
}

// onePin is the connection to one server.
type onePin struct{ *redis.Conn }

func (p onePin) processBoth(ctx context.Context, script call, f *fence) {
	f.pipelined(ctx, p, nil, script)
}
