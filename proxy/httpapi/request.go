package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
)

// Query parameters, in both forms that proto3 JSON permits.
var (
	pageParameters    = []string{"pageSize", "page_size", "pageToken", "page_token"}
	nameParameters    = append([]string{"namePrefix", "name_prefix"}, pageParameters...)
	sessionParameters = append(
		[]string{"updatedSince", "updated_since", "activeSince", "active_since"},
		pageParameters...)
	patchParameters = []string{"updateMask", "update_mask"}
)

// parametersOf returns the query parameters that a request may have.
func parametersOf(r *http.Request) []string {
	if r.Method == http.MethodPatch {
		return patchParameters
	}
	segments := strings.Split(r.URL.EscapedPath(), "/")
	if r.Method != http.MethodGet ||
		len(segments)%2 == 0 { // not a collection: its name is followed by that of an entity in it
		return nil
	}
	switch segments[len(segments)-1] {
	case "queues", "topics", "subscriptions":
		return nameParameters
	case "sessions":
		return sessionParameters
	case "rules":
		return pageParameters
	default:
		return nil
	}
}

// checkQuery refuses unknown query parameters, which the gateway ignores, and invalid values, for which the gateway has
// other error texts.
func checkQuery(r *http.Request) (url.Values, *semantics.Error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, semantics.Errorf(semantics.InvalidArgument, "the query is malformed: %v", err)
	}
	allowed := parametersOf(r)
	for name, values := range query {
		if !slices.Contains(allowed, name) {
			return nil, wirejson.BadValue(semantics.Shorten(name), "is not a known query parameter")
		}
		if len(values) != 1 {
			return nil, wirejson.BadValue(name, "appears twice")
		}
		if err := checkParameter(name, values[0]); err != nil {
			return nil, err
		}
	}
	return query, nil
}

func checkParameter(name, value string) *semantics.Error {
	switch name {
	case "pageSize", "page_size":
		if _, err := strconv.ParseInt(value, 10, 32); errors.Is(err, strconv.ErrRange) {
			return wirejson.Refused(semantics.ArgumentOutOfRange, "pageSize", "does not fit 32 bits")
		} else if err != nil {
			return wirejson.BadValue("pageSize", "must be a whole number")
		}
	case "updatedSince", "updated_since":
		_, err := wirejson.ParseInstant(value, "updatedSince")
		return err
	case "activeSince", "active_since":
		_, err := wirejson.ParseInstant(value, "activeSince")
		return err
	}
	return nil
}

// body is a request body that has been read. The codec gets the exchange through it, because an error that it returned
// would reach the client as text only.
type body struct {
	bytes.Reader

	data     []byte
	exchange *exchange
}

func newBody(data []byte, x *exchange) *body {
	b := &body{data: data, exchange: x}
	b.Reset(data)
	return b
}

// Close does nothing: the server closes the original body.
func (b *body) Close() error { return nil }
