package redistest

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Client returns a client of the servers of a URL, as a Store has it, and closes it with the test. Its calls have as
// long as a busy machine needs.
func Client(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	scheme, rest, _ := strings.Cut(url, "://")
	hosts, master, _ := strings.Cut(rest, "/")
	addresses := strings.Split(hosts, ",")
	var client redis.UniversalClient
	switch scheme {
	case "redis+cluster":
		client = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addresses, DialTimeout: Patience, ReadTimeout: Patience, WriteTimeout: Patience,
		})
	case "redis+sentinel":
		client = redis.NewFailoverClient(&redis.FailoverOptions{
			SentinelAddrs: addresses, MasterName: master, DialTimeout: Patience, ReadTimeout: Patience, WriteTimeout: Patience,
		})
	default:
		client = redis.NewClient(ClientOptions(t, url))
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// ClientOptions returns how a test connects to the Redis of a URL. Its calls have as long as a busy machine needs.
func ClientOptions(t testing.TB, url string) *redis.Options {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = Patience, Patience, Patience
	return options
}
