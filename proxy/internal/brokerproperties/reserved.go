package brokerproperties

import (
	"net/textproto"
	"strings"
)

// standard are the headers of HTTP that come with requests, in canonical form. None is ever an application property.
// Priority (RFC 9218) is not among them: Service Bus' own examples have a property of that name.
var standard = setOf(
	"Accept", "Alt-Used", "Authorization", "Cache-Control", "Connection", "Cookie", "Date", "Depth", "Dnt",
	"Early-Data", "Expect", "Forwarded", "From", "Host", "Idempotency-Key", "Keep-Alive", "Max-Forwards",
	"Mime-Version", "Origin", "Pragma", "Range", "Referer", "Save-Data", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", "Upgrade-Insecure-Requests", "User-Agent", "Via", "Warning", "X-Http-Method-Override", "X-Real-Ip",
	"X-Requested-With", "Brokerproperties", "Servicebusauthorization", "Servicebussupplementaryauthorization",
)

// standardPrefixes are those of families of such headers.
var standardPrefixes = []string{
	"Accept-", "Access-Control-", "Content-", "If-", "Proxy-", "Sec-", "Sidebus-", "X-Forwarded-", "X-Ms-",
}

// answers are the headers of HTTP that an answer may have besides. A property of such a name comes in a header, since
// there it means nothing else, and goes out in PropertiesHeader.
var answers = setOf(
	"Age", "Allow", "Alt-Svc", "Clear-Site-Data", "Etag", "Expires", "Last-Modified", "Link", "Location", "Nel",
	"Refresh", "Report-To", "Reporting-Endpoints", "Retry-After", "Server", "Server-Timing", "Set-Cookie",
	"Strict-Transport-Security", "Timing-Allow-Origin", "Vary", "Www-Authenticate",
)

func setOf(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// isStandard tells whether a header, by its canonical name, is part of HTTP or of Service Bus and no property.
func isStandard(canonical string) bool {
	if standard[canonical] {
		return true
	}
	for _, prefix := range standardPrefixes {
		if strings.HasPrefix(canonical, prefix) {
			return true
		}
	}
	return false
}

// fitsHeader tells whether a property can be written as a header of its name.
func fitsHeader(name string) bool {
	if !isToken(name) {
		return false
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	return !isStandard(canonical) && !answers[canonical]
}

// isToken tells whether a text may be the name of a header (RFC 9110).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		isLetter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !isLetter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}
