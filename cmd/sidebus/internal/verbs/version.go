package verbs

import (
	"fmt"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/version"
)

type versionCommand struct{}

// Run prints one line: version, Go release, platform.
func (versionCommand) Run(to terminal.Streams) error {
	_, err := fmt.Fprintln(to.Stdout, version.Line())
	return err
}
