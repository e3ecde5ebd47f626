package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/proxy/push"
)

// handlersKey is the part of the file that says where the app is called.
const handlersKey = "handlers"

// readHandlers reads a list of handlers. An error names the place.
func readHandlers(n node) ([]push.Handler, error) {
	items, err := n.list("handlers")
	if err != nil {
		return nil, err
	}
	handlers, places := make([]push.Handler, len(items)), map[string]string{}
	for i, item := range items {
		if handlers[i], err = readHandler(item); err != nil {
			return nil, err
		}
		if before, twice := places[handlers[i].Source]; twice {
			return nil, item.errorf("has the source %q, which has a handler already at %s", handlers[i].Source, before)
		}
		places[handlers[i].Source] = item.place
	}
	return handlers, nil
}

func readHandler(n node) (push.Handler, error) {
	var h push.Handler
	fields, err := n.mapping("source, url and so on", oneOf("source", "url", "maxConcurrent", "maxConcurrentSessions", "timeout"))
	if err != nil {
		return h, err
	}
	for _, key := range []string{"source", "url"} {
		if !slices.ContainsFunc(fields, func(field node) bool { return field.key == key }) {
			return h, n.errorf("must have a %s", key)
		}
	}
	for _, field := range fields {
		text, err := field.plain()
		if err != nil {
			return h, err
		}
		switch field.key {
		case "source":
			h.Source = text
		case "url":
			h.URL = text
		case "maxConcurrent":
			h.MaxConcurrent, err = number(field, text)
		case "maxConcurrentSessions":
			h.MaxConcurrentSessions, err = number(field, text)
		case "timeout":
			h.Timeout, err = span(field, text)
		}
		if err != nil {
			return h, err
		}
	}
	if h, err = h.WithDefaults(); err != nil {
		return h, fmt.Errorf("%s: %s.%w", n.place, n.name, err)
	}
	return h, nil
}

// number reads a whole number that is not 0, which would mean the default.
func number(n node, text string) (int, error) {
	value, err := strconv.Atoi(text)
	if err != nil || value == 0 {
		return 0, n.errorf("is %q, must be a whole number of at least 1", text)
	}
	return value, nil
}

// span reads a duration that is not 0, which would mean the default.
func span(n node, text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	if err != nil || value == 0 {
		return 0, n.errorf("is %q, must be a duration like 90s or 5m", text)
	}
	return value, nil
}

// shownHandlers adds handlers to the settings in force, fit to be seen by anyone.
func shownHandlers(handlers []push.Handler, into map[string]string) map[string]string {
	for i, h := range handlers {
		into[fmt.Sprintf("%s[%d]", handlersKey, i)] = fmt.Sprintf("%s to %s, maxConcurrent %d, maxConcurrentSessions %d, timeout %s",
			h.Source, h.Shown(), h.MaxConcurrent, h.MaxConcurrentSessions, h.Timeout)
	}
	return into
}
