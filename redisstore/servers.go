package redisstore

import (
	"context"
	"crypto/tls"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// servers are where a Store has its keys: one Redis, the one that Sentinels name, or a Redis Cluster.
type servers interface {
	redisClient
	Close() error

	// primaries returns all primaries.
	primaries(ctx context.Context) ([]*redis.Client, error)
	// of returns the server that has a key or a channel.
	of(ctx context.Context, key string) (*redis.Client, error)
	// pin returns connections that no other caller uses, at most one to each server. The caller closes them.
	pin() pinnedConnections
	// universal returns the client for commands of any kind.
	universal() redis.UniversalClient
	// named returns what people know the servers by.
	named() string
}

// redisClient sends commands over one connection, or over any of many.
type redisClient interface {
	Process(ctx context.Context, command redis.Cmder) error
	// processBoth sends a script and the fence behind it over one connection. Their errors are in them.
	processBoth(ctx context.Context, script call, f *fence)
	Pipelined(ctx context.Context, add func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// pinnedConnections fail for good once one of them is lost.
type pinnedConnections interface {
	redisClient
	Close() error
}

// Ways to reach Redis, by the scheme of the URL without what stands for TLS.
const (
	schemeSentinel = "redis+sentinel"
	schemeCluster  = "redis+cluster"
)

// connect returns the servers of a URL. onConnect is called for each new connection.
func connect(o Options, onConnect func(context.Context, *redis.Conn) error, conns *openConns) (servers, error) {
	scheme, rest, _ := strings.Cut(o.URL, "://")
	plain, isTLS := scheme, false
	if after, is := strings.CutPrefix(scheme, "rediss+"); is {
		plain, isTLS = "redis+"+after, true
	}
	if plain != schemeSentinel && plain != schemeCluster {
		return connectOne(o, onConnect, conns)
	}
	several, err := parseSeveral(rest)
	if err != nil {
		return nil, err
	}
	if isTLS {
		several.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if err := setTLS(several.tls, o); err != nil {
			return nil, err
		}
	}
	if plain == schemeSentinel {
		return connectBySentinels(o, several, onConnect, conns)
	}
	return connectCluster(o, several, onConnect, conns)
}

// several are servers by their addresses, as redis+sentinel:// and redis+cluster:// name them.
type several struct {
	user, password string
	addresses      []string
	path           []string // the parts between slashes
	tls            *tls.Config
}

// parseSeveral reads what follows "://": [user:password@]host:port,host:port[/part]...
func parseSeveral(text string) (several, error) {
	var s several
	// A URL has one host, so the list is read apart. Errors do not repeat the text, which may have a password.
	credentials, rest, has := cutLast(text, "@")
	if !has {
		credentials, rest = "", text
	}
	parsed, err := url.Parse("redis://" + credentials + "@host")
	if err != nil {
		return s, badSeveral()
	}
	s.user = parsed.User.Username()
	s.password, _ = parsed.User.Password()
	hosts, path, _ := strings.Cut(rest, "/")
	for address := range strings.SplitSeq(hosts, ",") {
		one, err := url.Parse("redis://" + address)
		if err != nil || one.Hostname() == "" || one.Port() == "" || one.Host != address {
			return s, badSeveral()
		}
		s.addresses = append(s.addresses, address)
	}
	if path != "" {
		s.path = strings.Split(path, "/")
	}
	return s, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

func badSeveral() error {
	return semantics.Errorf(
		semantics.InvalidArgument,
		"store must be a URL like redis+sentinel://user:password@host:26379,host:26379/<master>/0 or "+
			"redis+cluster://user:password@host:6379,host:6379",
	)
}
