package client

import (
	"fmt"
	"regexp"
	"strconv"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/proxy/httpapi"
)

var days = regexp.MustCompile(`\d+d`)

// Duration reads a duration as the API takes it, and also with whole days: "30s", "1h30m", "7d", "PT30S".
func Duration(text string) (*durationpb.Duration, error) {
	inHours := days.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.Atoi(part[:len(part)-1])
		if err != nil || n > 1e6 {
			return part
		}
		return strconv.Itoa(24*n) + "h"
	})
	d, ok := httpapi.ParseDuration(inHours)
	if !ok {
		return nil, fmt.Errorf("is %q, must be a duration such as 30s, 1h30m, 7d or PT30S", text)
	}
	return d, nil
}
