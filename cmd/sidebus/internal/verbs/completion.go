package verbs

import (
	_ "embed"
	"io"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
)

// Scripts of the shells. Each asks "sidebus __complete WORD..." for the candidates.
var (
	//go:embed completion.bash
	bashCompletion string
	//go:embed completion.zsh
	zshCompletion string
	//go:embed completion.fish
	fishCompletion string
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help shows how to install the script.
func (completionCommand) Help() string {
	return `Load the script in bash 4, or install it for zsh or fish and start a new shell:

    source <(sidebus completion bash)
    sidebus completion zsh > "${fpath[1]}/_sidebus"
    sidebus completion fish > ~/.config/fish/completions/sidebus.fish`
}

// Run prints the script of a shell.
func (c completionCommand) Run(to terminal.Streams) error {
	_, err := io.WriteString(
		to.Stdout, map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell],
	)
	return err
}
