package main

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
)

// mask stands in for a secret wherever settings are shown.
const mask = "***"

// shown gives the settings in force by flag name, fit to be seen by anyone.
func (s *settings) shown() map[string]string {
	all := map[string]string{}
	collect(reflect.ValueOf(*s), all)
	all["store"] = maskStore(s.Store)
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
			into[name] = fmt.Sprint(fields.Field(i).Interface())
		}
	}
}

// maskStore hides the password of a store URL. A text that is no URL is hidden whole after its scheme, because there
// is no telling which part of it is secret.
func maskStore(store string) string {
	scheme, rest, isURL := strings.Cut(store, "://")
	if !isURL {
		return store
	}
	parsed, err := url.Parse(store)
	if err != nil {
		return scheme + "://" + mask
	}
	if parsed.User == nil {
		if strings.Contains(rest, "@") {
			return scheme + "://" + mask
		}
		return store
	}
	user := parsed.User.Username()
	if _, has := parsed.User.Password(); has {
		user += ":" + mask
	}
	parsed.User = nil
	return strings.Replace(parsed.String(), "://", "://"+user+"@", 1)
}
