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
	client, err := connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func connect(url string) (redis.UniversalClient, error) {
	scheme, rest, _ := strings.Cut(url, "://")
	hosts, master, _ := strings.Cut(rest, "/")
	addresses := strings.Split(hosts, ",")
	switch scheme {
	case "redis+cluster":
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addresses, DialTimeout: Patience, ReadTimeout: Patience, WriteTimeout: Patience,
		}), nil
	case "redis+sentinel":
		return redis.NewFailoverClient(&redis.FailoverOptions{
			SentinelAddrs: addresses, MasterName: master, DialTimeout: Patience, ReadTimeout: Patience, WriteTimeout: Patience,
		}), nil
	default:
		options, err := optionsOf(url)
		if err != nil {
			return nil, err
		}
		return redis.NewClient(options), nil
	}
}

// ClientOptions returns how a test connects to the Redis of a URL. Its calls have as long as a busy machine needs.
func ClientOptions(t testing.TB, url string) *redis.Options {
	t.Helper()
	options, err := optionsOf(url)
	if err != nil {
		t.Fatal(err)
	}
	return options
}

func optionsOf(url string) (*redis.Options, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = Patience, Patience, Patience
	return options, nil
}
