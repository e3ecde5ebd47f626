# Completion of sidebus for fish. Save it as ~/.config/fish/completions/sidebus.fish
function __sidebus_complete
    set -l current (commandline -ct)
    set -l words (commandline -opc) $current
    set -l candidates ($words[1] __complete $words[2..-1] 2>/dev/null)
    set -l flag (string match -r -- '^--[^=]+=' "$current") # of --flag=value; fish expects it before each candidate
    if test "$candidates[1]" = ":file"
        set candidates (__fish_complete_path (string replace -- "$flag" "" "$current"))
    end
    for candidate in $candidates
        echo -- "$flag$candidate"
    end
end
complete -c sidebus -f -a '(__sidebus_complete)'
