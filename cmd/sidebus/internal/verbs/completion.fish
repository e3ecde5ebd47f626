# Completion of sidebus for fish. Save it as ~/.config/fish/completions/sidebus.fish
function __sidebus_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l candidates ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test "$candidates[1]" = ":file"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $candidates
    end
end
complete -c sidebus -f -a '(__sidebus_complete)'
