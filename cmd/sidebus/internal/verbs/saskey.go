package verbs

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/proxy/sas"
)

// tokenLife is how long a token of an operator verb holds. Each call has a token of its own.
const tokenLife = 5 * time.Minute

// clientToken returns the function that creates the credentials of each call: from the file with a token, or from the
// key in the other file or the variable. It returns nil without any. Errors repeat neither.
func clientToken(file, tokenFile string) (func() string, error) {
	if tokenFile != "" {
		if file != "" || os.Getenv(settings.SASKeyVariable) != "" {
			return nil, cli.Misuse("--token-file and a key for shared access signatures are both set; use one")
		}
		content, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		return func() string { return "Bearer " + strings.TrimSpace(string(content)) }, nil
	}
	text, place := os.Getenv(settings.SASKeyVariable), settings.SASKeyVariable
	if file != "" {
		if text != "" {
			return nil, cli.Misuse("--sas-key-file and %s are both set; use one", settings.SASKeyVariable)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--sas-key-file: %w", err)
		}
		text, place = strings.TrimRight(string(content), "\r\n"), "--sas-key-file "+file
	} else if text == "" {
		return nil, nil //nolint:nilnil // a missing key is not an error
	}
	rule, key, isPair := strings.Cut(text, "=")
	if !isPair || rule == "" || key == "" {
		return nil, cli.Misuse(
			"%s must hold NAME=KEY, the name of a rule of --sas-keys-file and one of its keys", place,
		)
	}
	return func() string { return sas.Sign(rule, key, time.Now().Add(tokenLife)) }, nil
}
