package serve

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/proxy/push"
	"github.com/sidebus/sidebus/semantics"
)

// readHandlers reads the handlers of the file, nil if it has none. An error names the place.
func readHandlers(n *yamlfile.Node) ([]push.Handler, error) {
	if n == nil {
		return nil, nil
	}
	items, err := n.List(settings.HandlersKey)
	if err != nil {
		return nil, err
	}
	handlers, places := make([]push.Handler, len(items)), map[string]string{}
	for i, item := range items {
		if handlers[i], err = readHandler(item); err != nil {
			return nil, err
		}
		source := semantics.Fold(handlers[i].Source)
		if before, twice := places[source]; twice {
			return nil, item.Errorf("has the source %q, which has a handler already at %s", handlers[i].Source, before)
		}
		places[source] = item.Place
	}
	return handlers, nil
}

func readHandler(n yamlfile.Node) (push.Handler, error) {
	var h push.Handler
	fields, err := n.Mapping(
		"source, url and so on", yamlfile.OneOf("source", "url", "maxConcurrent", "maxConcurrentSessions", "timeout"),
	)
	if err != nil {
		return h, err
	}
	for _, key := range []string{"source", "url"} {
		if !slices.ContainsFunc(fields, func(field yamlfile.Node) bool { return field.Key == key }) {
			return h, n.Errorf("must have a %s", key)
		}
	}
	for _, field := range fields {
		text, err := field.Plain()
		if err != nil {
			return h, err
		}
		switch field.Key {
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
		return h, fmt.Errorf("%s: %s.%w", n.Place, n.Name, err)
	}
	return h, nil
}

// number reads a whole number that is not 0, which would mean the default.
func number(n yamlfile.Node, text string) (int, error) {
	value, err := strconv.Atoi(text)
	if err != nil || value == 0 {
		return 0, n.Errorf("is %q, must be a whole number of at least 1", text)
	}
	return value, nil
}

// span reads a duration that is not 0, which would mean the default.
func span(n yamlfile.Node, text string) (time.Duration, error) {
	value, err := duration.Parse(text)
	if err != nil || value == 0 {
		return 0, n.Errorf("is %q, must be a duration such as 90s or 5m", text)
	}
	return value, nil
}

// showHandlers adds handlers to the settings in force, fit to be seen by anyone.
func showHandlers(handlers []push.Handler, into map[string]string) map[string]string {
	for i, h := range handlers {
		into[fmt.Sprintf("%s[%d]", settings.HandlersKey, i)] = fmt.Sprintf(
			"%s to %s, maxConcurrent %d, maxConcurrentSessions %d, timeout %s", h.Source, h.Shown(), h.MaxConcurrent,
			h.MaxConcurrentSessions, duration.Text(h.Timeout),
		)
	}
	return into
}
