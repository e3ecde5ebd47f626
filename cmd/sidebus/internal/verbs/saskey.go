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

// clientToken returns what makes tokens of the key in the file or the variable, nil without a key. Its errors do not
// repeat the key.
func clientToken(file string) (func() string, error) {
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
