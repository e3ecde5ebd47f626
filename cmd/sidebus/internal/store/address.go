package store

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
)

// schemes are those of --store.
const schemes = "redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"

var errTwoPasswords = fmt.Errorf(
	"--store has a password, and %s or --redis-password-file has another; use one", settings.PasswordVariable,
)

// errUserAlone: Redis asks for no user then, and would take the sidecar for its default user.
var errUserAlone = settings.Bad(
	"store", "has a user and no password; set %s or --redis-password-file, or if it is the password, "+
		"write it behind a colon, as in redis://:password@host:6379", settings.PasswordVariable,
)

// redisURL checks an address and puts the separate password into it. Its errors never repeat the address, in which a
// password can be anywhere.
func redisURL(store, password string) (string, error) {
	scheme, rest, isURL := strings.Cut(store, "://")
	switch {
	case !isURL:
		return "", settings.Bad("store", "must be a %s URL, embedded or memory", schemes)
	case strings.HasPrefix(scheme, "redis+"), strings.HasPrefix(scheme, "rediss+"):
		return severalURL(store, scheme, rest, password)
	case scheme != "redis" && scheme != "rediss" && scheme != "unix":
		return "", settings.Bad("store", "must begin with %s", schemes)
	}
	parsed, err := url.Parse(store)
	switch {
	case err != nil || scheme == "unix" && parsed.Path == "" || scheme != "unix" && parsed.Host == "":
		return "", settings.Bad(
			"store", "is not a valid %s:// URL; special characters in user and password must be percent-encoded",
			scheme,
		)
	case strings.Contains(parsed.Host, ","):
		return "", settings.Bad("store", "has several hosts; name them by redis+sentinel:// or redis+cluster://")
	case parsed.Port() != "" && !isPort(parsed.Port()):
		return "", errPort
	}
	user, present := "", ""
	if parsed.User != nil {
		user = parsed.User.Username()
		present, _ = parsed.User.Password()
	}
	switch {
	case password != "" && present != "":
		return "", errTwoPasswords
	case password != "":
		parsed.User = url.UserPassword(user, password)
		return parsed.String(), nil
	case user != "" && present == "":
		return "", errUserAlone
	default:
		return store, nil
	}
}

// severalURL is redisURL for Sentinels and clusters.
func severalURL(store, scheme, rest, password string) (string, error) {
	begin, user, present, where, is := settings.Several(store)
	if !is {
		return "", settings.Bad("store", "%s", faultOfSeveral(scheme, rest))
	}
	hosts, _, _ := strings.Cut(where, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if _, port, err := net.SplitHostPort(host); err != nil || !isPort(port) {
			return "", errPort
		}
	}
	switch hasPassword := len(present) > len(":"); {
	case password != "" && hasPassword:
		return "", errTwoPasswords
	case password != "":
		return begin + url.UserPassword(user, password).String() + "@" + where, nil
	case user != "" && !hasPassword:
		return "", errUserAlone
	default:
		return store, nil
	}
}

// faultOfSeveral returns what is wrong with an address of Sentinels or a cluster.
func faultOfSeveral(scheme, rest string) string {
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = rest[i+1:]
	}
	hosts, name, hasPath := strings.Cut(rest, "/")
	isSentinel := scheme == "redis+sentinel" || scheme == "rediss+sentinel"
	isCluster := scheme == "redis+cluster" || scheme == "rediss+cluster"
	_, _, _, _, areHosts := settings.Several("redis+cluster://" + hosts)
	_, _, _, _, isRest := settings.Several(scheme + "://" + rest)
	switch {
	case !isSentinel && !isCluster:
		return "must begin with " + schemes
	case strings.ContainsAny(rest, "?#"):
		return "must have no ? and no # for Sentinels and clusters; their options are flags, such as --redis-pool-size"
	case !areHosts:
		return "must have a host and a port for each server, as in " + scheme + "://host:6379,host:6379"
	case isCluster && hasPath:
		return "must end with the last host for a cluster, which has no databases"
	case isSentinel && name == "":
		return "must have the name of the primary behind the Sentinels, as in " + scheme + "://host:26379,host:26379/mymaster"
	case !isRest:
		return "must have the name of the primary (letters, digits, '.', '-' and '_') and at most a database behind the " +
			"Sentinels, as in " + scheme + "://host:26379,host:26379/mymaster/0"
	default: // of user and password
		return "must be like " + scheme + "://user:password@host:6379,host:6379; special characters in user and password " +
			"must be percent-encoded"
	}
}

var errPort = settings.Bad("store", "has a port out of range, must be 1 to 65535")

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= 65535
}
