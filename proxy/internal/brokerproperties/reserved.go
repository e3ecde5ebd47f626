package brokerproperties

import (
	"net/textproto"
	"strings"
)

// standard are the standard headers of HTTP requests, in canonical form. They are never application properties.
// Priority (RFC 9218) is not among them: Service Bus' own examples have a property of that name.
var standard = setOf(
	"Accept", "Alt-Used", "Authorization", "Cache-Control", "Connection", "Cookie", "Date", "Depth", "Dnt",
	"Early-Data", "Expect", "Forwarded", "From", "Host", "Idempotency-Key", "Keep-Alive", "Max-Forwards",
	"Mime-Version", "Origin", "Pragma", "Range", "Referer", "Save-Data", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", "Upgrade-Insecure-Requests", "User-Agent", "Via", "Warning", "X-Http-Method-Override", "X-Real-Ip",
	"X-Requested-With", "Brokerproperties", "Servicebusauthorization", "Servicebussupplementaryauthorization",
)

// standardPrefixes are the prefixes of further standard headers.
var standardPrefixes = []string{
	"Accept-", "Access-Control-", "Content-", "If-", "Proxy-", "Sec-", "Sidebus-", "X-Forwarded-", "X-Ms-",
}

// answers are further headers that have a meaning in HTTP responses. In a request such a header has no meaning, so it
// is an application property; in a response the property is in PropertiesHeader.
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

// isStandard reports whether a header, by its canonical name, belongs to HTTP or Service Bus and is not a property.
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

// fitsHeader reports whether a property can be written as a header of its name.
func fitsHeader(name string) bool {
	if !isToken(name) {
		return false
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	return !isStandard(canonical) && !answers[canonical]
}

// isToken reports whether a text is valid as the name of a header (RFC 9110).
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
