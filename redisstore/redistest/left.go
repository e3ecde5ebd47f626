package redistest

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Left returns the keys of a pattern except those that outlive the last entity: its mark that its ticket is gone, which
// ends after an hour, and the number of the last ticket.
func Left(ctx context.Context, client *redis.Client, pattern string) ([]string, error) {
	keys, err := client.Keys(ctx, pattern).Result()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(keys, func(key string) bool {
		return strings.HasSuffix(key, "}:barred") || strings.Contains(key, "}:deleted/") || strings.HasSuffix(key, "}:registered") && client.HLen(ctx, key).Val() == 1 && client.HExists(ctx, key, "").Val()
	}), nil
}
