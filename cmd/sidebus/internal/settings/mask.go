package settings

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
)

// mask stands in for a secret wherever settings are shown.
const mask = "***"

// Shown returns the settings in force by flag name, fit to be seen by anyone.
func (s *Settings) Shown() map[string]string {
	all := map[string]string{}
	collect(reflect.ValueOf(*s), all)
	all["store"] = MaskStore(s.Store)
	return all
}

func collect(fields reflect.Value, into map[string]string) {
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if field.Anonymous {
			collect(fields.Field(i), into)
			continue
		}
		if name := field.Tag.Get("name"); name != "" {
			value := fields.Field(i).Interface()
			if d, isDuration := value.(time.Duration); isDuration {
				value = duration.Text(d)
			}
			into[name] = fmt.Sprint(value)
		}
	}
}

// Addresses of stores that can be shown, as far as they hold nothing secret: user, password, where, and the rest.
var (
	redisAddress = regexp.MustCompile(
		`^(rediss?://)(?:([\w.+-]*)(:[^@/?#]*)?@)?((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])?(?::\d+)?(?:/\d*)?)(\?[^@#]*)?$`,
	)
	unixAddress = regexp.MustCompile(`^(unix://)(?:([\w.+-]*)(:[^@/?#]*)?@)?(/[^@?#]*)(\?[^@#]*)?$`)

	sentinelAddress = regexp.MustCompile(
		`^(rediss?\+sentinel://)(?:([\w.+-]*)(:[^@/?#]*)?@)?(` + hosts + `/[\w.-]+(?:/\d+)?)()$`,
	)
	clusterAddress = regexp.MustCompile(`^(rediss?\+cluster://)(?:([\w.+-]*)(:[^@/?#]*)?@)?(` + hosts + `)()$`)
)

// hosts matches addresses of several servers.
const hosts = host + `(?:,` + host + `)*`

const host = `(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):\d+`

// Several reads the address of several servers, Sentinels or a cluster: what is before the user, the user, the password
// behind a colon, and the rest. It reports whether it is one.
func Several(store string) (scheme, user, password, where string, is bool) {
	for _, form := range []*regexp.Regexp{sentinelAddress, clusterAddress} {
		if parts := form.FindStringSubmatch(store); parts != nil {
			return parts[1], parts[2], parts[3], parts[4], true
		}
	}
	return "", "", "", "", false
}

// MaskStore returns the value of --store with secrets masked. A text that is not a URL is masked as a whole, because
// any part of it may be secret. So is a user without a password, who is often a password in the wrong place, and every
// query.
func MaskStore(store string) string {
	if store == Embedded || store == Memory {
		return store
	}
	scheme, _, _ := strings.Cut(store, "://")
	form := redisAddress
	switch scheme {
	case "unix":
		form = unixAddress
	case "redis", "rediss":
	case "redis+sentinel", "rediss+sentinel":
		form = sentinelAddress
	case "redis+cluster", "rediss+cluster":
		form = clusterAddress
	default:
		return mask
	}
	parts := form.FindStringSubmatch(store)
	if _, err := url.Parse(store); parts == nil || err != nil && !strings.Contains(scheme, "+") {
		return scheme + "://" + mask
	}
	user, password, where, query := parts[2], parts[3], parts[4], parts[5]
	switch {
	case len(password) > len(":"):
		user += ":" + mask + "@"
	case user != "" || password != "":
		user = mask + "@"
	}
	if query != "" {
		query = "?" + mask
	}
	return parts[1] + user + where + query
}

// HasPassword reports whether the value of --store is an address that holds something that is masked.
func HasPassword(store string) bool {
	return strings.Contains(store, "://") && strings.Contains(MaskStore(store), mask)
}

// Hide takes out of an error's text every given value that may be an address with a password, as it stands or quoted.
// The parser of the command line repeats what it does not understand.
func Hide(text string, given []string) string {
	var secrets []string
	for _, value := range given {
		if !strings.Contains(value, "@") {
			continue
		}
		quoted := strconv.Quote(value)
		secrets = append(secrets, value, quoted[1:len(quoted)-1])
		if _, after, isFlag := strings.Cut(value, "="); isFlag && strings.HasPrefix(value, "-") {
			quoted = strconv.Quote(after)
			secrets = append(secrets, after, quoted[1:len(quoted)-1])
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // a part of another one comes later
	for _, secret := range secrets {
		if strings.Contains(secret, "@") {
			text = strings.ReplaceAll(text, secret, mask)
		}
	}
	return text
}
